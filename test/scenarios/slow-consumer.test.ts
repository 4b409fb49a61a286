import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Fleet, headOf, type Member, startFleet } from '../helpers/fleet.ts';
import { randomFrom } from '../helpers/random.ts';
import { readOverWebSocket, startReaders } from '../helpers/reader.ts';
import { until } from '../helpers/until.ts';

const READERS = 200;
/** Each event is large for those who stall, so that few of them fill what the kernel buffers for a reader. */
const REPEATED = 25;
const FILLING = 'x'.repeat(60_000);
const repeating = (times: number) => `subscription { events { id cursor ... on StatusUpdateEvent {
  ${Array.from({ length: times }, (_, index) => `p${index}: payload`).join(' ')}
} } }`;
const LARGE = repeating(REPEATED);
/** One result is more than the kernel buffers for a reader. */
const HUGE_REPEATED = 200;
/** Between two reads of a slow reader, each of at most 64 KiB, in milliseconds: it takes longer for one result than a stalled one may rest. */
const READ_EVERY_MS = 400;
/** What the events would take in memory, were they kept for one who does not read, is several times this much. */
const COUNT = 120;
const BOUND_BYTES = 80 * 2 ** 20;

let fleet: Fleet;
let gateway: Member;
beforeAll(async () => {
  fleet = await startFleet();
  gateway = await fleet.start();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** A client by hand, whose connection can be stopped from being read, and the ids and cursors that came over it. */
interface Stalling {
  readonly received: () => readonly { id: string; cursor: string }[];
  stall(): void;
  resume(): void;
  /** Resolves with the close code, or, over SSE, with whether the stream was completed. */
  readonly ended: Promise<unknown>;
}

async function stallingSocket(): Promise<Stalling> {
  const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const received: { id: string; cursor: string }[] = [];
  const ended = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type === 'connection_ack') {
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: LARGE } }));
    }
    if (message.type === 'next' && message.payload.data) received.push(message.payload.data.events);
  });
  await once(socket, 'open');
  const authorization = `Bearer ${fleet.sandbox.accessToken}`;
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  return {
    received: () => received,
    stall: () => socket.pause(),
    resume: () => socket.resume(),
    ended,
  };
}

/** @param readEveryMs pauses so long between two reads; without it reads at once. */
async function stallingStream(of = gateway, query = LARGE, readEveryMs?: () => number): Promise<Stalling> {
  const { hostname, port, host } = new URL(of.url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
    const ms = readEveryMs?.() ?? 0;
    if (ms === 0) return;
    socket.pause();
    setTimeout(() => socket.resume(), ms);
  });
  socket.on('error', () => {});
  const body = JSON.stringify({ query });
  const head = [
    'POST /graphql HTTP/1.1',
    `Host: ${host}`,
    `Authorization: Bearer ${fleet.sandbox.accessToken}`,
    'Accept: text/event-stream',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return {
    // Each event starts with its cursor, and its data with its id; one that was cut off is not there.
    received: () =>
      [...text.matchAll(/^id: (\S+)\ndata: \{"data":\{"events":\{"id":"([^"]+)".*\}\n\n/gm)].map(
        ([, cursor = '', id = '']) => ({ id, cursor }),
      ),
    stall: () => socket.pause(),
    resume: () => socket.resume(),
    ended: once(socket, 'close').then(() => text.includes('event: complete')),
  };
}

async function deliver(from: number, to: number, at = gateway): Promise<void> {
  for (let number = from; number < to; number += 1) {
    expect(await at.deliver('STATUS_UPDATE', { id_msg: `message-${number}`, FILLING })).toBe(201);
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => `message-${number}`);
const heldBytes = async () =>
  (await gateway.metric('nodejs_heap_size_used_bytes')) +
  (await gateway.metric('nodejs_external_memory_bytes'));

it('of 200 readers, those that stop reading cost the others nothing, take no memory, and resume complete', async () => {
  const reading = {
    graphql: () => gateway.graphql,
    token: fleet.sandbox.accessToken,
    after: await headOf(gateway),
    random: randomFrom(4),
  };
  const stalled = [await stallingSocket(), await stallingStream()];
  const others = startReaders(READERS - stalled.length, reading);
  await until(async () => (await gateway.metric('pasarela_events_subscribers')) === READERS);
  // One that is slow to say who it is may have had to come again.
  const connectionsOf = () => others.map(({ connections }) => connections);
  const begun = connectionsOf();
  await deliver(0, 1);
  await until(() => stalled.every(({ received }) => received().length === 1));
  const before = await heldBytes();

  for (const reader of stalled) reader.stall();
  await deliver(1, COUNT);
  await until(() => others.every(({ seen }) => seen.length === COUNT));
  for (const { seen } of others) expect(seen).toEqual(numbers(COUNT));
  expect(connectionsOf()).toEqual(begun);
  await until(async () => (await gateway.metric('pasarela_events_subscribers')) === READERS - stalled.length);
  // On a busy machine the socket may be cut for its silence before so much waits for it.
  const ended = await gateway.metric('pasarela_events_slow_consumer_disconnects_total');
  expect([1, stalled.length]).toContain(ended);
  expect(COUNT * REPEATED * FILLING.length).toBeGreaterThan(2 * BOUND_BYTES);
  expect((await heldBytes()) - before).toBeLessThan(BOUND_BYTES);

  for (const reader of stalled) reader.resume();
  // 1013 over a socket, or 1006 where the reader did not take that within three seconds; over SSE the stream is cut off, and not
  // completed.
  const [code, completed] = await Promise.all(stalled.map(({ ended }) => ended));
  expect([1013, 1006]).toContain(code);
  expect(completed).toBe(false);
  for (const { received } of stalled) {
    const seen = received().map(({ id }) => id);
    expect(seen.length).toBeLessThan(COUNT);
    const again = readOverWebSocket({ ...reading, after: received().at(-1)?.cursor ?? '' });
    await until(() => seen.length + again.seen.length >= COUNT);
    expect([...seen, ...again.seen]).toEqual(numbers(COUNT));
    await again.leave();
  }
  await Promise.all(others.map((reader) => reader.leave()));
});

it('a stream whose reader takes nothing of a result loses its connection, and one that reads it slowly keeps it', async () => {
  const own = await fleet.start({ LIMIT_ALIASES: String(HUGE_REPEATED) });
  const subscribers = () => own.metric('pasarela_events_subscribers');
  let readEveryMs = READ_EVERY_MS;
  const slow = await stallingStream(own, repeating(HUGE_REPEATED), () => readEveryMs);
  await until(async () => (await subscribers()) === 1);
  const stalled = await stallingStream(own, repeating(HUGE_REPEATED));
  await until(async () => (await subscribers()) === 2);
  stalled.stall();
  await deliver(COUNT, COUNT + 1, own);
  await until(async () => (await subscribers()) < 2);
  expect(await own.metric('pasarela_events_slow_consumer_disconnects_total')).toBe(0);
  readEveryMs = 0;
  await Promise.race([slow.ended, until(() => slow.received().length === 1)]);
  expect(slow.received()).toHaveLength(1);
  stalled.resume();
  expect(await stalled.ended).toBe(false);
  expect(await subscribers()).toBe(1);
});
