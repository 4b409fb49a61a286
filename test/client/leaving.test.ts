import { queryObjects } from 'node:v8';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import { Environment, Network, RecordSource, Store } from 'relay-runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pipe, subscribe } from 'wonka';
import { apolloSource, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch, type FetchOptions } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { follow, keyValueStore, type Source, typed } from '../../packages/client/src/index.ts';
import { nativePresence } from '../../packages/client/src/react-native.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { feedStore } from '../../packages/client/src/svelte.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';

const URL = 'http://gateway/graphql';
const QUERY = 'query Q { eventCursor }';
const EVENTS = 'subscription S($after: Cursor) { events(after: $after) { cursor } }';
const DOCUMENT = typed<{ readonly events: { readonly cursor: string } }, { readonly after: string }>(EVENTS);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});
/** Lets what has been set off come to its end, without the clock going on. */
const settle = () => vi.advanceTimersByTimeAsync(0);

const relayOf = (source: Source): Environment =>
  new Environment({ network: createNetwork(source), store: new Store(new RecordSource()) });

/** How an app asks with each library. @returns leaves. */
const QUERIES: Readonly<Record<string, (source: Source) => () => void>> = {
  'Apollo Client'(source) {
    const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
    const subscription = client.watchQuery({ query: gql(QUERY) }).subscribe(() => {});
    return () => subscription.unsubscribe();
  },
  urql(source) {
    const client = new Client({ url: URL, preferGetMethod: false, exchanges: [sourceExchange(source)] });
    return pipe(
      client.query(QUERY, {}),
      subscribe(() => {}),
    ).unsubscribe;
  },
  Relay(source) {
    const params = {
      id: null,
      cacheID: '',
      name: 'Q',
      operationKind: 'query',
      text: QUERY,
      metadata: {},
    } as const;
    return relayOf(source).getNetwork().execute(params, {}, {}).subscribe({}).unsubscribe;
  },
};

it.each(Object.keys(QUERIES))(
  'a query of %s that is left is given up beneath, without a word',
  async (library) => {
    const complained = vi.spyOn(console, 'error');
    const fake = createFakeSource();
    const leave = QUERIES[library]?.(fake);
    await settle();
    expect(fake.calls).toHaveLength(1);
    leave?.();
    await settle();
    expect(fake.calls).toHaveLength(0);
    expect(complained).not.toHaveBeenCalled();
  },
);

it('a query through Relay’s environment is given up beneath when its caller leaves', async () => {
  let left = 0;
  const network = Network.create(
    () =>
      ({
        subscribe: () => ({
          unsubscribe: () => {
            left += 1;
          },
          closed: false,
        }),
      }) as never,
  );
  const environment = new Environment({ network, store: new Store(new RecordSource()) });
  const leaving = new AbortController();
  const asked = relaySource(environment).query(QUERY, {}, leaving.signal);
  leaving.abort(new Error('left'));
  await expect(asked).rejects.toThrow('left');
  expect(left).toBe(1);
});

describe.each<[string, (fake: Source) => Source]>([
  [
    'Apollo Client',
    (fake) => apolloSource(new ApolloClient({ cache: new InMemoryCache(), link: createLink(fake) })),
  ],
  [
    'urql',
    (fake) => urqlSource(new Client({ url: URL, preferGetMethod: false, exchanges: [sourceExchange(fake)] })),
  ],
  ['Relay', (fake) => relaySource(relayOf(fake))],
])('a source over %s', (_, over) => {
  it('rejects a query whose caller leaves', async () => {
    const leaving = new AbortController();
    const asked = over(createFakeSource()).query(QUERY, {}, leaving.signal);
    const failed = expect(asked).rejects.toThrow();
    await settle();
    leaving.abort(new Error('left'));
    await failed;
  });
});

/** A `fetch` that answers nothing until the test does. */
function startFetch() {
  const requests: { readonly signal: AbortSignal; answer(response: Response): void }[] = [];
  const fetch: typeof globalThis.fetch = (_, init) =>
    new Promise((resolve, reject) => {
      // Both give one with each request.
      const signal = init?.signal as AbortSignal;
      signal.addEventListener('abort', () => reject(signal.reason));
      requests.push({ signal, answer: resolve });
    });
  return { fetch, requests };
}

const STREAMS: Readonly<Record<string, (options: Pick<FetchOptions, 'fetch' | 'onConnection'>) => Source>> = {
  fetch: (options) => createFetch({ url: URL, token: () => 'a token', ...options }),
  'graphql-sse': (options) => createEventStreams({ url: URL, token: () => 'a token', ...options }),
};

describe.each(Object.keys(STREAMS))('a stream over %s', (way) => {
  const start = () => {
    const { fetch, requests } = startFetch();
    const told: unknown[] = [];
    const states: string[] = [];
    const source = STREAMS[way]?.({ fetch, onConnection: ({ state }) => states.push(state) });
    if (source === undefined) throw new Error('it is one of these');
    const sink = {
      opened: () => told.push('opened'),
      next: (answer: unknown) => told.push(answer),
      bookmark: (cursor: string) => told.push(cursor),
      ended: (cause?: unknown) => told.push(cause ?? 'ended'),
    };
    return { source, requests, told, states, leave: source.subscribe(DOCUMENT, { after: 'start' }, sink) };
  };

  it('that is left gives up its request, and leaves no timer and no word behind', async () => {
    const { source, requests, told, states, leave } = start();
    await settle();
    expect(requests).toHaveLength(1);
    leave();
    source.check?.();
    await settle();
    expect(requests[0]?.signal.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([told, states]).toEqual([[], []]);
  });

  it('that is left once it has begun leaves no timer and no word behind either', async () => {
    const { requests, told, states, leave } = start();
    await settle();
    const [request] = requests;
    const body = new ReadableStream({
      start: (stream) => request?.signal.addEventListener('abort', () => stream.error(request.signal.reason)),
    });
    request?.answer(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    await expect.poll(() => told).toEqual(['opened']);
    leave();
    await settle();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([told, states]).toEqual([['opened'], ['open']]);
  });

  it('that has failed is kept by nobody', async () => {
    const source = STREAMS[way]?.({ fetch: () => Promise.reject(new Error('away')) });
    const fail = async () => {
      const ended = Promise.withResolvers<void>();
      const sink = { opened() {}, next() {}, bookmark() {}, ended: () => ended.resolve() };
      source?.subscribe(DOCUMENT, { after: 'start' }, sink);
      await ended.promise;
    };
    const objects = () => queryObjects(Object, { format: 'count' });
    const failing = async (count: number) => {
      for (let stream = 0; stream < count; stream += 1) await fail();
      await settle();
      return objects();
    };
    const before = await failing(100);
    expect((await failing(1_000)) - before).toBeLessThan(1_000);
  });

  it('ends where nothing answers for longer than the gateway is ever silent', async () => {
    const { told } = start();
    await vi.advanceTimersByTimeAsync(29_000);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(told).toMatchObject([expect.objectContaining({ message: expect.stringContaining('silent') })]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends at once, and once, when the network may be another one', async () => {
    const { source, told } = start();
    await settle();
    source.check?.();
    source.check?.();
    await settle();
    expect(told).toMatchObject([{ message: 'The network may be another one.' }]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('a query over fetch is given up when its caller leaves, and keeps no timer', async () => {
  const { fetch, requests } = startFetch();
  const leaving = new AbortController();
  const asked = createFetch({ url: URL, token: () => 'a token', fetch }).query(QUERY, {}, leaving.signal);
  const failed = expect(asked).rejects.toThrow('left');
  await settle();
  leaving.abort(new Error('left'));
  await failed;
  expect(requests[0]?.signal.aborted).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

it('an answer over HTTP that says when to come back says so in milliseconds', async () => {
  const { fetch, requests } = startFetch();
  const asked = createFetch({ url: URL, token: () => 'a token', fetch }).query(QUERY, {});
  await settle();
  const headers = { 'retry-after': '7', 'content-type': 'application/json' };
  requests[0]?.answer(
    new Response(
      `{"errors":[{"message":"No.","extensions":{"code":"RATE_LIMITED"}},
        {"message":"No.","extensions":{"code":"TOO_COMPLEX","retryAfterMs":250}}]}`,
      { headers },
    ),
  );
  // What an error says itself is nearer to it.
  expect(await asked).toMatchObject({
    errors: [
      { extensions: { code: 'RATE_LIMITED', retryAfterMs: 7_000 } },
      { extensions: { code: 'TOO_COMPLEX', retryAfterMs: 250 } },
    ],
  });
});

it('a feed that is suspended while more events wait than it takes stays so once they are read', async () => {
  const fake = createFakeSource();
  const store = { load: () => ({ cursor: 'start' }), save() {} };
  const feed = follow(fake, DOCUMENT, { store });
  const reader = feed[Symbol.asyncIterator]();
  let read = reader.next();
  await settle();
  const sink = fake.subscriptions[0]?.sink;
  for (let event = 1; fake.subscriptions.length > 0; event += 1) {
    sink?.next({ data: { events: { cursor: String(event) } } });
    await settle();
  }
  feed.suspend();
  let last: unknown;
  void (async () => {
    for (;;) {
      const { value, done } = await read;
      if (done === true) return;
      last = value;
      read = reader.next();
    }
  })();
  await settle();
  expect(fake.subscriptions).toEqual([]);
  feed.resume();
  await settle();
  expect(fake.subscriptions).toMatchObject([{ variables: { after: (last as { cursor: string }).cursor } }]);
  feed.close();
});

it('an app in the background leaves the gateway, and comes back with itself and with its network', () => {
  const heard = { app: new Set<(state: string) => void>(), network: new Set<(state: object) => void>() };
  const listenTo = <Listener>(listeners: Set<Listener>, listener: Listener) => {
    listeners.add(listener);
    return { remove: () => void listeners.delete(listener) };
  };
  const told: string[] = [];
  const absent = nativePresence(
    { addEventListener: (_, listener) => listenTo(heard.app, listener) },
    { addNetworkStateListener: (listener) => listenTo(heard.network, listener) },
  )({ suspend: () => told.push('suspend'), resume: () => told.push('resume') });
  for (const state of ['inactive', 'background', 'active']) for (const hear of heard.app) hear(state);
  expect(told.splice(0)).toEqual(['suspend', 'resume']);
  for (const isConnected of [false, null, true]) for (const hear of heard.network) hear({ isConnected });
  expect(told).toEqual(['resume']);
  absent();
  // One listener to the network stays for as long as the app runs.
  expect([heard.app.size, heard.network.size]).toEqual([0, 1]);
});

it('a feed as a store is followed by the first subscriber, shown to the next, and left with the last, twice', async () => {
  const fake = createFakeSource();
  const values = new Map([['feed', '{"cursor":"start","events":[{"cursor":"start"}]}']]);
  const storage = {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => values.set(key, value),
  };
  const shown: unknown[] = [];
  const credits = feedStore(fake, DOCUMENT, { store: keyValueStore(storage, 'feed') });
  for (let round = 0; round < 2; round += 1) {
    const leave = [credits.subscribe(() => {}), credits.subscribe(({ status }) => shown.push(status))];
    await settle();
    expect(shown.at(-1)).toBe('offline');
    expect(fake.subscriptions).toHaveLength(1);
    fake.subscriptions[0]?.sink.opened();
    fake.subscriptions[0]?.sink.bookmark('start');
    expect(shown.at(-1)).toBe('live');
    leave[0]?.();
    expect(fake.subscriptions).toHaveLength(1);
    leave[1]?.();
    await settle();
    expect(fake.subscriptions).toHaveLength(0);
  }
});

it('an attempt that ends while it is being made is left as well', async () => {
  let left = 0;
  const source: Source = {
    ...createFakeSource(),
    subscribe(_document, _variables, sink) {
      sink.ended(new Error('cut'));
      return () => {
        left += 1;
      };
    },
  };
  const feed = follow(source, DOCUMENT, {
    store: { load: () => ({ cursor: 'start' }), save() {} },
    presence: () => () => {},
  });
  void feed[Symbol.asyncIterator]().next();
  await settle();
  expect(left).toBe(1);
  feed.close();
});

it('a feed that is closed while it waits for its next try ends at once, and never tries again', async () => {
  const fake = createFakeSource();
  const feed = follow(fake, DOCUMENT, {
    store: { load: () => ({ cursor: 'start' }), save() {} },
    presence: () => () => {},
  });
  let isOver = false;
  void (async () => {
    for await (const _ of feed);
    isOver = true;
  })();
  await settle();
  fake.subscriptions[0]?.sink.ended(new Error('cut'));
  await settle();
  feed.close();
  await settle();
  expect(isOver).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
  expect(fake.subscriptions).toHaveLength(0);
});

it.each([
  ['its first place is asked for', undefined],
  ['its list is loaded', () => new Promise<never>(() => {})],
])('a feed that is closed while %s ends at once, and leaves no timer behind', async (_, getState) => {
  const fake = createFakeSource();
  const feed = follow(fake, DOCUMENT, { presence: () => () => {}, ...(getState && { getState }) });
  let isOver = false;
  void (async () => {
    for await (const _item of feed);
    isOver = true;
  })();
  await settle();
  if (getState) fake.calls[0]?.answer({ data: { eventCursor: 'start' } });
  await settle();
  feed.close();
  await settle();
  expect(isOver).toBe(true);
  expect(fake.calls).toEqual([]);
  expect(feed.problem).toBe(undefined);
  expect(vi.getTimerCount()).toBe(0);
});

it('a plain subscription that is left while its first place is asked for never begins', async () => {
  const fake = createFakeSource();
  const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(fake) });
  const subscription = client.subscribe({ query: gql(EVENTS), fetchPolicy: 'no-cache' }).subscribe(() => {});
  await settle();
  expect(fake.calls).toHaveLength(1);
  subscription.unsubscribe();
  await settle();
  fake.calls[0]?.answer({ data: { eventCursor: 'start' } });
  await settle();
  expect(fake.calls).toEqual([]);
  expect(fake.subscriptions).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

it('a feed whose connection stood for a while is connected again soon, however often that is cut', async () => {
  const fake = createFakeSource();
  const feed = follow(fake, DOCUMENT, {
    store: { load: () => ({ cursor: 'start' }), save() {} },
    presence: () => () => {},
  });
  const reading = feed[Symbol.asyncIterator]().next();
  for (let cuts = 0; cuts < 10; cuts += 1) {
    await vi.advanceTimersByTimeAsync(500);
    expect(fake.subscriptions).toHaveLength(1);
    fake.subscriptions[0]?.sink.opened();
    await vi.advanceTimersByTimeAsync(30_000);
    fake.subscriptions[0]?.sink.ended(new Error('The connection was cut.'));
  }
  feed.close();
  await reading;
});
