import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { type ConnectionEvent, createSocket } from '../../packages/client/src/graphql-ws.ts';
import { follow, isGap, type Source, typed } from '../../packages/client/src/index.ts';
import { feedStore } from '../../packages/client/src/svelte.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

const DOCUMENT = typed<
  { readonly events: { readonly id: string; readonly cursor: string } },
  { readonly after: string }
>('subscription S($after: Cursor) { events(after: $after) { id cursor } }');
const PLACED = { store: { load: () => ({ cursor: 'start' }), save() {} }, presence: () => () => {} };
const payload = (number: number) => ({
  data: { events: { id: String(number), cursor: `at ${number}` } },
});

const reported: unknown[] = [];
const report = (cause: unknown) => reported.push(String(cause));
beforeEach(() => {
  reported.length = 0;
  for (const name of ['unhandledRejection', 'uncaughtException']) process.on(name, report);
});
afterEach(() => {
  for (const name of ['unhandledRejection', 'uncaughtException']) process.off(name, report);
});

const told: string[] = [];
const onConnection = ({ state }: ConnectionEvent) => {
  told.push(state);
  throw new Error(`no screen for ${state}`);
};

/** Follows until it has two events, of which each stream gives one and then breaks. */
async function followed(source: Source): Promise<void> {
  told.length = 0;
  const feed = follow(source, DOCUMENT, PLACED);
  const seen: string[] = [];
  const over = (async () => {
    for await (const event of feed) seen.push(isGap(event) ? event.reason : event.id);
  })();
  await until(() => seen.length >= 2);
  feed.close();
  await over;
  expect(seen.slice(0, 2)).toEqual(['1', '2']);
  expect(told.slice(0, 3)).toEqual(['open', 'lost', 'open']);
  // A rejection is reported once the callback has returned.
  await until(() => reported.length >= told.length);
  expect(reported).toEqual(told.map((state) => `Error: no screen for ${state}`));
}

it.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])('an app that throws when it is told of a connection ends no stream over %s', async (_, create) => {
  let streams = 0;
  const source = create({
    url: 'http://gateway/graphql',
    token: () => 'one',
    async fetch(_address, init) {
      const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream';
      if (!isStream) return new Promise(() => {});
      streams += 1;
      return new Response(`event: next\ndata: ${JSON.stringify(payload(streams))}\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      });
    },
    onConnection,
  });
  await followed(source);
});

it('an app that throws when it is told of a connection ends no stream over a socket', async () => {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    handleProtocols: () => 'graphql-transport-ws',
  });
  server.on('connection', (connection) => {
    connection.on('message', (data) => {
      const { type, id, payload: request } = JSON.parse(String(data));
      if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
      if (type !== 'subscribe') return;
      const { after } = request.variables;
      const next = after === 'start' ? 1 : Number(after.slice('at '.length)) + 1;
      connection.send(JSON.stringify({ id, type: 'next', payload: payload(next) }));
      connection.close(1012);
    });
  });
  await once(server, 'listening');
  // It listens on a port.
  const { port } = server.address() as AddressInfo;
  let isOver = false;
  const socket = createSocket({
    url: `ws://127.0.0.1:${port}`,
    token: () => 'one',
    onConnection: (event) => isOver || onConnection(event),
  });
  try {
    await followed(socket);
  } finally {
    // What is told of the last connection from here on would be reported in the middle of the next test.
    isOver = true;
    await until(() => reported.length >= told.length);
    socket.close();
    for (const connection of server.clients) connection.terminate();
    server.close();
  }
});

it('an app that throws when it is told what the gateway could not give of an event is given the event, once', async () => {
  const fake = createFakeSource();
  const seen: string[] = [];
  const feed = follow(fake, DOCUMENT, {
    ...PLACED,
    onErrors([problem]) {
      throw new Error(`no screen for ${problem?.message}`);
    },
  });
  const over = (async () => {
    for await (const event of feed) seen.push(isGap(event) ? event.reason : event.id);
  })();
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.opened();
  sink.next({ ...payload(1), errors: [{ message: 'Not yours.', path: ['events', 'id'] }] });
  sink.next(payload(2));
  await until(() => seen.length === 2);
  feed.close();
  await over;
  expect(seen).toEqual(['1', '2']);
  await until(() => reported.length > 0);
  expect(reported).toEqual(['Error: no screen for Not yours.']);
});

it('a subscriber of a feed as a store that throws ends no feed, and keeps nothing from the others', async () => {
  const fake = createFakeSource();
  const credits = feedStore(fake, DOCUMENT, PLACED);
  const shown: (readonly string[])[] = [];
  const leave = [
    credits.subscribe(({ items }) => {
      if (items.length === 1) throw new Error('no screen for one');
    }),
    credits.subscribe(({ items, status }) => {
      shown.push([status, ...items.map((item) => (isGap(item) ? item.reason : item.id))]);
    }),
  ];
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.opened();
  sink.next(payload(1));
  sink.bookmark('at 1');
  await until(() => shown.at(-1)?.[1] === '1' && shown.at(-1)?.[0] === 'live');
  sink.next(payload(2));
  await until(() => shown.at(-1)?.length === 3);
  expect(shown.at(-1)).toEqual(['live', '2', '1']);
  for (const each of leave) each();
  await until(() => fake.subscriptions.length === 0);
  expect(new Set(reported)).toEqual(new Set(['Error: no screen for one']));
});
