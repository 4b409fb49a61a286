import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const account = (number: number) => ({
  id: `account-${number}`,
  instrumentId: `instrument-${number}`,
  accountNumber: `number-${number}`,
  clabeNumber: `clabe-${number}`,
});

it('pages that do not fit together are read afresh, also where a list of the same length has moved', async () => {
  const items = Array.from({ length: 200 }, (_, number) => account(number));
  await using upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const currentPage = Number(query.get('page') ?? 1);
    const perPage = Number(query.get('per_page') ?? 50);
    const data = items.slice((currentPage - 1) * perPage, currentPage * perPage);
    json(response, { currentPage, perPage, totalItem: items.length, totalItems: items.length, data });
  });
  const kept = new Map<string, unknown>();
  const get: Rest['get'] = async (route, options = {}) => {
    const key = JSON.stringify(options.query);
    const answer =
      options.isFresh === true || !kept.has(key) ? await upstream.rest.get(route, options) : kept.get(key);
    kept.set(key, answer);
    return answer;
  };
  const rest: Rest = Object.assign(Object.create(upstream.rest), { get });
  const lists = createClientLists({
    maxAgeMs: 5_000,
    now: () => 0,
    logger: silentLogger,
    onOutdated: () => undefined,
  });
  const reader = new ListReader(rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST));
  const windowAt = async (offset: number) => (await reader.window(offset, 60)).items.map(({ id }) => id);
  const idsFrom = (offset: number) => items.slice(offset, offset + 60).map(({ id }) => id);
  expect(await windowAt(0)).toEqual(idsFrom(0));

  items.unshift(account(200));
  items.pop();
  expect(await windowAt(50)).toEqual(idsFrom(50));
});
