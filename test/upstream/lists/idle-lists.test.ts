import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, it, vi } from 'vitest';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { startClientLists } from '../../helpers/client-lists.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('the places of a list that nobody has asked for within half an hour are let go once another list is read', async () => {
  await using upstream = await startUpstream((_request, response) => {
    json(response, { data: [{ id: 'account-1' }], currentPage: 1, perPage: 100, totalItem: 1 });
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1);
  const pass = (ms: number) => {
    clock.mockReturnValue(performance.now() + ms);
    // The cache takes the time that it has read for that of a second.
    vi.advanceTimersByTime(ms);
  };
  const lists = startClientLists();
  const reader = new ListReader(upstream.rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST));
  const walked = async (client: string) => {
    const places = lists.of(client, ACCOUNT_LIST, '');
    await places.walk(reader);
    return new WeakRef(places);
  };
  const isKept = async (places: WeakRef<object>) => {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    return places.deref() !== undefined;
  };
  const idle = await walked('idle');
  pass(1_700_000);
  const used = await walked('used');
  expect(await isKept(idle)).toBe(true);
  pass(200_000);
  const another = await walked('another');
  expect([await isKept(idle), await isKept(used), await isKept(another)]).toEqual([false, true, true]);
});
