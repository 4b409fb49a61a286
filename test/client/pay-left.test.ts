import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApolloClient, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import { Environment, RecordSource, Store } from 'relay-runtime';
import { afterEach, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { ambient, useAmbient } from '../../packages/client/src/ambient.ts';
import { apolloSource, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { createSocket, type Socket } from '../../packages/client/src/graphql-ws.ts';
import { memoryIntents, pay, type Source } from '../../packages/client/src/index.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { until } from '../helpers/until.ts';
import { INPUT, MUTATION } from './scripted.ts';

/** A payment that is left before its call has left the app. */

const LEFT = new Error('The person has signed out.');
const QUERY = 'query Q { eventCursor }';
const GOOD = { data: { eventCursor: 'a' } };

const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0)) await end();
});

/** An app whose token comes when the test says so. */
function waitingForToken() {
  const given = Promise.withResolvers<string>();
  let asked = 0;
  return {
    given,
    asked: () => asked > 0,
    token() {
      asked += 1;
      return given.promise;
    },
  };
}

async function leave(source: Source, isUnderWay: () => boolean) {
  const leaving = new AbortController();
  const store = memoryIntents();
  const paying = pay(source, MUTATION, INPUT, { store, signal: leaving.signal });
  await until(isUnderWay);
  leaving.abort(LEFT);
  expect(await paying).toMatchObject({ status: 'unknown', safeToRetry: true, cause: LEFT });
  // It counts as one that may have left.
  expect(await store.load()).toMatchObject([{ unanswered: 1 }]);
}

const WAYS: Readonly<Record<string, (options: Parameters<typeof createFetch>[0]) => Source>> = {
  fetch: createFetch,
  'graphql-sse': createEventStreams,
  'Apollo Client': (options) =>
    apolloSource(new ApolloClient({ cache: new InMemoryCache(), link: createLink(createFetch(options)) })),
  urql: (options) =>
    urqlSource(
      new Client({
        url: 'http://gateway',
        preferGetMethod: false,
        exchanges: [sourceExchange(createFetch(options))],
      }),
    ),
  Relay: (options) =>
    relaySource(
      new Environment({ network: createNetwork(createFetch(options)), store: new Store(new RecordSource()) }),
    ),
};

it.each(Object.keys(WAYS))(
  'over %s it is not sent once there is a token, which may be another person’s',
  async (way) => {
    const sent: string[] = [];
    const server = createServer((request, response) => {
      request.setEncoding('utf8').on('data', (text) => sent.push(JSON.parse(text).query));
      response.setHeader('content-type', 'application/json').end(JSON.stringify(GOOD));
    }).listen(0, '127.0.0.1');
    ending.push(() => server.close());
    await once(server, 'listening');
    // It listens on a port.
    const { port } = server.address() as AddressInfo;
    const begun: unknown[] = [];
    const app = waitingForToken();
    const source = WAYS[way]?.({
      url: `http://127.0.0.1:${port}/graphql`,
      token: app.token,
      // As one that does not look at the signal.
      fetch(input, { signal: _, ...init } = {}) {
        begun.push(input);
        return fetch(input, init);
      },
    });
    if (source === undefined) throw new Error('it is one of these');
    await leave(source, app.asked);
    app.given.resolve('the token of the next person');
    await source.query(QUERY, {});
    expect(begun).toHaveLength(1);
    expect(sent.map((text) => text.includes('eventCursor'))).toEqual([true]);
  },
);

it.each(['at once', 'as in a hidden page, after the connection'])(
  'over a socket it is not sent once that opens, where timers run %s',
  async (when) => {
    if (when !== 'at once') {
      const { setTimeout, ...before } = ambient;
      // One that waits for no time waits for a turn of the event loop, which a page may not have.
      const restore = useAmbient({
        ...before,
        setTimeout: (callback, ms) => ms === undefined || setTimeout(callback, ms),
      });
      ending.push(restore);
    }
    let accept: (() => void) | undefined;
    const server = new WebSocketServer({
      port: 0,
      host: '127.0.0.1',
      handleProtocols: () => 'graphql-transport-ws',
      verifyClient: (_: unknown, decide: (isGood: boolean) => void) => {
        accept = () => decide(true);
      },
    });
    ending.push(() => server.close());
    const sent: string[] = [];
    server.on('connection', (connection) => {
      connection.on('message', (data) => {
        const { type, id, payload } = JSON.parse(String(data));
        if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
        if (type !== 'subscribe') return;
        sent.push(payload.query);
        connection.send(JSON.stringify({ id, type: 'next', payload: GOOD }));
      });
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const socket: Socket = createSocket({ url: `ws://127.0.0.1:${port}`, token: () => 'a token' });
    ending.push(() => socket.close());
    await leave(socket, () => accept !== undefined);
    const asked = socket.query(QUERY, {});
    accept?.();
    expect(await asked).toEqual(GOOD);
    expect(sent).toEqual([QUERY]);
  },
);
