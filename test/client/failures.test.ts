import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { ApolloClient, ApolloLink, gql, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import { Environment, RecordSource, Store } from 'relay-runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipe, subscribe } from 'wonka';
import { WebSocket } from 'ws';
import { apolloSource, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { type ConnectionEvent, createSocket, type Socket } from '../../packages/client/src/graphql-ws.ts';
import { type Answer, follow, type Source, typed } from '../../packages/client/src/index.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { createFakeGateway, createFakeSource } from '../../packages/client/src/testing.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { until } from '../helpers/until.ts';

/** A network that swallows everything. */
let hole: string;
let stop: () => void;
beforeAll(async () => {
  const server = createServer((connection) => connection.on('error', () => {}).resume()).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  hole = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  stop = () => server.close();
});
afterAll(() => stop());

const token = () => 'a token';
const EVENTS = 'subscription S($after: Cursor) { events(after: $after) { id cursor transaction { id } } }';
type Data = { readonly events: { readonly cursor: string; readonly transaction: unknown } };
const DOCUMENT = typed<Data, { readonly after: string | null }>(EVENTS);
const PARTIAL: Answer<unknown> = {
  data: { events: { __typename: 'CepEvent', id: '1', cursor: 'a', transaction: null } },
  errors: [{ message: 'Not yours.', extensions: { code: 'FORBIDDEN' } }],
};

/** A source over each library, beneath which the test answers. */
const LIBRARIES: Readonly<Record<string, (source: Source) => Source>> = {
  none: (source) => source,
  'Apollo Client': (source) =>
    apolloSource(new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) })),
  urql: (source) =>
    urqlSource(new Client({ url: hole, preferGetMethod: false, exchanges: [sourceExchange(source)] })),
};

it.each([...Object.keys(LIBRARIES), 'Relay'])(
  'a query over %s has what the gateway could not give beside what it could',
  async (library) => {
    const fake = createFakeSource();
    const environment = new Environment({
      network: createNetwork(fake),
      store: new Store(new RecordSource()),
    });
    const source = LIBRARIES[library]?.(fake) ?? relaySource(environment);
    const asked = source.query<unknown, object>('{ eventCursor bank(id: "x") { id } }', {});
    const answer = { data: { eventCursor: 'a', bank: null }, errors: [{ message: 'Not yours.' }] };
    (await until(() => fake.calls[0])).answer(answer);
    expect(await asked).toMatchObject(answer);
  },
);

it('a plain subscription of Relay is told of a gap, and ends with it, as its page says', async () => {
  const fake = createFakeSource();
  const failed = new Promise((_, reject) =>
    createNetwork(fake)
      .execute(
        { name: 'S', cacheID: '', id: null, metadata: {}, operationKind: 'subscription', text: EVENTS },
        { after: 'start' },
        {},
      )
      .subscribe({ next: (answer) => 'errors' in answer && reject(answer.errors?.[0]), error: reject }),
  );
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.next({ errors: [{ message: 'Gone.', extensions: { code: 'EVENTS_GAP', oldest: 'a', head: 'b' } }] });
  await expect(failed).rejects.toMatchObject({ extensions: { code: 'EVENTS_GAP' } });
});

describe.each(Object.keys(LIBRARIES))('a feed over %s', (library) => {
  it('comes back where the gateway refuses one stream too many, and ends where no retry helps', async () => {
    const fake = createFakeSource();
    const feed = follow(LIBRARIES[library]?.(fake) ?? fake, DOCUMENT, {
      store: { load: () => ({ cursor: 'start' }), save() {} },
    });
    const iterated = (async () => {
      for await (const _event of feed) expect.unreachable();
    })();
    const refuse = async (extensions: object) => {
      const { sink } = await until(() => fake.subscriptions[0]);
      sink.opened();
      sink.next({ errors: [{ message: 'Too many.', extensions: { code: 'TOO_COMPLEX', ...extensions } }] });
      sink.ended();
    };
    await refuse({ retryable: true });
    await refuse({ retryable: true });
    await refuse({});
    await expect(iterated).rejects.toMatchObject({ name: 'Refused', code: 'TOO_COMPLEX' });
  });

  it('hands on what the gateway could not give of an event, for that event alone', async () => {
    const fake = createFakeSource();
    const told: string[] = [];
    const seen: string[] = [];
    const feed = follow(LIBRARIES[library]?.(fake) ?? fake, DOCUMENT, {
      store: { load: () => ({ cursor: 'start' }), save() {} },
      onErrors: ([problem], event) => told.push(`${event.cursor} ${problem?.message}`),
    });
    void (async () => {
      for await (const { cursor } of feed) seen.push(cursor);
    })();
    const { sink } = await until(() => fake.subscriptions[0]);
    sink.opened();
    sink.next(PARTIAL);
    sink.next({
      data: { events: { __typename: 'CepEvent', id: '2', cursor: 'b', transaction: { id: 'x' } } },
    });
    await until(() => seen.length === 2);
    expect(told).toEqual(['a Not yours.']);
    feed.close();
  });

  it('has a subscription of its own beside another from the same place', async () => {
    const gateway = createFakeGateway();
    const beneath = gateway.connect();
    const source = LIBRARIES[library]?.(beneath) ?? beneath;
    const seen: string[] = [];
    const feeds = ['one', 'other'].map((name) => {
      const feed = follow(source, DOCUMENT, { store: { load: () => ({ cursor: 'place-0' }), save() {} } });
      void (async () => {
        for await (const { cursor } of feed) seen.push(`${name} ${cursor}`);
      })();
      return feed;
    });
    await until(() => feeds.every(({ status }) => status === 'live'));
    gateway.deliver({ id: '1' });
    await until(() => seen.length === 2);
    feeds[0]?.close();
    gateway.deliver({ id: '2' });
    await until(() => seen.includes('other place-2'));
    feeds[1]?.close();
    expect(seen).toEqual(['one place-1', 'other place-1', 'other place-2']);
  });
});

it('a plain subscription of Apollo Client respects errorPolicy, and of urql has each error once', async () => {
  const fake = createFakeSource();
  const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(fake) });
  const results: string[] = [];
  const variables = { after: 'start' };
  const options = { query: gql(EVENTS), variables, fetchPolicy: 'no-cache', errorPolicy: 'all' } as const;
  const subscription = client
    .subscribe(options)
    .subscribe(({ data, error }) => results.push(`${data !== undefined} ${error?.message}`));
  (await until(() => fake.subscriptions[0])).sink.next(PARTIAL);
  await until(() => results.length === 1);
  expect(results).toEqual(['true Not yours.']);
  subscription.unsubscribe();

  const urql = new Client({ url: hole, preferGetMethod: false, exchanges: [sourceExchange(fake)] });
  const messages: (string | undefined)[] = [];
  const { unsubscribe } = pipe(
    urql.subscription(EVENTS, variables),
    subscribe(({ error }) => messages.push(error?.graphQLErrors[0]?.message)),
  );
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.next(PARTIAL);
  sink.next({ data: { events: { id: '2', cursor: 'b', transaction: null } } });
  await until(() => messages.length === 2);
  expect(messages).toEqual(['Not yours.', undefined]);
  unsubscribe();
});

it('a gap is told to a plain subscription, which then goes on from the oldest event', async () => {
  const fake = createFakeSource();
  const urql = new Client({ url: hole, preferGetMethod: false, exchanges: [sourceExchange(fake)] });
  const results: unknown[] = [];
  const { unsubscribe } = pipe(
    urql.subscription(EVENTS, { after: 'start' }),
    subscribe(({ data, error }) => results.push(error?.graphQLErrors[0]?.extensions['code'] ?? data)),
  );
  const extensions = { code: 'EVENTS_GAP', oldest: 'oldest', head: 'head' };
  (await until(() => fake.subscriptions[0])).sink.next({ errors: [{ message: 'Gone.', extensions }] });
  const { variables, sink } = await until(() =>
    fake.subscriptions.find((one) => one.variables['after'] !== 'start'),
  );
  expect(variables).toMatchObject({ after: 'oldest' });
  sink.next({ data: { events: { id: '2', cursor: 'b' } } });
  await until(() => results.length === 2);
  expect(results).toMatchObject(['EVENTS_GAP', { events: { id: '2' } }]);
  unsubscribe();
});

it.each([
  ['no `after`', {}],
  ['`after` null', { after: null }],
])('a plain subscription with %s misses nothing that comes before its first event', async (_, given) => {
  const fake = createFakeSource();
  const urql = new Client({ url: hole, preferGetMethod: false, exchanges: [sourceExchange(fake)] });
  const { unsubscribe } = pipe(
    urql.subscription(EVENTS, given),
    subscribe(() => {}),
  );
  (await until(() => fake.calls[0])).answer({ data: { eventCursor: 'the end of the moment' } });
  const first = await until(() => fake.subscriptions[0]);
  first.sink.ended(new Error('The network is gone.'));
  const second = await until(() => fake.subscriptions.find((one) => one !== first));
  for (const { variables } of [first, second])
    expect(variables).toMatchObject({ after: 'the end of the moment' });
  unsubscribe();
});

it.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])('an event over %s is the same wherever the network cuts it, also within a letter', async (_, create) => {
  const name = 'José Núñez 🌮';
  const text = `event: next\ndata: ${JSON.stringify({ data: { name } })}\n\nevent: complete\ndata:\n\n`;
  const body = new ReadableStream({
    start(controller) {
      for (const byte of Buffer.from(text)) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  const seen: unknown[] = [];
  const ended = Promise.withResolvers<unknown>();
  const sink = {
    opened() {},
    bookmark() {},
    next: (answer: unknown) => seen.push(answer),
    ended: ended.resolve,
  };
  create({ url: 'http://gateway/graphql', token, fetch }).subscribe(DOCUMENT, { after: 'start' }, sink);
  expect(await ended.promise).toBeUndefined();
  expect(seen).toEqual([{ data: { name } }]);
});

it('a query over fetch ends in a network that swallows everything, and says so', async () => {
  const source = createFetch({ url: hole, token, answerMs: 300 });
  await expect(source.query('{ __typename }', {})).rejects.toThrow('No answer came.');
});

it('what breaks a connection is an error that can be read, in Apollo Client as well', async () => {
  // Nobody listens at this port.
  const url = 'http://127.0.0.1:9/graphql';
  const told: ConnectionEvent[] = [];
  const onConnection = (event: ConnectionEvent) => told.push(event);
  for (const source of [
    createSocket({ url, token, onConnection }),
    createFetch({ url, token, onConnection }),
  ]) {
    const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
    const failed = await client.query({ query: gql('{ eventCursor }') }).catch((cause: Error) => cause);
    expect(String(failed)).toMatch(/CORS_ORIGINS/);
    expect(String(failed)).not.toMatch(/unexpected shape|\[object/);
    const urql = new Client({ url, preferGetMethod: false, exchanges: [sourceExchange(source)] });
    const { error } = await urql.query('{ eventCursor }', {}).toPromise();
    expect(error?.message).toMatch(/CORS_ORIGINS/);
  }
  expect(told).toMatchObject([{ state: 'lost' }, { state: 'lost' }]);
});

it('a socket of ws that is left while it connects ends nothing but itself', async () => {
  const failures: unknown[] = [];
  const fail = (cause: unknown) => failures.push(cause);
  process.on('uncaughtException', fail);
  const socket = createSocket({
    url: hole,
    token,
    webSocketImpl: WebSocket,
    heartbeat: { everyMs: 1_000, withinMs: 100 },
  });
  const feed = follow(socket, DOCUMENT, { store: { load: () => ({ cursor: 'start' }), save() {} } });
  const problems = new Set<string>();
  feed.onChange(() => feed.problem !== undefined && problems.add(String(feed.problem)));
  void (async () => {
    for await (const _ of feed);
  })();
  await until(() => problems.size > 0);
  feed.resume();
  await socket.query('{ __typename }', {}).catch(() => {});
  expect([...problems]).toContainEqual(expect.stringMatching(/4499/));
  feed.close();
  socket.close();
  process.off('uncaughtException', fail);
  expect(failures).toEqual([]);
});

it('a socket that is closed while it connects to a gateway that is away leaves no rejection that nobody handles', async () => {
  const failures: unknown[] = [];
  const fail = (cause: unknown) => failures.push(cause);
  process.on('unhandledRejection', fail);
  for (const webSocketImpl of [WebSocket, undefined]) {
    const socket: Socket = createSocket({
      // Nobody listens at this port.
      url: 'http://127.0.0.1:9/graphql',
      async token() {
        await Promise.resolve();
        socket.close();
        return token();
      },
      webSocketImpl,
    });
    const answer = socket.query('{ __typename }', {});
    await expect(answer).rejects.toThrow('No WebSocket');
    // Node tells of a rejection that nobody has handled before it goes on to what was set meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
  }
  process.off('unhandledRejection', fail);
  expect(failures).toEqual([]);
});

it('the one that gives tokens is told that the last was refused, once', async () => {
  const asked: boolean[] = [];
  const fetch = async () =>
    new Response('{"errors":[{"message":"No.","extensions":{"code":"UNAUTHENTICATED"}}]}', {
      headers: { 'content-type': 'application/json' },
    });
  const source = createFetch({
    url: hole,
    fetch,
    token({ refused, signal }) {
      expect(signal.aborted).toBe(false);
      asked.push(refused);
      return 'a token';
    },
  });
  for (let count = 0; count < 2; count += 1) await source.query('{ __typename }', {});
  expect(asked).toEqual([false, true]);
});

it('the link keeps the name of an operation, its extensions and headers, and leaves what nobody waits for', async () => {
  const requests: { body: unknown; headers: Headers; signal: AbortSignal }[] = [];
  const fetch: typeof globalThis.fetch = (_, init) => {
    requests.push({
      body: JSON.parse(String(init?.body)),
      headers: new Headers(init?.headers),
      signal: init?.signal as AbortSignal,
    });
    return new Promise(() => {});
  };
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: new ApolloLink((operation, forward) => {
      operation.extensions['a'] = 1;
      return forward(operation);
    }).concat(createLink(createFetch({ url: hole, token, fetch }))),
  });
  const context = { headers: { 'x-trace': '7' } };
  const subscription = client
    .watchQuery({ query: gql('query Named { eventCursor }'), context })
    .subscribe(() => {});
  const [request] = await until(() => requests.length > 0 && requests);
  expect(request?.body).toMatchObject({ operationName: 'Named', extensions: { a: 1 } });
  expect(request?.headers.get('x-trace')).toBe('7');
  subscription.unsubscribe();
  await until(() => request?.signal.aborted === true);
});
