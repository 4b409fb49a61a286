import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import { afterEach, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { apolloSource, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import {
  type ConnectionEvent,
  ConnectionLost,
  createSocket,
  type Socket,
} from '../../packages/client/src/graphql-ws.ts';
import { follow, memoryIntents, pay, type Source, typed, watch } from '../../packages/client/src/index.ts';
import { createFakeSource, type FakeSource } from '../../packages/client/src/testing.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { until } from '../helpers/until.ts';

const EVENTS = 'subscription S($after: Cursor) { events(after: $after) { id cursor } }';
const DOCUMENT = typed<{ readonly events: { readonly cursor: string } }, { readonly after: string }>(EVENTS);
const QUERY = '{ eventCursor }';
/** A feed that has its place, so that it begins with its subscription. */
const PLACED = { store: { load: () => ({ cursor: 'start' }), save() {} }, presence: () => () => {} };
const NO_TOKEN = { errors: [{ message: 'No.', extensions: { code: 'UNAUTHENTICATED' } }] };
const GOOD = { data: { eventCursor: 'a' } };

let server: WebSocketServer | undefined;
let socket: Socket | undefined;
afterEach(() => {
  socket?.close();
  server?.close();
  for (const connection of server?.clients ?? []) connection.terminate();
});

/** A gateway at which each connection meets what the test says, one after another; the last says it of all others too. */
async function serve(...connections: ((connection: WebSocket, type: string, id: string) => void)[]) {
  server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    handleProtocols: () => 'graphql-transport-ws',
  });
  let count = 0;
  server.on('connection', (connection) => {
    const meet = connections[Math.min(count, connections.length - 1)];
    count += 1;
    connection.on('message', (data) => {
      const { type, id } = JSON.parse(String(data)) as { type: string; id: string };
      meet?.(connection, type, id);
    });
  });
  await once(server, 'listening');
  // It listens on a port.
  const { port } = server.address() as AddressInfo;
  return { url: `ws://127.0.0.1:${port}`, count: () => count };
}
const answering = (connection: WebSocket, type: string, id: string) => {
  if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
  if (type === 'subscribe') connection.send(JSON.stringify({ id, type: 'next', payload: GOOD }));
};

/** What each ask for a token is told, and what it gives: a function that throws gives none. */
function giver(...given: (() => string)[]) {
  const asked: boolean[] = [];
  return {
    asked,
    token({ refused }: { readonly refused: boolean }) {
      asked.push(refused);
      return (given.shift() ?? (() => 'one'))();
    },
  };
}
const away = (): string => {
  throw new Error('The network is away.');
};
const other = () => 'other';

const jsonOf = (answer: object) =>
  new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } });
const streamOf = (answer: object) =>
  new Response(`event: next\ndata: ${JSON.stringify(answer)}\n\nevent: complete\ndata:\n\n`, {
    headers: { 'content-type': 'text/event-stream' },
  });
const streamed = (source: Source) =>
  new Promise((resolve) => {
    source.subscribe(typed(EVENTS), {}, { opened() {}, next() {}, bookmark() {}, ended: resolve });
  });

it.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])(
  'over %s a stream that is refused blames its own token, not that of one which began later',
  async (_, create) => {
    const encoder = new TextEncoder();
    const refusals: (() => void)[] = [];
    const { asked, token } = giver(
      () => 't1',
      () => 't2',
      () => 't2',
    );
    const fetch = async () =>
      new Response(
        new ReadableStream({
          start(controller) {
            refusals.push(() =>
              controller.enqueue(
                encoder.encode(
                  `event: next\ndata: ${JSON.stringify(NO_TOKEN)}\n\nevent: complete\ndata:\n\n`,
                ),
              ),
            );
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      );
    const source = create({ url: 'http://gateway/graphql', token, fetch });
    const first = streamed(source);
    await until(() => refusals.length === 1);
    void streamed(source);
    await until(() => refusals.length === 2);
    refusals[0]?.();
    await first;
    void streamed(source);
    await until(() => asked.length === 3);
    expect(asked).toEqual([false, false, false]);
    source.check?.();
  },
);

it('the client of graphql-sse ends all streams of its source when it is disposed, and those that begin after', async () => {
  const open: AbortSignal[] = [];
  const fetch = async (_: unknown, init?: RequestInit) => {
    const { signal } = init ?? {};
    if (!signal) throw new Error('Nothing could end this stream.');
    open.push(signal);
    const body = new ReadableStream({
      start: (stream) => signal.addEventListener('abort', () => stream.error(signal.reason)),
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const source = createEventStreams({ url: 'http://gateway/graphql', token: () => 'a token', fetch });
  const both = [streamed(source), streamed(source)];
  await until(() => open.length === 2);
  source.client.dispose();
  // They were not complete.
  const disposed = expect.objectContaining({ name: 'ConnectionLost', message: 'The client was disposed.' });
  expect(await Promise.all(both)).toEqual([disposed, disposed]);
  expect(await streamed(source)).toEqual(disposed);
  expect(open.every(({ aborted }) => aborted)).toBe(true);
});

it('what is watched over graphql-sse does not end where its client is disposed before the final state', async () => {
  const state = { data: { transactionStatus: { status: 'INITIALIZED' } } };
  const fetch = async (_: unknown, init?: RequestInit) => {
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(new TextEncoder().encode(`event: next\ndata: ${JSON.stringify(state)}\n\n`));
        init?.signal?.addEventListener('abort', () => stream.error(init.signal?.reason));
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const source = createEventStreams({ url: 'http://gateway/graphql', token: () => 'a token', fetch });
  const document = typed<{ readonly transactionStatus: { readonly status: string } }>(
    'subscription { transactionStatus(transactionId: "x") { status } }',
  );
  const watched = watch(source, document, {}, () => () => {});
  const reader = watched[Symbol.asyncIterator]();
  expect((await reader.next()).value).toEqual({ status: 'INITIALIZED' });
  let isOver = false;
  const next = reader.next().then(() => {
    isOver = true;
  });
  const disposed = new Promise<void>((resolve) => {
    watched.onChange(() => watched.status === 'offline' && resolve());
  });
  source.client.dispose();
  await Promise.race([disposed, next]);
  expect(isOver).toBe(false);
  expect(watched.problem).toMatchObject({ message: 'The client was disposed.' });
  watched.close();
  await next;
});

describe.each([
  ['a query over fetch', createFetch, jsonOf, (source: Source) => source.query(QUERY, {})],
  ['a stream over fetch', createFetch, streamOf, streamed],
  ['a stream over graphql-sse', createEventStreams, streamOf, streamed],
])('with %s, the one that gives tokens', (_, create, form, ask) => {
  const run = async (given: (() => string)[], answers: (object | undefined)[]) => {
    const { asked, token } = giver(...given);
    const fetch = async () => {
      const answer = answers.shift();
      if (answer === undefined) throw new Error('The network is away.');
      return form(answer);
    };
    const source = create({ url: 'http://gateway/graphql', token, fetch });
    for (let left = answers.length + given.filter((give) => give === away).length; left > 0; left -= 1)
      await Promise.resolve(ask(source)).catch(() => {});
    return asked;
  };

  it('is told of a refusal until the token is accepted, whatever else fails in between', async () => {
    const one = () => 'one';
    const given = [one, one, away, one, one];
    expect(await run(given, [NO_TOKEN, undefined, GOOD, GOOD])).toEqual([false, true, true, true, false]);
  });

  it('is not told of an API key that is refused', async () => {
    const extensions = { code: 'UNAUTHENTICATED', header: 'x-api-key' };
    const noKey = { errors: [{ message: 'No.', extensions }] };
    expect(await run([], [noKey, noKey, GOOD])).toEqual([false, false, false]);
  });

  it('is asked for no third token where the second one was never seen by the gateway', async () => {
    const given = [() => 'one', other, other];
    expect(await run(given, [NO_TOKEN, undefined, GOOD])).toEqual([false, true, false]);
  });
});

it('with a socket, the one that gives tokens is told of a refusal until the token is accepted', async () => {
  const { url } = await serve(
    (connection) => connection.close(4403),
    (connection) => connection.terminate(),
    answering,
  );
  const one = () => 'one';
  const { asked, token } = giver(one, one, away, one, one);
  let ended = 0;
  const onConnection = ({ state }: ConnectionEvent) => {
    if (state === 'lost') ended += 1;
  };
  socket = createSocket({ url, token, onConnection });
  for (let time = 1; time <= 3; time += 1) {
    await expect(socket.query(QUERY, {})).rejects.toThrow();
    await until(() => ended === time);
  }
  expect(await socket.query(QUERY, {})).toEqual(GOOD);
  socket.client.terminate();
  expect(await socket.query(QUERY, {})).toEqual(GOOD);
  expect(asked).toEqual([false, true, true, true, false]);
});

it('with a socket that is asked while the gateway closes it with 4403, the refused token is not shown again, and the next one is no refused one', async () => {
  let closing: WebSocket | undefined;
  const { url } = await serve((connection, type, id) => {
    if (type !== 'subscribe') return answering(connection, type, id);
    closing = connection;
    connection.close(4403);
    // It does not hear the client's answer, so that the socket is closing for as long as the test wants.
    connection.pause();
  }, answering);
  const { asked, token } = giver();
  let made: globalThis.WebSocket | undefined;
  class Watched extends globalThis.WebSocket {
    constructor(...given: ConstructorParameters<typeof globalThis.WebSocket>) {
      super(...given);
      made ??= this;
    }
  }
  socket = createSocket({ url, token, webSocketImpl: Watched });
  const first = socket.query(QUERY, {}).catch((cause: unknown) => cause);
  await until(() => made?.readyState === globalThis.WebSocket.CLOSING);
  const second = socket.query(QUERY, {});
  closing?.resume();
  expect(await second).toEqual(GOOD);
  expect(await first).toBeInstanceOf(Error);
  expect(asked).toEqual([false, true]);
  // The gateway has taken that token since.
  socket.client.terminate();
  expect(await socket.query(QUERY, {})).toEqual(GOOD);
  expect(asked).toEqual([false, true, false]);
});

it('a subscription over a socket that is closed is told so once', async () => {
  const { url } = await serve((connection, type, id) => {
    if (type === 'subscribe') connection.close(1012);
    else answering(connection, type, id);
  });
  socket = createSocket({ url, token: () => 'one' });
  let ended = 0;
  await new Promise<void>((resolve) => {
    socket?.subscribe(
      typed(EVENTS),
      {},
      {
        opened() {},
        next() {},
        bookmark() {},
        ended() {
          ended += 1;
          resolve();
        },
      },
    );
  });
  // What graphql-ws tells of the same end comes within this turn.
  await new Promise((resolve) => setImmediate(resolve));
  expect(ended).toBe(1);
});

it('the app is told of each connection, and with which code it was lost', async () => {
  const { url } = await serve((connection, type) => {
    if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
    else connection.close(4408, 'Too slow.');
  });
  const told: ConnectionEvent[] = [];
  socket = createSocket({ url, token: () => 'one', onConnection: (event) => told.push(event) });
  await expect(socket.query(QUERY, {})).rejects.toThrow();
  await until(() => told.length === 2);
  expect(told).toMatchObject([{ state: 'open' }, { state: 'lost', code: 4408 }]);
});

it.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])('the app is told of each stream over %s, and with which status it was lost', async (_, create) => {
  const answers = [
    new Response('event: next\ndata: {"data":{"events":{"id":"1","cursor":"a"}}}\n\n', {
      headers: { 'content-type': 'text/event-stream' },
    }),
    new Response('Bad gateway', { status: 502 }),
  ];
  const told: ConnectionEvent[] = [];
  const source = create({
    url: 'http://gateway/graphql',
    token: () => 'one',
    async fetch(_, init) {
      const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream';
      return (isStream ? answers.shift() : undefined) ?? new Promise(() => {});
    },
    onConnection: (event) => told.push(event),
  });
  const feed = follow(source, DOCUMENT, PLACED);
  void (async () => {
    for await (const _event of feed);
  })();
  await until(() => told.length >= 3);
  feed.close();
  expect(told.slice(0, 3)).toMatchObject([
    { state: 'open' },
    { state: 'lost' },
    {
      state: 'lost',
      code: 502,
      cause: expect.objectContaining({ message: expect.stringContaining('502') }),
    },
  ]);
});

const LIBRARIES: Readonly<Record<string, (source: Source) => Source>> = {
  none: (source) => source,
  'Apollo Client': (source) =>
    apolloSource(new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) })),
  urql: (source) =>
    urqlSource(
      new Client({ url: 'http://gateway', preferGetMethod: false, exchanges: [sourceExchange(source)] }),
    ),
};
const lost = (code: number) =>
  new ConnectionLost(`The WebSocket was closed with ${code}.`, code, { code, type: 'close' });
const end = async (fake: FakeSource, code: number) =>
  (await until(() => fake.subscriptions[0])).sink.ended(lost(code));

describe.each(Object.keys(LIBRARIES))('over %s', (library) => {
  it('what is watched, and cannot be sent, ends with a sentence', async () => {
    // A request over 64 KiB.
    const long = typed(`subscription { cepStatus(transactionId: "${'x'.repeat(70_000)}") { kind } }`);
    socket = createSocket({ url: 'ws://127.0.0.1:9', token: () => 'any' });
    const watched = watch(LIBRARIES[library]?.(socket) ?? socket, long, {}, () => () => {});
    await expect(watched[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      name: 'Refused',
      message: expect.stringContaining('64 KiB'),
    });
  });

  it.each([1007, 1009, 4400, 4401, 4406, 4409, 4429])(
    'a feed that is closed with %i ends with a sentence',
    async (code) => {
      const fake = createFakeSource();
      const feed = follow(LIBRARIES[library]?.(fake) ?? fake, DOCUMENT, PLACED);
      const iterated = feed[Symbol.asyncIterator]().next();
      const refused = expect(iterated).rejects.toMatchObject({
        name: 'Refused',
        code: String(code),
        message: expect.stringContaining(`closed with ${code}.`),
      });
      await end(fake, code);
      await refused;
      expect(fake.subscriptions).toEqual([]);
    },
  );

  it('a feed says what broke its connection, and comes back', async () => {
    const fake = createFakeSource();
    const feed = follow(LIBRARIES[library]?.(fake) ?? fake, DOCUMENT, PLACED);
    void feed[Symbol.asyncIterator]().next();
    await end(fake, 1012);
    await until(() => feed.problem !== undefined);
    expect(feed.problem).toMatchObject({ name: 'ConnectionLost', code: 1012 });
    await until(() => fake.subscriptions.length === 1);
    feed.close();
  });
});

it('a feed that asks for its first place, and what is watched, end with the same sentence', async () => {
  const fake = createFakeSource();
  const feed = follow(fake, DOCUMENT, { presence: () => () => {} });
  const placed = expect(feed[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: '4406' });
  (await until(() => fake.calls[0])).lose(lost(4406));
  await placed;
  const watched = watch(fake, typed('subscription { cepStatus { kind } }'), {}, () => () => {});
  const seen = expect(watched[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: '4406' });
  await end(fake, 4406);
  await seen;
});

it('a plain subscription is told so once, and ends', async () => {
  const fake = createFakeSource();
  const told: unknown[] = [];
  const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(fake) });
  const over = new Promise<void>((resolve) => {
    client
      .subscribe({ query: gql(EVENTS), variables: { after: 'start' }, fetchPolicy: 'no-cache' })
      .subscribe({ next: ({ error }) => told.push(error?.message), complete: resolve });
  });
  await end(fake, 4400);
  await over;
  expect(told).toEqual([expect.stringContaining('closed with 4400.')]);
  expect(fake.subscriptions).toEqual([]);
});

it('a payment whose connection is closed so is unknown at once: it may have been read before', async () => {
  const fake = createFakeSource();
  const Pay = typed<
    { readonly pay: { readonly __typename: string } },
    { readonly input: { readonly idempotencyKey: string } }
  >('mutation ($input: PayInput!) { pay(input: $input) { __typename } }');
  const paid = pay(fake, Pay, {}, { store: memoryIntents() });
  (await until(() => fake.calls[0])).lose(lost(4400));
  expect(await paid).toMatchObject({
    status: 'unknown',
    safeToRetry: true,
    message: expect.stringContaining('closed with 4400.'),
  });
  expect(fake.calls).toEqual([]);
});

it('a feed over a socket that the gateway closes with 4406 connects once', async () => {
  const { url, count } = await serve((connection) => connection.close(4406, 'Subprotocol not acceptable'));
  socket = createSocket({ url, token: () => 'any' });
  const feed = follow(socket, DOCUMENT, PLACED);
  await expect(feed[Symbol.asyncIterator]().next()).rejects.toThrow(/4406 Subprotocol not acceptable/);
  expect(count()).toBe(1);
});

it('a request that is too long for a socket is refused before it ends the connection of others', async () => {
  const { url, count } = await serve(answering);
  // As the gateway does.
  if (server !== undefined) server.options.maxPayload = 65_536;
  socket = createSocket({ url, token: () => 'any' });
  await socket.query(QUERY, {});
  const asked = (text: string) => socket?.query('query ($text: String) { __typename }', { text });
  // The last two have fewer characters than the limit: bytes count, and the message is longer than what is asked.
  for (const text of ['x'.repeat(70_000), 'ñ'.repeat(33_000), 'x'.repeat(65_450)]) {
    await expect(asked(text)).rejects.toMatchObject({
      name: 'Refused',
      message: expect.stringContaining('64 KiB'),
    });
  }
  expect(await asked('ñ'.repeat(32_600))).toEqual(GOOD);
  expect(await socket.query(QUERY, {})).toEqual(GOOD);
  expect(count()).toBe(1);
});
