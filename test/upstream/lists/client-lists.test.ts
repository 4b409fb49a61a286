import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import type { PlaceIndex } from '../../../src/upstream/lists/place-index.ts';
import { type ListDefinition, ListReader } from '../../../src/upstream/lists/reader.ts';
import { startClientLists } from '../../helpers/client-lists.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const CLIENT = 'ABCDEF01-2345-4789-8ABC-DEF012345678';

const withOneAccount = () =>
  startUpstream((_request, response) => {
    json(response, { data: [{ id: 'account-1' }], currentPage: 1, perPage: 100, totalItem: 1 });
  });

it('the lists of a client are the same however its id is written, and are told when they have changed', () => {
  const lists = startClientLists();
  // No more of it is looked at before anything is read.
  const list = { route: '/things' } as unknown as ListDefinition<object>;
  const places = lists.of(CLIENT, list, '');
  expect(lists.of(CLIENT.toLowerCase(), list, '')).toBe(places);
  const other = lists.of(CLIENT, { ...list, route: '/others' }, '');
  const changed = [places, other].map((own) => vi.spyOn(own, 'markChanged'));
  for (const named of [CLIENT, CLIENT.toLowerCase(), CLIENT.replace('A', 'F')]) lists.markChanged(named);
  for (const each of changed) expect(each).toHaveBeenCalledTimes(2);
});

it.each([
  [CLIENT, CLIENT],
  [CLIENT.toLowerCase(), CLIENT],
  [CLIENT, CLIENT.toLowerCase()],
])('what is read of %s right after a change of %s may miss it: of no other client', (read, changed) => {
  const lists = startClientLists();
  const mayMiss = (client: string) => lists.of(client, ACCOUNT_LIST, '').moment().mayMiss;
  expect(mayMiss(read)).toBe(false);
  lists.markChanged(changed);
  expect([mayMiss(read), mayMiss(CLIENT.replace('A', 'F'))]).toEqual([true, false]);
});

it('a new index of a list is told of, and a list has changed where an event names an item that its index lacks', async () => {
  await using upstream = await withOneAccount();
  const told: string[] = [];
  const lists = startClientLists({ onOutdated: (client) => told.push(client) });
  const places = lists.of(CLIENT, ACCOUNT_LIST, '');
  expect(told).toEqual([]);
  const changed = vi.spyOn(places, 'markChanged');
  // The first walk may be under way, and past the item.
  lists.noteItem(CLIENT, ACCOUNT_LIST.route, 'id', 'account-0');
  expect(changed).toHaveBeenCalledOnce();
  changed.mockClear();
  await places.walk(new ListReader(upstream.rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST)));
  expect(told).toEqual([CLIENT]);
  lists.noteItem(CLIENT, ACCOUNT_LIST.route, 'id', 'account-1');
  expect(changed).not.toHaveBeenCalled();
  lists.noteItem(CLIENT.toLowerCase(), ACCOUNT_LIST.route, 'id', 'account-2');
  expect(changed).toHaveBeenCalledOnce();
});

it('of very large lists the ones that were asked for last are kept, as many as have five million items together', async () => {
  await using upstream = await withOneAccount();
  const lists = startClientLists();
  const reader = new ListReader(upstream.rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST));
  const walked = async (client: string, size: number) => {
    const places = lists.of(client, ACCOUNT_LIST, '');
    // Nothing but its size is asked of an index here: a real one of that size would take half a gigabyte.
    vi.spyOn(places, 'known', 'get').mockReturnValue({ size } as PlaceIndex);
    await places.walk(reader);
    return places;
  };
  const isKept = (client: string, places: object) => lists.of(client, ACCOUNT_LIST, '') === places;
  const small = await walked('small', 10);
  const first = await walked('first', 3_000_000);
  expect(isKept('small', small)).toBe(true);
  const second = await walked('second', 3_000_000);
  expect([isKept('small', small), isKept('second', second)]).toEqual([true, true]);
  expect(isKept('first', first)).toBe(false);
});

it('what is known of a list is not taken for what is known of a part of it', () => {
  const lists = startClientLists();
  const parts = ['', 'status=CLOSED', 'status=ACTIVE'].map((part) => lists.of(CLIENT, ACCOUNT_LIST, part));
  expect(new Set(parts).size).toBe(3);
});

it('a list that shows another total than before is told in the log, with the filter that selects it', () => {
  const debug = vi.fn();
  const outdated: string[] = [];
  const logger = { ...silentLogger, debug };
  const paging = startClientLists({ logger, onOutdated: (client) => outdated.push(client) }).paging({
    route: '/things',
  });
  const shows = (filter: string, total: number) => paging.noteTotal(CLIENT, filter, total);
  shows('', 60);
  shows('customer_id=one', 2);
  shows('customer_id=one', 3);
  shows('', 60);
  const told = { route: '/things', clientId: CLIENT, filter: 'customer_id=one', before: 2, total: 3 };
  expect(debug.mock.calls).toEqual([[told, 'A list shows another total than before']]);
  expect(outdated).toEqual([CLIENT]);
});
