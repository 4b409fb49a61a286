import { describe, expect, it } from 'vitest';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { BANK_FIELD_NAMES } from '../../../src/upstream/banks.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { readWholeList } from '../../../src/upstream/lists/whole-list.ts';
import { createBankCache } from '../../../src/upstream/session/session.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';
import { type Change, ChangingList, type Paging } from './changing-list.ts';

const PAGES: Paging = { firstPage: 1, defaultSize: 2, cap: 2, honours: 'pages' };
const NOTHING: Change = { kind: 'nothing' };

/** Reads a list of 12 in pages of two whole, which changes before its answers as the script says. */
async function read(
  script: readonly Change[],
  { mayRepeatIds, cap = 2 }: { readonly mayRepeatIds?: true; readonly cap?: number } = {},
) {
  const list = new ChangingList(12, 3, { ...PAGES, cap }, script);
  await using upstream = await startUpstream((request, response) => list.answer(request, response));
  const definition = mayRepeatIds ? { ...ACCOUNT_LIST, mayRepeatIds } : ACCOUNT_LIST;
  const items = await readWholeList(upstream.rest, definition);
  return { items, list, calls: upstream.requests.length };
}

/** What a list holds, in whichever order. */
const idsOf = (items: readonly Account[]) => items.map(({ id }) => id).sort();

describe('a list that is read whole, in pages', () => {
  it('takes one call for each page where it stays as it is', async () => {
    const { items, list, calls } = await read([]);
    expect(items).toEqual(list.now);
    // The first shows that it comes in pages, and is asked for again in the largest size.
    expect(calls).toBe(7);
  });

  it('is read in the largest pages that the service gives', async () => {
    for (const [cap, expected] of [
      [5, 4],
      [6, 3],
      [12, 2],
      [100, 2],
    ] as const) {
      const { items, list, calls } = await read([], { cap });
      expect(items).toEqual(list.now);
      expect(calls, `${cap}`).toBe(expected);
    }
  });

  it.each([
    ['the first item leaves', { kind: 'remove', at: 0 }],
    ['an item in the middle leaves', { kind: 'remove', at: 5 }],
    ['the last item leaves', { kind: 'remove', at: 11 }],
    ['an item comes at the beginning', { kind: 'prepend' }],
    ['an item comes in the middle', { kind: 'insert', at: 5 }],
    ['an item comes at the end', { kind: 'append' }],
    ['its order is turned round', { kind: 'reverse' }],
  ] as const)('holds what is there, and nothing else, where %s, before whichever page', async (_, change) => {
    for (let before = 1; before < 7; before += 1) {
      for (const times of [1, 2]) {
        const script: Change[] = Array.from({ length: before }, () => NOTHING);
        for (let time = 0; time < times; time += 1) script.push(change, NOTHING);
        const { items, list } = await read(script);
        expect(list.snapshots.map(idsOf), `${before} ${times}`).toContainEqual(idsOf(items));
      }
    }
  });

  it.each([
    ['remove', 0],
    ['insert', 5],
    ['append', 0],
  ] as const)('holds what is there where ids may repeat, and one is changed by %s', async (kind, at) => {
    for (let before = 1; before < 7; before += 1) {
      const script: Change[] = Array.from({ length: before }, () => NOTHING);
      const { items, list } = await read([...script, { kind, at }], { mayRepeatIds: true });
      expect(list.snapshots.map(idsOf), `${before}`).toContainEqual(idsOf(items));
    }
  });

  it('holds once what stands on two of its pages, where ids may repeat', async () => {
    const ids = ['a', 'b', 'b', 'c'];
    await using upstream = await startUpstream((request, response) => {
      const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page') ?? 1);
      const data = ids.slice((page - 1) * 2, page * 2).map((id) => ({ id }));
      json(response, { data, currentPage: page, perPage: 2, totalItem: ids.length });
    });
    const items = await readWholeList(upstream.rest, { ...ACCOUNT_LIST, mayRepeatIds: true });
    expect(items.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  });

  it('is read to its new end where items come there meanwhile, without beginning again', async () => {
    const script: Change[] = [
      NOTHING,
      NOTHING,
      ...Array.from({ length: 3 }, (): Change => ({ kind: 'append' })),
    ];
    const { items, list, calls } = await read(script);
    expect(items).toEqual(list.now);
    expect(items).toHaveLength(15);
    expect(calls).toBe(9);
  });

  it('is told as invalid where its pages never fit together, after four readings', async () => {
    const list = new ChangingList(
      40,
      3,
      PAGES,
      Array.from({ length: 200 }, (): Change => ({ kind: 'remove', at: 0 })),
    );
    await using upstream = await startUpstream((request, response) => list.answer(request, response));
    await expect(readWholeList(upstream.rest, ACCOUNT_LIST)).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: expect.stringContaining('do not fit together'),
    });
    expect(upstream.requests.filter((request) => !request.includes('?'))).toHaveLength(4);
  });
});

describe('the kept catalog of banks', () => {
  const bank = (number: number) => ({ id: `0a0a0a0a-0000-4000-8000-00000000000${number}` });
  const answered = () => Promise.withResolvers<unknown>();
  /** REST calls that are answered as the test says, and those that were made. */
  const calls = () => {
    const made: ReturnType<typeof answered>[] = [];
    const get = () => {
      const call = answered();
      made.push(call);
      return call.promise;
    };
    return { made, rest: { get, served: () => undefined, clientId: 'client' } as unknown as Rest };
  };
  const catalog = (number: number) => ({
    banks: [bank(number)],
    total_banks: 1,
    page: 1,
    page_size: 100,
  });
  const idsIn = ({ items }: { readonly items: readonly { readonly id: string }[] }) =>
    items.map(({ id }) => id);

  it('serves for its time from when its reading began, and is read again then', async () => {
    let now = 0;
    const { made, rest } = calls();
    const cache = createBankCache(BANK_FIELD_NAMES, 1_000, () => now);
    const first = cache.read(rest);
    now = 400;
    made[0]?.resolve(catalog(1));
    expect(idsIn(await first)).toEqual([bank(1).id]);
    now = 999;
    expect(idsIn(await cache.read(rest))).toEqual([bank(1).id]);
    expect(made).toHaveLength(1);
    now = 1_000;
    const second = cache.read(rest);
    made[1]?.resolve(catalog(2));
    expect(idsIn(await second)).toEqual([bank(2).id]);
  });

  it('keeps the reading that began last where an earlier one ends after it', async () => {
    let now = 0;
    const { made, rest } = calls();
    const cache = createBankCache(BANK_FIELD_NAMES, 1_000, () => now);
    const slow = cache.read(rest);
    now = 500;
    const quick = cache.read(rest);
    made[1]?.resolve(catalog(2));
    await quick;
    made[0]?.resolve(catalog(1));
    expect(idsIn(await slow)).toEqual([bank(1).id]);
    now = 1_499;
    expect(idsIn(await cache.read(rest))).toEqual([bank(2).id]);
    expect(made).toHaveLength(2);
  });
});
