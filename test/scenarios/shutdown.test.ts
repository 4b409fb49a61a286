import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Fleet, headOf, type Member, startFleet } from '../helpers/fleet.ts';
import { control } from '../helpers/gateway.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { randomFrom } from '../helpers/random.ts';
import { readOverSse, readOverWebSocket } from '../helpers/reader.ts';
import { until } from '../helpers/until.ts';

/** Less than the ten seconds that requests in flight are waited for: a process that waits for nothing ends before. */
const AT_ONCE_MS = 9_000;
/** For how long a payment may be held back on its way: as long as a slow machine takes for the rest. */
const PATIENT = { UPSTREAM_TIMEOUT_MS: '60000', OPERATION_TIMEOUT_MS: '60000' };
const TRANSFERS = 'POST /v1/transactions/internal_transaction';

const TRANSFER = `mutation ($input: CreateInternalTransactionInput!) {
  createInternalTransaction(input: $input) { __typename }
}`;
const EVENTS = 'subscription { events { id } }';
const MOVED = { data: { createInternalTransaction: { __typename: 'CreateInternalTransactionSuccess' } } };
const DRAINING = { errors: [{ extensions: { code: 'DRAINING', retryable: true } }] };

let fleet: Fleet;
// biome-ignore lint/suspicious/noExplicitAny: what the sandbox says of itself.
let seeded: any;
beforeAll(async () => {
  fleet = await startFleet();
  seeded = await control(fleet.sandbox, 'GET', '/sandbox');
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** A way to the sandbox on which transfers wait until they are let through. */
async function startGate() {
  const { promise, resolve: open } = Promise.withResolvers<void>();
  const upstream = await startUpstream(async (request, response) => {
    const { host: _host, connection: _connection, ...headers } = request.headers;
    const sent = await text(request);
    if (TRANSFERS === `${request.method} ${request.url}`) await promise;
    const answer = await fetch(`${fleet.sandbox.url}${request.url}`, {
      method: request.method ?? 'GET',
      // A request has no header twice that fetch would want in another form.
      headers: headers as Record<string, string>,
      body: sent === '' ? null : sent,
    });
    json(response, await answer.json(), answer.status);
  });
  const waiting = () => upstream.requests.filter((request) => request === TRANSFERS).length;
  return { upstream, open, waiting };
}

/** A connection on which a request has begun to arrive: all but its last `held` characters. */
async function begin({ url }: Member, request: string, held: number) {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  let received = '';
  let closed = false;
  socket.setEncoding('utf8').on('data', (chunk) => {
    received += chunk;
  });
  socket.on('close', () => {
    closed = true;
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  // The answer to what stands before it proves that the beginning has been read.
  socket.write(`GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n${request.slice(0, -held)}`);
  await until(() => /"alive"\}\r\n0\r\n\r\n$/.test(received));
  received = '';
  /** Sends the rest; resolves with head and body of the answer. */
  return async (): Promise<string> => {
    socket.write(request.slice(-held));
    return until(() => (closed || /\r\n\r\n(.*\}|$)/s.test(received) ? received : undefined));
  };
}

const post = ({ url }: Member, path: string, body: string, headers = '') =>
  `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\n${headers}` +
  `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** A socket by hand, which tells what it was sent, and with which code it was closed. */
async function openSocket(member: Member) {
  const socket = new WebSocket(member.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  // biome-ignore lint/suspicious/noExplicitAny: messages of the protocol.
  const messages: any[] = [];
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.on('message', (data) => messages.push(JSON.parse(String(data))));
  await once(socket, 'open');
  const send = (message: object) => socket.send(JSON.stringify(message));
  send({ type: 'connection_init', payload: { authorization: `Bearer ${fleet.sandbox.accessToken}` } });
  await until(() => messages.some(({ type }) => type === 'connection_ack'));
  return {
    closed,
    messages: (id: string) => messages.filter((message) => message.id === id),
    /** Whether a stream on it has been said to be live. */
    isLive: () => messages.some(({ type }) => type === 'ping'),
    ask: (id: string, query: string, variables: object = {}) =>
      send({ id, type: 'subscribe', payload: { query, variables } }),
  };
}

const transfer = (idempotencyKey: string) => ({
  input: {
    idempotencyKey,
    sourceInstrumentId: seeded.centralizingInstrumentId,
    destinationInstrumentId: seeded.internalInstrumentIds[1],
    amount: '12.50',
    description: 'Traspaso',
    externalReference: '1234567',
  },
});

const refusesConnections = ({ url }: Member) =>
  fetch(`${url}/healthz`).then(
    () => false,
    () => true,
  );

it('a process that is told to end answers what it has taken, and sends its readers elsewhere', async () => {
  const gate = await startGate();
  await using upstream = gate.upstream;
  const [ending, other] = await Promise.all([
    fleet.start({ ...PATIENT, UPSTREAM_URL: upstream.url }),
    fleet.start(),
  ]);
  let current = ending;
  const reading = {
    graphql: () => current.graphql,
    token: fleet.sandbox.accessToken,
    after: await headOf(ending),
    random: randomFrom(3),
  };
  const readers = [readOverWebSocket(reading), readOverSse(reading)];
  const socket = await openSocket(ending);
  await until(async () => (await ending.metric('pasarela_events_subscribers')) === 2);
  await ending.deliver('STATUS_UPDATE', { id_msg: 'before' });
  await until(() => readers.every(({ seen }) => seen.length === 1));

  // In flight: two payments, and a webhook of which the greater part has arrived.
  const payment = ending.query(TRANSFER, transfer('shutdown-1'));
  socket.ask('payment', TRANSFER, transfer('shutdown-2'));
  await until(() => gate.waiting() === 2);
  const path = new URL(ending.addressOf('STATUS_UPDATE')).pathname;
  const webhook = await begin(ending, post(ending, path, JSON.stringify({ id_msg: 'in flight' })), 10);

  // These are known to the process as requests only once it is ending.
  const headers = `Authorization: Bearer ${fleet.sandbox.accessToken}\r\n`;
  const subscription = JSON.stringify({ query: EVENTS });
  const late = async (request: string) => begin(ending, request, request.length - 20);
  // All at once: the head of a request may be under way for five seconds.
  const begun = await Promise.all([
    late('GET /readyz HTTP/1.1\r\nHost: gateway\r\n\r\n'),
    late(
      post(
        ending,
        '/graphql',
        JSON.stringify({ query: '{ eventCursor }' }),
        `${headers}Accept: application/graphql-response+json\r\n`,
      ),
    ),
    late(post(ending, '/graphql', subscription, `${headers}Accept: text/event-stream\r\n`)),
    late(post(ending, path, '{}')),
  ]);
  // One turn of the process for its connection to be accepted, and one for its first bytes to be read: with nothing read
  // it would be closed as idle.
  for (const _ of ['accepted', 'read']) await fetch(`${ending.url}/healthz`);
  const exited = ending.program.end('SIGTERM');
  current = other;
  await until(() => refusesConnections(ending));

  const [probe, refused, stream, delivery] = await Promise.all(begun.map((end) => end()));
  expect(probe).toMatch(/^HTTP\/1.1 503 .*"draining"/s);
  expect(refused).toMatch(/^HTTP\/1.1 200 .*application\/graphql-response\+json/s);
  expect(JSON.parse(/\{.*\}/s.exec(refused ?? '')?.[0] ?? '')).toMatchObject(DRAINING);
  expect(stream).toMatch(/^HTTP\/1.1 503 .*"DRAINING"/s);
  expect(delivery).toMatch(/^HTTP\/1.1 503 .*connection: close/is);
  socket.ask('query', '{ eventCursor }');
  await until(() => socket.messages('query').length > 0);
  expect(socket.messages('query')[0].payload).toMatchObject(DRAINING);
  socket.ask('stream', EVENTS);

  expect(await webhook()).toMatch(/^HTTP\/1.1 201 /);
  gate.open();
  expect(await payment).toMatchObject(MOVED);
  expect(await socket.closed).toBe(1012);
  expect(socket.messages('payment')[0]).toMatchObject({ type: 'next', payload: MOVED });
  // No client library resumes what has been answered: this one it asks for again.
  expect(socket.messages('stream')).toEqual([]);

  expect(await exited).toBe(0);
  await until(() => readers.every(({ seen }) => seen.length === 2));
  await other.deliver('STATUS_UPDATE', { id_msg: 'after' });
  await until(() => readers.every(({ seen }) => seen.length === 3));
  for (const { seen, told, connections } of readers) {
    expect(seen).toEqual(['before', 'in flight', 'after']);
    expect(told).toEqual([]);
    expect(connections).toBe(2);
  }
  await Promise.all(readers.map((reader) => reader.leave()));
});

it('a socket that is refused an operation is closed at once, before those that ask nothing', async () => {
  const gate = await startGate();
  await using upstream = gate.upstream;
  const ending = await fleet.start({ ...PATIENT, UPSTREAM_URL: upstream.url });
  const idle = await openSocket(ending);
  // The stream that the other one would join.
  idle.ask('stream', EVENTS);
  await until(idle.isLive);
  const [asking, subscribing] = [await openSocket(ending), await openSocket(ending)];
  let left = 'open';
  void idle.closed.then(() => {
    left = 'closed';
  });
  // As long as it waits, no socket has its turn to be closed.
  const payment = ending.query(TRANSFER, transfer('shutdown-3'));
  await until(() => gate.waiting() === 1);
  const exited = ending.program.end('SIGTERM');
  await until(() => refusesConnections(ending));

  asking.ask('query', '{ eventCursor }');
  subscribing.ask('stream', EVENTS);
  expect(await Promise.all([asking.closed, subscribing.closed])).toEqual([1012, 1012]);
  expect(left).toBe('open');
  expect(asking.messages('query')).toMatchObject([{ type: 'next', payload: DRAINING }, { type: 'complete' }]);
  expect(subscribing.messages('stream')).toEqual([]);

  gate.open();
  expect(await payment).toMatchObject(MOVED);
  expect(await idle.closed).toBe(1012);
  expect(await exited).toBe(0);
});

it('a socket that waits for the answer to a payment gets it, though its turn to be closed has come', async () => {
  const gate = await startGate();
  await using upstream = gate.upstream;
  // Requests have 3 s, and sockets up to 5.4 s after that.
  const ending = await fleet.start({ ...PATIENT, UPSTREAM_URL: upstream.url, SHUTDOWN_GRACE_MS: '12000' });
  const [paying, idle] = [await openSocket(ending), await openSocket(ending)];
  paying.ask('payment', TRANSFER, transfer('shutdown-4'));
  await until(() => gate.waiting() === 1);
  const exited = ending.program.end('SIGTERM');
  expect(await idle.closed).toBe(1012);
  gate.open();
  expect(await paying.closed).toBe(1012);
  expect(paying.messages('payment')).toMatchObject([{ type: 'next', payload: MOVED }, { type: 'complete' }]);
  expect(await exited).toBe(0);
});

it('a process with nothing open, and nothing in flight, ends at once', async () => {
  const { program } = await fleet.start();
  expect(await Promise.race([program.end('SIGTERM'), pause(AT_ONCE_MS)])).toBe(0);
});

it('a process that is given a delay says that it will end, and serves everything until then', async () => {
  const leaving = await fleet.start({ SHUTDOWN_DELAY_MS: '600000' });
  const readiness = async () => {
    const response = await fetch(`${leaving.url}/readyz`);
    return { status: response.status, body: await response.json() };
  };
  expect(await readiness()).toMatchObject({ status: 200 });
  leaving.program.process.kill('SIGTERM');
  await until(async () => (await readiness()).status === 503);
  expect(await readiness()).toEqual({ status: 503, body: { status: 'draining' } });
  expect((await fetch(`${leaving.url}/healthz`)).status).toBe(200);
  expect(await leaving.query('{ eventCursor }')).toMatchObject({ status: 200, data: expect.any(Object) });
  expect(await leaving.deliver('STATUS_UPDATE', { id_msg: 'while it leaves' })).toBe(201);
  const socket = await openSocket(leaving);
  socket.ask('query', '{ eventCursor }');
  await until(() => socket.messages('query').length > 0);
  expect(socket.messages('query')[0]).toMatchObject({ type: 'next', payload: { data: expect.any(Object) } });
  await leaving.program.says(/^\{.*"delayMs":600000,"msg":"Told to end: \/readyz says draining/m);
  // A second signal ends it at once, from the moment on in which it says what it waits for.
  await leaving.program.says(
    /Ending\. Waiting for requests, payments and sockets, about 645 seconds at most\./,
  );
  expect(await leaving.program.end('SIGTERM')).toBe(130);
});

it('a process drains once its delay is over', async () => {
  const { program } = await fleet.start({ SHUTDOWN_DELAY_MS: '1' });
  expect(await program.end('SIGTERM')).toBe(0);
  expect(program.output()).toContain('"delayMs":1');
});
