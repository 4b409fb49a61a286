import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
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

it('a list that comes whole takes one call also where the number of the first page is known of others, and due', async () => {
  const data = accounts(90);
  const others = accounts(250);
  let now = 0;
  await using upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const listed = query.has('customer_id') ? others : data;
    const perPage = Number(query.get('per_page') ?? 100);
    const currentPage = Number(query.get('page') ?? 1);
    const shown = listed.slice((currentPage - 1) * perPage, currentPage * perPage);
    json(response, { data: shown, currentPage, perPage, totalItem: listed.length });
  });
  const options = { maxAgeMs: 5_000, logger: silentLogger, onOutdated: () => undefined };
  const lists = createClientLists({ ...options, now: () => now });
  await new ListReader(upstream.rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST), {
    customer_id: 'other',
  }).first();
  now += 61_000;
  const callsOf = async () => {
    const before = upstream.requests.length;
    const loader = createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists });
    expect((await loader.window(60, 20)).items).toMatchObject(data.slice(60, 80));
    return upstream.requests.length - before;
  };
  expect(await callsOf()).toBe(2);
  expect(await callsOf()).toBe(1);
});
