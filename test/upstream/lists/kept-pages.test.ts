import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { Paging } from '../../../src/upstream/lists/paging.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const account = (number: number) => ({
  id: `account-${number}`,
  instrumentId: `instrument-${number}`,
  accountNumber: `number-${number}`,
  clabeNumber: `clabe-${number}`,
});

/** Reads accounts as an operation of service mode does, which is answered by what was kept of earlier ones. */
function readerOver(upstreamRest: Rest): ListReader<Account> {
  const kept = new Map<string, unknown>();
  const get: Rest['get'] = async (route, options = {}) => {
    const key = JSON.stringify(options.query);
    const answer =
      options.isFresh === true || !kept.has(key) ? await upstreamRest.get(route, options) : kept.get(key);
    kept.set(key, answer);
    return answer;
  };
  const rest: Rest = Object.assign(Object.create(upstreamRest), { get });
  const lists = createClientLists({
    maxAgeMs: 5_000,
    now: () => 0,
    logger: silentLogger,
    onOutdated: () => undefined,
  });
  return new ListReader(rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST));
}

const asked = (url: string | undefined) => {
  const query = new URL(url ?? '', 'http://x').searchParams;
  return { currentPage: Number(query.get('page') ?? 1), perPage: Number(query.get('per_page') ?? 50) };
};

it('pages that do not fit together are read afresh, also where a list of the same length has moved', async () => {
  const items = Array.from({ length: 200 }, (_, number) => account(number));
  await using upstream = await startUpstream((request, response) => {
    const { currentPage, perPage } = asked(request.url);
    const data = items.slice((currentPage - 1) * perPage, currentPage * perPage);
    json(response, { currentPage, perPage, totalItem: items.length, totalItems: items.length, data });
  });
  const reader = readerOver(upstream.rest);
  const windowAt = async (offset: number) => (await reader.window(offset, 60)).items.map(({ id }) => id);
  const idsFrom = (offset: number) => items.slice(offset, offset + 60).map(({ id }) => id);
  expect(await windowAt(0)).toEqual(idsFrom(0));

  items.unshift(account(200));
  items.pop();
  expect(await windowAt(50)).toEqual(idsFrom(50));
});

it('a page that does not fit is asked for once more, afresh, and fails nobody for as long as it is kept', async () => {
  const items = Array.from({ length: 200 }, (_, number) => account(number));
  let isWrong = false;
  await using upstream = await startUpstream((request, response) => {
    const { currentPage, perPage } = asked(request.url);
    const data = items.slice((currentPage - 1) * perPage, currentPage * perPage);
    const total = items.length;
    // One answer lacks an item of its page.
    json(response, { currentPage, perPage, totalItem: total, data: isWrong ? data.slice(1) : data });
  });
  const reader = readerOver(upstream.rest);
  const idsOf = async (offset: number) => (await reader.window(offset, 50)).items.map(({ id }) => id);
  await idsOf(0);
  isWrong = true;
  const before = upstream.requests.length;
  await expect(idsOf(50)).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
  // The first page does not fit either, and shows nothing of that one.
  expect(upstream.requests).toHaveLength(before + 3);
  // The answer that was kept is the wrong one.
  isWrong = false;
  expect(await idsOf(50)).toEqual(items.slice(50, 100).map(({ id }) => id));
  expect(upstream.requests).toHaveLength(before + 4);
  expect(await idsOf(50)).toEqual(items.slice(50, 100).map(({ id }) => id));
  expect(upstream.requests).toHaveLength(before + 4);
});

it.each([
  [1, 0],
  [0, 1],
])(
  'windows are right again a minute after a service that counted its pages from %i counts from %i',
  async (from, to) => {
    const items = Array.from({ length: 300 }, (_, number) => account(number));
    let [now, firstPage] = [0, from];
    await using upstream = await startUpstream((request, response) => {
      const query = new URL(request.url ?? '', 'http://x').searchParams;
      const currentPage = Math.max(firstPage, Number(query.get('page') ?? firstPage));
      const perPage = Number(query.get('per_page') ?? 50);
      const start = (currentPage - firstPage) * perPage;
      json(response, {
        currentPage,
        perPage,
        totalItem: items.length,
        data: items.slice(start, start + perPage),
      });
    });
    const reader = new ListReader(upstream.rest, ACCOUNT_LIST, new Paging(ACCOUNT_LIST, () => now));
    const windowAt = async (offset: number) => (await reader.window(offset, 20)).items.map(({ id }) => id);
    const idsFrom = (offset: number) => items.slice(offset, offset + 20).map(({ id }) => id);
    for (const offset of [0, 100]) expect(await windowAt(offset)).toEqual(idsFrom(offset));
    firstPage = to;
    for (const first of [0, 100]) {
      now += 61_000;
      const before = upstream.requests.length;
      for (const offset of [first, 0, 40, 100]) expect(await windowAt(offset)).toEqual(idsFrom(offset));
      expect(upstream.requests.length - before).toBeLessThanOrEqual(6);
    }
  },
);

it('a list that comes whole, and is read all the time, keeps no outdated number of the first page of others', async () => {
  const items = Array.from({ length: 500 }, (_, number) => account(number));
  const few = [account(500), account(501)];
  let [now, firstPage] = [0, 1];
  await using upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const currentPage = Math.max(firstPage, Number(query.get('page') ?? firstPage));
    const perPage = Number(query.get('per_page') ?? 50);
    const start = (currentPage - firstPage) * perPage;
    const listed = query.has('customer_id') ? few : items;
    json(response, {
      currentPage,
      perPage,
      totalItem: listed.length,
      data: listed.slice(start, start + perPage),
    });
  });
  const paging = new Paging(ACCOUNT_LIST, () => now);
  const long = new ListReader(upstream.rest, ACCOUNT_LIST, paging);
  const short = new ListReader(upstream.rest, ACCOUNT_LIST, paging, { customer_id: 'customer' });
  expect((await long.window(0, 100)).items[0]).toMatchObject({ id: 'account-0' });
  firstPage = 0;
  for (const _time of [1, 2, 3]) {
    now += 30_000;
    expect((await short.first()).items).toMatchObject(few);
  }
  expect((await long.window(0, 100)).items[0]).toMatchObject({ id: 'account-0' });
});

it('a window whose pages come stands where the call that asks anew how they are counted fails', async () => {
  const items = Array.from({ length: 300 }, (_, number) => account(number));
  let [now, isFailing] = [0, false];
  await using upstream = await startUpstream((request, response) => {
    const { currentPage, perPage } = asked(request.url);
    if (isFailing && !request.url?.includes('?')) return json(response, { message: 'not now' }, 500);
    const data = items.slice((currentPage - 1) * perPage, currentPage * perPage);
    json(response, { currentPage, perPage, totalItem: items.length, data });
  });
  const reader = new ListReader(upstream.rest, ACCOUNT_LIST, new Paging(ACCOUNT_LIST, () => now));
  isFailing = true;
  // Nothing is known yet.
  for (const [offset, limit] of [
    [0, 20],
    [100, 100],
  ] as const) {
    await expect(reader.window(offset, limit)).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  }
  isFailing = false;
  await reader.window(0, 20);
  isFailing = true;
  now += 61_000;
  for (const [offset, limit] of [
    [100, 100],
    [0, 20],
  ] as const) {
    expect((await reader.window(offset, limit)).items).toMatchObject(items.slice(offset, offset + limit));
  }
});
