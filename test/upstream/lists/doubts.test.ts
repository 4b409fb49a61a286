import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { leaverOf } from '../../../src/common/waiters.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import { fixedCredential } from '../../../src/upstream/call/credential.ts';
import { type ClientLists, createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { CLIENT_ID, json, startUpstream, type Upstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

const SIZE = 1_000;
const PAGE = 100;
const MAX_AGE_MS = 5_000;
/** A call that tells how pages are counted, all pages, and all of them again to see that nothing has moved. */
const WALK = 1 + 2 * (SIZE / PAGE);

const item = (number: number) => ({ id: `account-${number}`, ownerId: `owner-${Math.floor(number / 2)}` });

let items: ReturnType<typeof item>[];
/** What a token sees, where that is not all. */
let seenBy: ReadonlyMap<string, typeof items>;
let upstream: Upstream;
let lists: ClientLists;
let now: number;
/** Pages wait for this. */
let gate: Promise<void> | undefined;
/** Called with each request and its number. @returns a status other than 200. */
let beforeAnswer: (request: IncomingMessage, number: number) => number | undefined;
/** What an answer with another status says of when to come back. */
let retryAfter: string | undefined;
/** What comes for a page beyond the end: a page without items, the last page again, or this status. */
let beyondEnd: 'no items' | 'the last page' | number;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const status = beforeAnswer(request, upstream.requests.length);
  const query = new URL(request.url ?? '', 'http://x').searchParams;
  const perPage = Math.min(PAGE, Number(query.get('per_page') ?? 50));
  const seen = seenBy.get(request.headers.authorization ?? '') ?? items;
  const asked = Number(query.get('page') ?? 1);
  const last = Math.ceil(seen.length / perPage);
  if (asked > last && typeof beyondEnd === 'number') return json(response, {}, beyondEnd);
  const page = beyondEnd === 'the last page' ? Math.min(asked, last) : asked;
  const data = seen.slice((page - 1) * perPage, page * perPage);
  if (query.has('per_page')) await gate;
  if (retryAfter !== undefined && status !== undefined) response.setHeader('retry-after', retryAfter);
  if (status === undefined) json(response, { data, currentPage: page, perPage, totalItem: seen.length });
  else json(response, {}, status);
}

beforeEach(async () => {
  items = Array.from({ length: SIZE }, (_, index) => item(index));
  seenBy = new Map();
  now = 0;
  gate = undefined;
  retryAfter = undefined;
  beyondEnd = 'no items';
  beforeAnswer = () => undefined;
  lists = createClientLists({
    maxAgeMs: MAX_AGE_MS,
    now: () => now,
    logger: silentLogger,
    onOutdated: () => undefined,
  });
  upstream = await startUpstream((request, response) => void answer(request, response));
});
afterEach(() => upstream[Symbol.asyncDispose]());

/** A new operation of somebody with a token. */
const operation = (token = 'token') =>
  createPlacedLoader(
    upstream.restOf({ identity: token, authorize: fixedCredential({ authorization: `Bearer ${token}` }) }),
    ACCOUNT_LIST,
    { lists },
  );
const find = async (id: string) => operation().find('id', id);

/** How many calls it takes to say that an item is not there. */
async function absent(): Promise<number> {
  const before = upstream.requests.length;
  expect(await find('nobody')).toBeNull();
  return upstream.requests.length - before;
}

it('a change that is told while a list is gone through is not forgotten with its end', async () => {
  beforeAnswer = (_, number) => {
    if (number !== WALK) return undefined;
    // The last page: those before it have been read again.
    items[5] = item(6_000);
    lists.markChanged(CLIENT_ID);
    return undefined;
  };
  expect(await find('account-900')).toMatchObject({ id: 'account-900' });
  expect(await find('account-6000')).toMatchObject({ id: 'account-6000' });
});

it('a list is believed from when it was last read on, however long that took', async () => {
  beforeAnswer = (_, number) => {
    if (number === WALK) now += MAX_AGE_MS + 1;
    return undefined;
  };
  await find('account-900');
  // The ends are read, and that takes long as well.
  let isSlow = true;
  beforeAnswer = () => {
    if (isSlow) now += MAX_AGE_MS + 1;
    isSlow = false;
    return undefined;
  };
  expect(await absent()).toBe(2);
  expect(await absent()).toBe(2);
  expect(await absent()).toBe(0);
});

it('a list that was doubted is doubted still when the look at it fails, twice', async () => {
  await find('account-0');
  for (const number of [7_000, 7_001]) {
    items[SIZE - 1] = item(number);
    lists.markChanged(CLIENT_ID);
    beforeAnswer = () => 500;
    await expect(find(`account-${number}`)).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    beforeAnswer = () => undefined;
    expect(await find(`account-${number}`)).toMatchObject({ id: `account-${number}` });
  }
});

it('nobody believes what was known before a change while somebody else asks about it', async () => {
  await find('account-0');
  items.push(item(7_000));
  lists.markChanged(CLIENT_ID);
  const both = await Promise.all([find('account-7000'), find('account-7000')]);
  expect(both).toEqual([item(7_000), item(7_000)]);
});

it.each(['known', 'not known'])(
  'what a list that was %s shows right after a change is believed by nobody who asks later',
  async (before) => {
    if (before === 'known') await find('account-0');
    lists.markChanged(CLIENT_ID);
    expect(await find('account-7000')).toBeNull();
    items.push(item(7_000));
    now += MAX_AGE_MS - 1;
    expect(await find('account-7000')).toMatchObject({ id: 'account-7000' });
    // From now on the service shows what was changed.
    now += 2;
    expect([await absent(), await absent()]).toEqual([2, 0]);
  },
);

it('what a list showed right after a change is not believed later because another client has changed something', async () => {
  await find('account-0');
  lists.markChanged(CLIENT_ID);
  now += 1_000;
  expect(await find('account-7000')).toBeNull();
  items.push(item(7_000));
  // The change is older than 5 s from now on. What was read right after it is younger than its greatest age.
  now += 4_001;
  lists.markChanged('another client');
  expect(await find('account-7000')).toMatchObject({ id: 'account-7000' });
});

it('an item that has moved to the end is not taken for all that has come', async () => {
  await find('account-0');
  items[450] = item(7_000);
  items = [...items, item(450)];
  now += MAX_AGE_MS + 1;
  expect(await find('account-7000')).toMatchObject({ id: 'account-7000' });
});

it('a window whose pages show the list before a change and after it is read again', async () => {
  await find('account-0');
  const before = upstream.requests.length;
  beforeAnswer = (_, number) => {
    if (number === before + 2) items = [...items, item(7_000)];
    return undefined;
  };
  expect(await operation().window(50, 100)).toMatchObject({ total: SIZE + 1 });
});

it('a look at the ends of a list that has been gone through anew meanwhile has it gone through no third time', async () => {
  await find('account-0');
  items[0] = item(7_000);
  now += MAX_AGE_MS + 1;
  const opened = Promise.withResolvers<void>();
  gate = opened.promise;
  const before = upstream.requests.length;
  const looking = find('nobody');
  await until(() => upstream.requests.length === before + 2);
  gate = undefined;
  const reader = new ListReader(
    upstream.restOf({ identity: 'token' }),
    ACCOUNT_LIST,
    lists.paging(ACCOUNT_LIST),
  );
  await lists.of(CLIENT_ID, ACCOUNT_LIST, '').walk(reader);
  const walked = upstream.requests.length;
  opened.resolve();
  expect(await looking).toBeNull();
  expect(upstream.requests).toHaveLength(walked);
});

it('a look at the ends that all have left does not hide the one begun after it from those who come then', async () => {
  await find('account-0');
  now += MAX_AGE_MS + 1;
  const opened = Promise.withResolvers<void>();
  gate = opened.promise;
  const before = upstream.requests.length;
  let closed = 0;
  // The two calls of the look that is left.
  const endedEarly = before + 2;
  beforeAnswer = ({ socket }, number) => {
    if (number <= endedEarly) socket.once('close', () => (closed += 1));
    return undefined;
  };
  const left = new AbortController();
  const look = (leaver?: AbortController, onCall = () => undefined as unknown) => {
    const rest = upstream.restOf({
      ...{ identity: 'token', onCall },
      ...(leaver === undefined ? {} : { leaver: leaverOf(leaver.signal) }),
    });
    const places = lists.of(CLIENT_ID, ACCOUNT_LIST, '');
    return places.ensureComplete(
      new ListReader(rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST)),
      places.moment(),
    );
  };
  const leaving = expect(look(left)).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  await until(() => upstream.requests.length === endedEarly);
  left.abort();
  const second = look();
  await leaving;
  await until(() => closed === 2 && upstream.requests.length === before + 4);
  let calls = 0;
  const third = look(undefined, () => (calls += 1));
  opened.resolve();
  await Promise.all([second, third]);
  expect(calls).toBe(0);
});

it('one whose token is refused while it goes through a list fails alone: who waits for that goes on itself', async () => {
  const opened = Promise.withResolvers<void>();
  beforeAnswer = ({ url = '', headers }) => {
    const isRefused = headers.authorization === 'Bearer refused' && url.includes('per_page');
    gate = isRefused ? opened.promise : undefined;
    return isRefused ? 401 : undefined;
  };
  const refused = Promise.resolve(operation('refused').find('id', 'account-7'));
  const failed = expect(refused).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await until(() => upstream.requests.some((url) => url.includes('per_page')));
  const before = upstream.requests.length;
  const waiting = Promise.resolve(operation().find('id', 'account-7'));
  // It looks whether the list comes whole, and waits from then on.
  await until(() => upstream.requests.length > before);
  await upstream.rest.get('/v1/banks');
  opened.resolve();
  await failed;
  expect(await waiting).toMatchObject({ id: 'account-7' });
});

it('all that somebody has is looked for afresh in an operation that has found one of it', async () => {
  await find('account-0');
  const loader = operation();
  expect(await loader.find('ownerId', 'owner-7')).toMatchObject({ id: 'account-14' });
  items.push({ ...item(8_000), ownerId: 'owner-7' });
  lists.markChanged(CLIENT_ID);
  const all = await loader.where('ownerId', 'owner-7');
  expect(all.map(({ id }) => id)).toEqual(['account-14', 'account-15', 'account-8000']);
});

it('an item that moves between two reads of a look, and is seen twice, hides no other', async () => {
  // Two of one owner stand on both sides of the end of a page.
  items[100] = { ...item(100), ownerId: 'owner-49' };
  items[98] = { ...item(98), ownerId: 'owner-7' };
  await find('account-0');
  const [one, other] = [items[99], items[100]] as const;
  if (one === undefined || other === undefined) throw new Error('the list is long enough');
  let hasMoved = false;
  const before = upstream.requests.length;
  beforeAnswer = () => {
    if (upstream.requests.length === before + 2 && !hasMoved) {
      hasMoved = true;
      [items[99], items[100]] = [other, one];
    }
    return undefined;
  };
  const all = await operation().where('ownerId', 'owner-49');
  expect(hasMoved).toBe(true);
  expect(all.map(({ id }) => id).sort()).toEqual(['account-100', 'account-99']);
});

it.each(['3600', '31'])(
  'a list is not waited for where the service asks to wait %s s: its word is told, and the next asks again',
  async (seconds) => {
    retryAfter = seconds;
    beforeAnswer = ({ url = '' }) => (url.includes('page=2') ? 429 : undefined);
    await expect(find('account-900')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
    beforeAnswer = () => undefined;
    expect(await find('account-900')).toMatchObject({ id: 'account-900' });
  },
);

it('a page that was asked for before the list was known to have grown does not raise a doubt', async () => {
  await find('account-0');
  const opened = Promise.withResolvers<void>();
  beforeAnswer = ({ url = '' }) => {
    gate = url.endsWith('per_page=10') ? opened.promise : undefined;
    return undefined;
  };
  const window = operation().window(0, 10);
  await until(() => upstream.requests.some((url) => url.endsWith('per_page=10')));
  beforeAnswer = () => undefined;
  gate = undefined;
  items = [...items, item(9_000)];
  now += MAX_AGE_MS + 1;
  expect(await absent()).toBeGreaterThan(0);
  opened.resolve();
  expect(await window).toMatchObject({ total: SIZE });
  expect(await absent()).toBe(0);
});

it('the page of an item that was asked for before the list was known to have grown does not raise a doubt', async () => {
  await find('account-0');
  const opened = Promise.withResolvers<void>();
  const isOfItem = (url = ''): boolean => url.endsWith('page=901&per_page=1');
  beforeAnswer = ({ url }) => {
    gate = isOfItem(url) ? opened.promise : undefined;
    return undefined;
  };
  const looked = find('account-900');
  await until(() => upstream.requests.some(isOfItem));
  items = [...items, item(9_000)];
  now += MAX_AGE_MS + 1;
  expect(await absent()).toBeGreaterThan(0);
  opened.resolve();
  expect(await looked).toMatchObject({ id: 'account-900' });
  expect(await absent()).toBe(0);
});

it('one whose token sees a part of the list makes nothing absent for one whose token sees all of it', async () => {
  seenBy = new Map([['Bearer restricted', items.slice(0, SIZE / 2)]]);
  expect(await operation('restricted').find('id', 'account-7')).toMatchObject({ id: 'account-7' });
  expect(await operation('restricted').find('id', 'account-900')).toBeNull();
  expect(await operation('full').find('id', 'account-900')).toMatchObject({ id: 'account-900' });
  expect((await operation('full').where('ownerId', 'owner-450')).map(({ id }) => id)).toEqual([
    'account-900',
    'account-901',
  ]);
  expect(await operation('restricted').find('id', 'account-900')).toBeNull();
  expect(await operation('full').find('id', 'nobody')).toBeNull();
});

it('each token asks once for what it is to believe, with the index of all', async () => {
  await operation('one').find('id', 'account-0');
  const calls = async (token: string) => {
    const before = upstream.requests.length;
    expect(await operation(token).find('id', 'nobody')).toBeNull();
    return upstream.requests.length - before;
  };
  expect([await calls('one'), await calls('other'), await calls('one'), await calls('other')]).toEqual([
    0, 2, 0, 0,
  ]);
});

describe.each(['no items', 'the last page', 404, 400] as const)(
  'a list that has lost its last page, where %s comes for one beyond the end',
  (comes) => {
    beforeEach(async () => {
      beyondEnd = comes;
      // One stands alone on the last page.
      items = items.slice(0, SIZE - PAGE + 1);
      await find('account-0');
      items.splice(5, 1);
    });
    const last = `account-${SIZE - PAGE}`;

    it('is gone through again by who asks for all that somebody has', async () => {
      now += MAX_AGE_MS + 1;
      const all = await operation().where('ownerId', 'owner-7');
      expect(all.map(({ id }) => id)).toEqual(['account-14', 'account-15']);
      expect(await absent()).toBe(0);
    });

    it('is gone through again by who asks for the one that stood there', async () => {
      expect(await find(last)).toMatchObject({ id: last });
    });

    it('fails nobody who asks in the same operation', async () => {
      const loader = operation();
      const found = await Promise.all(['account-7', 'account-5', last].map((id) => loader.find('id', id)));
      expect(found.map((account) => account?.id)).toEqual(['account-7', undefined, last]);
    });
  },
);

it('two that have changed places are found, though one is looked for beyond the end, which the service refuses', async () => {
  beyondEnd = 404;
  await find('account-0');
  const [one, other] = [items[130], items[880]];
  if (one === undefined || other === undefined) throw new Error('the list is long enough');
  [items[130], items[880]] = [other, one];
  expect(await find('account-880')).toMatchObject({ id: 'account-880' });
});

it.each([450, SIZE - 1])(
  'item %i that the service refuses to show is told as refused, and the list is not gone through for it',
  async (number) => {
    await find('account-0');
    const pages = [
      `page=${number + 1}&per_page=1`,
      `page=${Math.ceil((number + 1) / PAGE)}&per_page=${PAGE}`,
    ];
    beforeAnswer = ({ url = '' }) => (pages.some((page) => url.endsWith(page)) ? 400 : undefined);
    const before = upstream.requests.length;
    await expect(find(`account-${number}`)).rejects.toMatchObject({ code: 'REFUSED' });
    // The page, the first one of its size, and the two ends.
    expect(upstream.requests.length - before).toBeLessThanOrEqual(4);
    expect(await find('account-7')).toMatchObject({ id: 'account-7' });
  },
);
