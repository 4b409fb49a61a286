import { expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { Paging } from '../../../src/upstream/lists/paging.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { walkList } from '../../../src/upstream/lists/walk.ts';

const PAGE = 100;

it('a page that was asked for before another showed that the list has grown is no sign that it has shrunk', async () => {
  let items = Array.from({ length: 10 * PAGE }, (_, number) => ({ id: `account-${number}` }));
  const asked: number[] = [];
  const opened = Promise.withResolvers<void>();
  const get: Rest['get'] = async (_route, { query = {} } = {}) => {
    const [page, perPage] = [Number(query['page'] ?? 1), Number(query['per_page'] ?? 50)];
    asked.push(page);
    // The others have been asked for, and answered: the last one shows what has come.
    if (page === 10 && items.length === 10 * PAGE) items = [...items, { id: 'account-new' }];
    if (page === 11) opened.resolve();
    const data = items.slice((page - 1) * perPage, page * perPage);
    const answer = { data, currentPage: page, perPage, totalItem: items.length };
    if (page === 4) await opened.promise;
    return answer;
  };
  // All that a reader calls.
  const rest = { clientId: 'client', get } as unknown as Rest;
  const reader = new ListReader<Account>(rest, ACCOUNT_LIST, new Paging(ACCOUNT_LIST, () => 0));
  const { index } = await walkList(reader, { onLastReads: () => undefined, onProgress: () => undefined });
  expect(index.size).toBe(10 * PAGE + 1);
  expect(index.placeOf('account-new')).toBe(10 * PAGE);
  // A call that tells how pages are counted, and each page twice: once to see what it holds, and once to see that it holds still.
  expect(asked.filter((page) => page > 1 && page < 11).toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: 9 }, (_, at) => [at + 2, at + 2]).flat(),
  );
});

it('a later pass asks again how pages are counted where that call fails, as it does for a page', async () => {
  let items = Array.from({ length: 3 * PAGE }, (_, number) => ({ id: `account-${number}` }));
  let [now, failures] = [0, 0];
  const get: Rest['get'] = async (_route, { query = {} } = {}) => {
    if (query['page'] === undefined && now > 0 && failures === 0) {
      failures += 1;
      throw new UpstreamError('UPSTREAM_TIMEOUT', 'not now', { dispatched: true });
    }
    const [page, perPage] = [Number(query['page'] ?? 1), Number(query['per_page'] ?? 50)];
    // An item leaves while the first pass is under way, which takes over a minute.
    if (page === 3 && now === 0) {
      items = items.slice(1);
      now = 70_000;
    }
    const data = items.slice((page - 1) * perPage, page * perPage);
    return { data, currentPage: page, perPage, totalItem: items.length };
  };
  // All that a reader calls.
  const rest = { clientId: 'client', get } as unknown as Rest;
  const reader = new ListReader<Account>(rest, ACCOUNT_LIST, new Paging(ACCOUNT_LIST, () => now));
  const restore = useClock({ ...clock, sleep: async () => undefined });
  onTestFinished(restore);
  const { index } = await walkList(reader, { onLastReads: () => undefined, onProgress: () => undefined });
  expect(failures).toBe(1);
  expect(index.size).toBe(3 * PAGE - 1);
});

it('a pass that is given up asks for no further page', async () => {
  const items = Array.from({ length: 20 * PAGE }, (_, number) => ({ id: `account-${number}` }));
  /**
   * Returns how many calls a walk takes. Where a page comes in another size, the first pass is given up: the calls since then count.
   *
   * @param odd the page that the first pass gets in another size.
   */
  const callsOfWalk = async (odd?: number): Promise<number> => {
    let [calls, heads] = [0, 0];
    let isFirstPass = odd !== undefined;
    const givenUp = Promise.withResolvers<void>();
    const get: Rest['get'] = async (_route, { query = {} } = {}) => {
      const page = Number(query['page'] ?? 1);
      if (query['page'] !== undefined && page === 1) heads += 1;
      if (isFirstPass && heads === 2) {
        isFirstPass = false;
        calls = 0;
        givenUp.resolve();
      }
      calls += 1;
      const perPage = isFirstPass && page === odd ? 2 * PAGE : PAGE;
      // The others are under way while that page comes.
      if (isFirstPass && page !== 1 && page !== odd) await givenUp.promise;
      const data = items.slice((page - 1) * perPage, page * perPage);
      return { data, currentPage: page, perPage, totalItem: items.length };
    };
    // All that a reader calls.
    const rest = { clientId: 'client', get } as unknown as Rest;
    const reader = new ListReader<Account>(rest, ACCOUNT_LIST, new Paging(ACCOUNT_LIST, () => 0));
    const { index } = await walkList(reader, { onLastReads: () => undefined, onProgress: () => undefined });
    expect(index.size).toBe(20 * PAGE);
    return calls;
  };
  // The first pass alone makes the call that tells how pages are counted.
  expect(await callsOfWalk(3)).toBe((await callsOfWalk()) - 1);
});
