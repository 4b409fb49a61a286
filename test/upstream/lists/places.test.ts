import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST, ACCOUNTS, type Account } from '../../../src/upstream/accounts.ts';
import { fixedCredential } from '../../../src/upstream/call/credential.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import { createRest, type Rest } from '../../../src/upstream/call/rest.ts';
import { type ClientLists, createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { PlaceIndex } from '../../../src/upstream/lists/place-index.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { CLIENT_ID, json, startUpstream, type Upstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

const SIZE = 1_000;
const PAGE = 100;
const MAX_AGE_MS = 5_000;

const item = (number: number) => ({
  id: `account-${number}`,
  instrumentId: `instrument-${number}`,
  accountNumber: `number-${number}`,
  clabeNumber: `clabe-${number}`,
  ownerId: `owner-${Math.floor(number / 2)}`,
});

let items: ReturnType<typeof item>[];
let upstream: Upstream;
let lists: ClientLists;
let now: number;
let logged: object[];
/** What was told of walks that ended. */
let walks: unknown[];
/** Pages wait for this. */
let gate: Promise<void> | undefined;
let beforeAnswer: () => void;
/** By how much the service's totals are wrong. */
let totalOff: number;
/** The largest page that the service gives. */
let largest: number;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  beforeAnswer();
  const query = new URL(request.url ?? '', 'http://x').searchParams;
  if (query.has('per_page')) await gate;
  const page = Number(query.get('page') ?? 1);
  const perPage = Math.min(largest, Number(query.get('per_page') ?? 50));
  const data = items.slice((page - 1) * perPage, page * perPage);
  json(response, { data, currentPage: page, perPage, totalItem: items.length + totalOff });
}

const start = async (options?: { operationTimeoutMs: number }) => {
  upstream = await startUpstream((request, response) => void answer(request, response), options);
};
beforeEach(async () => {
  items = Array.from({ length: SIZE }, (_, index) => item(index));
  now = 0;
  logged = [];
  walks = [];
  gate = undefined;
  beforeAnswer = () => undefined;
  totalOff = 0;
  largest = PAGE;
  lists = createClientLists({
    maxAgeMs: MAX_AGE_MS,
    now: () => now,
    onOutdated: () => undefined,
    logger: {
      ...silentLogger,
      debug: (fields, message) => void logged.push({ ...fields, level: 'debug', message }),
      info: (fields, message) => void logged.push({ ...fields, level: 'info', message }),
    },
    onWalked: (...walk) => walks.push(walk),
  });
  await start();
});
afterEach(() => upstream[Symbol.asyncDispose]());

/** A new operation. */
const operation = () => createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists });
/** A new operation of a caller that is narrowed to one owner. */
const narrowed = () =>
  createPlacedLoader(upstream.rest, ACCOUNT_LIST, {
    lists,
    owned: { key: 'ownerId', customerId: 'owner-7', isSeen: ({ ownerId }) => ownerId === 'owner-7' },
  });
const ids = (found: readonly Account[]) => found.map(({ id }) => id);

/** How many calls something takes. */
async function callsOf(work: () => unknown): Promise<number> {
  const before = upstream.requests.length;
  await work();
  return upstream.requests.length - before;
}

describe('where the items of a large list stand', () => {
  it('is found out once for all who wait', async () => {
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, index) => operation().find('id', `account-${index * 50}`)),
    );
    expect(found.map((account) => account?.id)).toEqual(
      Array.from({ length: 20 }, (_, index) => `account-${index * 50}`),
    );
    const walked = upstream.requests.filter((request) => request.includes(`per_page=${PAGE}`));
    // Ten pages, and those again to see that nothing has moved.
    expect(walked.length).toBe(20);
  });

  it.each([
    ['the part of a narrowed caller', () => narrowed().window(0, 10)],
    ['an item that is not there', () => operation().find('id', 'nobody')],
    ['all items of an owner', () => operation().where('ownerId', 'nobody')],
  ])('is found out once for %s, though nothing is believed', async (_what, ask) => {
    lists = createClientLists({
      maxAgeMs: 0,
      // A clock that never stands still.
      now: () => ++now,
      onOutdated: () => undefined,
      logger: silentLogger,
    });
    await ask();
    const walked = upstream.requests.filter((request) => request.includes(`per_page=${PAGE}`));
    expect(walked.length).toBeLessThanOrEqual(2 * (SIZE / PAGE) + 1);
    // What was read before it was asked for shows nothing of it.
    expect(await callsOf(ask)).toBeGreaterThanOrEqual(2 * (SIZE / PAGE));
  });

  it('is found out by the next of those who wait, where the calls of the one before fail', async () => {
    const places = lists.of(CLIENT_ID, ACCOUNT_LIST, '');
    const readerOf = (rest: Rest) => new ListReader(rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST));
    const credential = Promise.withResolvers<undefined>();
    const refused = places.walk(readerOf(upstream.restOf({ authorize: () => credential.promise })));
    const other = places.index(readerOf(upstream.rest));
    credential.reject(new UpstreamError('UNAUTHENTICATED', 'no'));
    await expect(refused).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect((await other).size).toBe(SIZE);
  });

  it.each([
    ['id', 'account-437'],
    ['instrumentId', 'instrument-437'],
    ['accountNumber', 'number-437'],
    ['clabeNumber', 'clabe-437'],
  ] as const)('makes a look-up by %s one call', async (key, value) => {
    await operation().find('id', 'account-0');
    expect(
      await callsOf(async () =>
        expect(await operation().find(key, value)).toMatchObject({ id: 'account-437' }),
      ),
    ).toBe(1);
    expect(
      await callsOf(async () =>
        expect(ids(await operation().where('ownerId', 'owner-7'))).toEqual(['account-14', 'account-15']),
      ),
    ).toBe(1);
  });

  it('makes many rows as few calls as pages hold them', async () => {
    await operation().find('id', 'account-0');
    const loader = operation();
    const rows = Array.from({ length: 100 }, (_, index) => `account-${250 + index}`);
    expect(
      await callsOf(async () =>
        expect((await Promise.all(rows.map((id) => loader.find('id', id)))).map((row) => row?.id)).toEqual(
          rows,
        ),
      ),
    ).toBe(2);
  });

  it('says what is absent without a call while it is believed, with two after that', async () => {
    await operation().find('id', 'account-0');
    const absent = () => callsOf(async () => expect(await operation().find('id', 'nobody')).toBeNull());
    expect(await absent()).toBe(0);
    now += MAX_AGE_MS + 1;
    expect(await absent()).toBe(2);
    expect(await absent()).toBe(0);
  });

  it('is made new once it is too old to be confirmed', async () => {
    await operation().find('id', 'account-0');
    now += 13 * MAX_AGE_MS;
    // One shows how pages are counted now.
    expect(await callsOf(() => operation().find('id', 'nobody'))).toBe(21);
  });

  it.each([
    ['at its head', () => items.unshift(item(2_000), item(2_001))],
    ['at its end', () => items.push(item(2_000), item(2_001))],
  ])('takes few calls to follow a list that grows %s', async (_, grow) => {
    await operation().find('id', 'account-0');
    grow();
    now += MAX_AGE_MS + 1;
    expect(
      await callsOf(async () => {
        expect(ids(await operation().where('ownerId', 'owner-1000'))).toEqual([
          'account-2000',
          'account-2001',
        ]);
        expect(await operation().find('id', 'account-500')).toMatchObject({ id: 'account-500' });
        expect(await operation().find('id', 'nobody')).toBeNull();
      }),
    ).toBeLessThanOrEqual(8);
  });

  it('is made new where the list has grown at its head and its end has changed too', async () => {
    await operation().find('id', 'account-0');
    items.unshift(item(2_000));
    items[items.length - 1] = item(2_001);
    now += MAX_AGE_MS + 1;
    expect(await operation().find('id', 'account-2001')).toMatchObject({ id: 'account-2001' });
  });

  it('is doubted as soon as a page shows another total', async () => {
    await operation().find('id', 'account-0');
    items.splice(500, 0, item(3_000));
    expect(await operation().find('id', 'account-3')).toMatchObject({ id: 'account-3' });
    expect(await operation().find('id', 'account-3000')).toMatchObject({ id: 'account-3000' });
  });

  it('is doubted after a caller’s own write, and when an event speaks of an item that it does not have', async () => {
    await operation().find('id', 'account-0');
    items.push(item(5_000));
    lists.noteItem(CLIENT_ID, ACCOUNTS, 'clabeNumber', 'clabe-17');
    expect(await operation().find('id', 'account-5000')).toBeNull();
    lists.noteItem(CLIENT_ID, ACCOUNTS, 'clabeNumber', 'clabe-5000');
    expect(await operation().find('id', 'account-5000')).toMatchObject({ id: 'account-5000' });
    items.push(item(5_001));
    lists.markChanged(CLIENT_ID);
    expect(await operation().find('id', 'account-5001')).toMatchObject({ id: 'account-5001' });
  });

  it('is doubted once in ten seconds for an item that events name and the service does not list', async () => {
    await operation().find('id', 'account-0');
    const nobody = async () => expect(await operation().find('id', 'nobody')).toBeNull();
    const named = async () => {
      lists.noteItem(CLIENT_ID, ACCOUNTS, 'clabeNumber', 'clabe of nobody');
      await nobody();
    };
    expect(await callsOf(nobody)).toBe(0);
    expect(await callsOf(named)).toBe(2);
    expect(await callsOf(named)).toBe(0);
    items.push(item(6_000));
    lists.noteItem(CLIENT_ID, ACCOUNTS, 'clabeNumber', 'clabe-6000');
    expect(await operation().find('id', 'account-6000')).toMatchObject({ id: 'account-6000' });
  });

  it('finds what has moved', async () => {
    await operation().find('id', 'account-0');
    const [moved] = items.splice(900, 1);
    if (moved !== undefined) items.splice(50, 0, moved);
    expect(await operation().find('id', 'account-900')).toMatchObject({ id: 'account-900' });
    expect(await operation().find('id', 'account-500')).toMatchObject({ id: 'account-500' });
    items.reverse();
    expect(await operation().find('id', 'account-1')).toMatchObject({ id: 'account-1' });
  });

  it('is found out to the end although the operation that began it is over', async () => {
    await upstream[Symbol.asyncDispose]();
    // Longer than a machine stands still: the walk has to begin before it is over.
    await start({ operationTimeoutMs: 8_000 });
    const opened = Promise.withResolvers<void>();
    gate = opened.promise;
    const late = await Promise.resolve(operation().find('id', 'account-0')).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(UpstreamError);
    expect(late).toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    opened.resolve();
    const rest = createRest({
      http: upstream.http,
      clientId: CLIENT_ID,
      requester: { caller: 'caller', group: 'caller' },
      authorize: fixedCredential({}),
      headers: {},
      timeoutMs: 30_000,
      deadline: Date.now() + 250_000,
    });
    await until(() => lists.of(CLIENT_ID, ACCOUNT_LIST, '').known !== undefined);
    const next = createPlacedLoader(rest, ACCOUNT_LIST, { lists });
    expect(
      await callsOf(async () =>
        expect(await next.find('id', 'account-5')).toMatchObject({ id: 'account-5' }),
      ),
    ).toBe(1);
  });

  it('is told in the log while it takes long', async () => {
    // By the clock that measures it, the fifth answer is long in coming.
    beforeAnswer = () => {
      if (upstream.requests.length === 5) now += 6_000;
    };
    await operation().find('id', 'account-0');
    const told = { level: 'info', route: ACCOUNTS, clientId: CLIENT_ID };
    expect(logged).toEqual([
      { ...told, message: 'A list is being read', seen: expect.any(Number), total: SIZE },
      { ...told, message: 'A list has been read', items: SIZE, milliseconds: 6_000 },
    ]);
    expect(walks).toEqual([[ACCOUNTS, 'ok', 6_000]]);
  });

  it('is told at debug, and counted, also where it takes no time worth a line', async () => {
    beforeAnswer = () => {
      now += 50;
    };
    await operation().find('id', 'account-0');
    expect(walks).toEqual([[ACCOUNTS, 'ok', expect.any(Number)]]);
    const milliseconds = (walks as [[string, string, number]])[0][2];
    expect(milliseconds).toBeGreaterThan(0);
    expect(logged).toEqual([
      {
        level: 'debug',
        message: 'A list has been read',
        route: ACCOUNTS,
        clientId: CLIENT_ID,
        items: SIZE,
        milliseconds,
      },
    ]);
  });

  it('is told and counted too where the list could not be read to its end', async () => {
    // The service says that there is one more than its pages show.
    totalOff = 1;
    await expect(operation().find('id', 'account-0')).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
    expect(walks).toEqual([[ACCOUNTS, 'error', 0]]);
    expect(logged).toEqual([
      expect.objectContaining({ level: 'debug', route: ACCOUNTS, milliseconds: 0, code: 'UPSTREAM_INVALID' }),
    ]);
  });
});

describe('a service that gives smaller pages for a while', () => {
  const window = () => callsOf(() => operation().window(300, 60));

  it('is asked for full ones again a minute later', async () => {
    await operation().find('id', 'account-0');
    expect(await window()).toBe(1);
    largest = 20;
    expect(await window()).toBeGreaterThan(3);
    largest = PAGE;
    expect(await window()).toBe(3);
    now += 60_001;
    // One more shows how pages are counted now.
    expect(await window()).toBe(2);
    // That makes a walk as short as it was, too.
    expect(await callsOf(() => operation().find('id', 'nobody'))).toBe(20);
  });

  it('has its list gone through again: what it calls the last page is not the end', async () => {
    await operation().find('id', 'account-0');
    largest = PAGE / 2;
    items[SIZE - 1] = item(7_000);
    now += MAX_AGE_MS + 1;
    expect(await operation().find('id', 'account-7000')).toMatchObject({ id: 'account-7000' });
  });

  it('and goes on to, costs one call more in a minute, beside that which shows how pages are counted', async () => {
    largest = 20;
    await operation().find('id', 'account-0');
    for (const calls of [3, 3]) {
      expect(await window()).toBe(calls);
      now += 60_001;
      expect(await window()).toBe(calls + 2);
    }
  });
});

describe('the index of places', () => {
  it('holds a million items of five keys in less than 200 bytes each, and finds every one', () => {
    const count = 1_000_000;
    const index = new PlaceIndex(ACCOUNT_LIST.keys, count);
    for (let number = 0; number < count; number += 1) index.add(number, item(number));
    expect(index.size).toBe(count);
    expect(index.bytes / count).toBeLessThan(200);
    for (let number = 0; number < count; number += 997) {
      const { id, clabeNumber, ownerId } = item(number);
      expect(index.places('id', id)).toEqual([number]);
      expect(index.places('clabeNumber', clabeNumber)).toEqual([number]);
      expect(index.places('ownerId', ownerId)).toContain(number);
    }
    expect(index.places('id', 'nobody')).toEqual([]);
  });

  it('grows beyond what was expected of it, and moves with what is put before it', () => {
    const index = new PlaceIndex(['id', 'ownerId'], 0);
    for (let number = 0; number < 5_000; number += 1)
      index.add(number, { id: `id ${number}`, ownerId: 'one' });
    expect(index.places('ownerId', 'one')).toHaveLength(5_000);
    index.shift(2);
    index.add(0, { id: 'new', ownerId: 'other' });
    expect(index.placeOf('id 0')).toBe(2);
    expect(index.placeOf('new')).toBe(0);
    expect(index.add(77, { id: 'id 0' })).toBe(false);
    expect(index.placeOf('id 0')).toBe(77);
    expect(index.bytes / 5_000).toBeLessThan(200);
  });
});
