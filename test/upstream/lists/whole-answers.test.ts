import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const accounts = (count: number) =>
  Array.from({ length: count }, (_, number) => ({ id: `account-${number}` }));

it('a list that comes whole takes one call for each window, once a window has shown that it does', async () => {
  let data = accounts(90);
  let size = 1_000;
  await using upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const perPage = size === 1_000 ? size : Number(query.get('per_page') ?? size);
    const currentPage = size === 1_000 ? 1 : Number(query.get('page') ?? 1);
    const shown = data.slice((currentPage - 1) * perPage, currentPage * perPage);
    json(response, { data: shown, currentPage, perPage, totalItem: data.length });
  });
  const lists = createClientLists({
    maxAgeMs: 5_000,
    now: () => 0,
    logger: silentLogger,
    onOutdated: () => undefined,
  });
  const windowAt = async (offset: number) => {
    const before = upstream.requests.length;
    const { items, total } = await createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists }).window(
      offset,
      20,
    );
    expect(total).toBe(data.length);
    expect(items).toMatchObject(data.slice(offset, offset + 20));
    return upstream.requests.slice(before).map((request) => request.includes('?'));
  };
  // The first does not know that, and asks for its page beside.
  expect(await windowAt(60)).toHaveLength(2);
  for (const offset of [60, 0, 80]) expect(await windowAt(offset)).toEqual([false]);

  // It has grown, and comes in pages from now on.
  data = accounts(250);
  size = 50;
  expect(await windowAt(60)).toEqual([false, true]);
  expect(await windowAt(60)).toEqual([true]);
});
