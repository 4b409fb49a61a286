import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { UnsecuredJWT } from 'jose';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { Waiters } from '../../../src/common/waiters.ts';
import { Answer } from '../../../src/transport/sockets/answer.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { CLIENT_ID, json, startUpstream, type Upstream } from '../../helpers/http-stub.ts';
import { connect } from '../../helpers/socket.ts';
import { until } from '../../helpers/until.ts';

const TOKEN = `Bearer ${new UnsecuredJWT({ client_id: CLIENT_ID }).setExpirationTime('1h').encode()}`;

/** A call of the gateway that the service does not answer by itself. */
interface Held {
  readonly method: string | undefined;
  readonly path: string;
  readonly response: ServerResponse;
  readonly isGivenUp: () => boolean;
}

const NO_INSTRUMENTS = { currentPage: 1, perPage: 1, totalItems: 0, data: [] };

let held: Held[];
/** Whether the service also holds what identifies a caller. */
let isSlow: boolean;
let upstream: Upstream;
let gateway: RunningGateway;
beforeEach(async () => {
  held = [];
  isSlow = false;
  upstream = await startUpstream((request: IncomingMessage, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x');
    if (pathname.endsWith('/instruments') && !isSlow) {
      json(response, NO_INSTRUMENTS);
      return;
    }
    held.push({
      method: request.method,
      path: pathname,
      response,
      isGivenUp: () => response.destroyed && !response.writableFinished,
    });
  });
  gateway = await startGateway({
    webhooks: false,
    config: { upstreamUrl: upstream.url, upstreamTimeoutMs: 120_000, operationTimeoutMs: 120_000 },
  });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const callTo = (path: string) => until(() => held.find((call) => call.path.endsWith(path)));

it('a query is given up when its socket closes, and a mutation is not', async () => {
  const socket = await connect(gateway, TOKEN);
  socket.ask('query', '{ banks { id } }');
  socket.ask('mutation', 'mutation { deleteWebhook(input: { id: "one" }) { __typename } }');
  const [read, change] = [await callTo('/banks'), await callTo('/one')];
  await socket.close();
  await until(read.isGivenUp);
  expect([change.method, change.isGivenUp()]).toEqual(['DELETE', false]);
  change.response.writeHead(204).end();
  await once(change.response, 'finish');
  const done = () => readMetric(gateway.url, 'pasarela_operations_total', 'type="mutation",outcome="ok"');
  await until(async () => (await done()) === 1);
});

it.each(['HTTP', 'a socket'] as const)(
  'a query that is left over %s counts as left, and one that fails, or a change that does, as failed',
  async (transport) => {
    const socket = await connect(gateway, TOKEN);
    const going = new AbortController();
    const headers = { authorization: TOKEN };
    const asked =
      transport === 'HTTP'
        ? sendQuery(gateway.graphql, '{ banks { id } }', {}, headers, going.signal).catch(() => undefined)
        : socket.ask('left', '{ banks { id } }');
    await callTo('/banks');
    going.abort();
    socket.send({ type: 'complete', id: 'left' });
    await asked;
    socket.ask('fails', '{ client { accounts { totalCount } } }');
    json((await callTo('/accounts')).response, {}, 500);
    await socket.end('fails');
    socket.ask('change', 'mutation { deleteWebhook(input: { id: "one" }) { __typename } }');
    const change = await callTo('/one');
    await socket.close();
    json(change.response, {}, 500);
    const counted = (labels: string) => readMetric(gateway.url, 'pasarela_operations_total', labels);
    await until(async () => (await counted('type="mutation",outcome="error"')) === 1);
    await until(async () => (await counted('type="query",outcome="left"')) === 1);
    expect(await counted('type="query",outcome="error"')).toBe(1);
  },
);

it('a query that its app completes is given up, and the others of its socket are not', async () => {
  const socket = await connect(gateway, TOKEN);
  socket.ask('one', '{ banks { id } }');
  socket.ask('other', '{ client { accounts { totalCount } } }');
  const [read, other] = [await callTo('/banks'), await callTo('/accounts')];
  socket.send({ type: 'complete', id: 'one' });
  await until(read.isGivenUp);
  json(other.response, {
    page: 1,
    page_size: 50,
    totalItems: 0,
    data: [],
    currentPage: 1,
    perPage: 50,
    totalItem: 0,
  });
  expect(await socket.end('other')).toEqual({ type: 'complete', id: 'other' });
  expect(socket.got.filter(({ id }) => id === 'one')).toEqual([]);
  await socket.close();
});

it('a query that others have joined goes on until they have left too', async () => {
  const [first, second] = [await connect(gateway, TOKEN), await connect(gateway, TOKEN)];
  first.ask('1', '{ banks { id } }');
  await callTo('/banks');
  second.ask('1', '{ banks { id } }');
  // Messages of a socket are taken in their order.
  second.ask('2', '{ __typename }');
  await second.end('2');
  await first.close();
  const [call] = held;
  expect([held.length, call?.isGivenUp()]).toEqual([1, false]);
  await second.close();
  await until(() => call?.isGivenUp() === true);
});

const ANOTHER = { type: 'subscribe', id: 'one', payload: { query: '{ client { id } }' } };
const STREAM = { type: 'subscribe', id: 'one', payload: { query: 'subscription { moneyIn { cursor } }' } };
const QUERY = { type: 'subscribe', id: 'one', payload: { query: '{ banks { id } }' } };
const CHANGE = {
  type: 'subscribe',
  id: 'one',
  payload: { query: 'mutation { deleteWebhook(input: { id: "one" }) { __typename } }' },
};
const COMPLETE = { type: 'complete', id: 'one' };

const LAST = { ...ANOTHER, id: 'last' };
/** What a client is told under the id that it has used again. */
const ANSWERED = [
  { type: 'next', id: 'one', payload: { data: { client: { id: CLIENT_ID } } } },
  { type: 'complete', id: 'one' },
];

type Socket = Awaited<ReturnType<typeof connect>>;

/** Sends messages that the gateway takes at once: it does so within a moment after another message. */
async function sendAtOnce(socket: Socket, messages: readonly object[]): Promise<void> {
  socket.send({ type: 'ping' });
  await socket.heard();
  socket.together(messages);
}

const changes = () => held.filter(({ method }) => method === 'DELETE');

it.each([
  ['is prepared', (socket: Socket) => sendAtOnce(socket, [CHANGE, COMPLETE, ANOTHER, LAST])],
  [
    'is executed',
    async (socket: Socket) => {
      socket.send(CHANGE);
      await callTo('/one');
      await sendAtOnce(socket, [COMPLETE, ANOTHER, LAST]);
    },
  ],
])(
  'the id of a mutation that its client completes as it %s is free at once, and it is executed once',
  async (_, leave) => {
    const socket = await connect(gateway, TOKEN);
    await leave(socket);
    await Promise.all([socket.end('last'), socket.end('one')]);
    const change = await callTo('/one');
    change.response.writeHead(204).end();
    const done = () => readMetric(gateway.url, 'pasarela_operations_total', 'type="mutation",outcome="ok"');
    await until(async () => (await done()) === 1);
    socket.send({ ...LAST, id: 'after' });
    await socket.end('after');
    expect(socket.got.filter(({ id }) => id === 'one')).toMatchObject(ANSWERED);
    expect(changes()).toHaveLength(1);
    await socket.close();
  },
);

it('a mutation with the id of another that its client has completed is executed too, and its answer is its own', async () => {
  const socket = await connect(gateway, TOKEN);
  const remove = (id: string) => ({
    ...CHANGE,
    payload: {
      query: `mutation { deleteWebhook(input: { id: "${id}" }) { ... on DeleteWebhookSuccess { id } } }`,
    },
  });
  socket.send(remove('first'));
  const first = await callTo('/first');
  await sendAtOnce(socket, [COMPLETE, remove('second'), LAST]);
  const second = await callTo('/second');
  await socket.end('last');
  // The earlier one is answered first, and the client does not hear of it.
  first.response.writeHead(204).end();
  const done = () => readMetric(gateway.url, 'pasarela_operations_total', 'type="mutation",outcome="ok"');
  await until(async () => (await done()) === 1);
  expect(socket.got.filter(({ id }) => id === 'one')).toEqual([]);
  second.response.writeHead(204).end();
  await socket.end('one');
  expect(socket.got.filter(({ id }) => id === 'one')).toMatchObject([
    { type: 'next', payload: { data: { deleteWebhook: { id: 'second' } } } },
    { type: 'complete' },
  ]);
  expect(changes()).toHaveLength(2);
  await socket.close();
});

it.each([
  ['a stream', STREAM, (got: () => unknown[]) => until(() => got().length > 0)],
  ['a query that is executed', QUERY, () => callTo('/banks')],
])('the id of %s that its client completes is free at once', async (_, first, isRunning) => {
  const socket = await connect(gateway, TOKEN);
  socket.send(first);
  // A stream tells where it stands as it begins.
  await isRunning(() => socket.got.filter(({ type }) => type === 'ping'));
  socket.send({ type: 'ping' });
  await socket.heard();
  const before = socket.got.length;
  socket.together([COMPLETE, ANOTHER]);
  await socket.end('one');
  expect(socket.got.slice(before)).toMatchObject(ANSWERED);
  await socket.close();
});

it.each([
  ['a stream', STREAM],
  ['a query', { ...QUERY, payload: { query: '{ client { banks: id } }' } }],
  ['an operation that is refused', { ...QUERY, payload: { query: '{ nothing }' } }],
])('the id of %s that its client completes as it begins is free, too', async (_, first) => {
  const socket = await connect(gateway, TOKEN);
  await sendAtOnce(socket, [first, COMPLETE, first, COMPLETE, ANOTHER, LAST]);
  await Promise.all([socket.end('last'), socket.end('one')]);
  expect(socket.got.filter(({ id }) => id === 'one').slice(-2)).toMatchObject(ANSWERED);
  await socket.close();
});

/** Has the service asked who the caller of a socket is, as what was found out is no longer believed, and holds its answer. */
async function identifying(socket: Socket): Promise<Held> {
  const now = performance.now.bind(performance);
  const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61_000);
  onTestFinished(() => later.mockRestore());
  isSlow = true;
  // The time is not read with every operation.
  for (let count = 1; held.length === 0; count += 1) {
    const id = `${count}`;
    socket.ask(id, '{ client { id } }');
    await until(() => held.length > 0 || socket.got.some((one) => one.id === id && one.type === 'complete'));
  }
  return callTo('/instruments');
}

it('a stream that its client completes while its caller is identified is sent to nobody, and nothing waits for it', async () => {
  const socket = await connect(gateway, TOKEN);
  const { response } = await identifying(socket);
  socket.send(STREAM);
  socket.send({ ...STREAM, id: 'other' });
  const query = '{ __typename }';
  await sendAtOnce(socket, [COMPLETE, { ...QUERY, payload: { query } }, { ...LAST, payload: { query } }]);
  await Promise.all([socket.end('one'), socket.end('last')]);
  const bookmarks = () => socket.got.flatMap(({ payload }) => Object.keys(payload?.bookmarks ?? {}));
  expect(bookmarks()).toEqual([]);
  json(response, NO_INSTRUMENTS);
  await until(() => bookmarks().length > 0);
  socket.send({ type: 'ping' });
  await socket.heard();
  expect(bookmarks()).toEqual(['other']);
  expect(socket.got.filter(({ id }) => id === 'one')).toMatchObject([
    { type: 'next', payload: { data: { __typename: 'Query' } } },
    { type: 'complete' },
  ]);
  await socket.close();
});

it('a socket that completes its streams as they begin has no more than twenty of them prepared', async () => {
  const socket = await connect(gateway, TOKEN);
  const { response } = await identifying(socket);
  for (let count = 1; count <= 20; count += 1) socket.together([STREAM, COMPLETE]);
  socket.send({ ...LAST, id: 'refused' });
  expect(await socket.end('refused')).toMatchObject({
    type: 'error',
    payload: [{ extensions: { code: 'TOO_COMPLEX' } }],
  });
  json(response, NO_INSTRUMENTS);
  const served = () => socket.got.some(({ id, type }) => id?.startsWith('again') && type === 'complete');
  for (let count = 1; !served(); count += 1) {
    socket.send({ ...LAST, id: `again ${count}` });
    await socket.end(`again ${count}`);
  }
  await socket.close();
});

it('a query whose socket closes as its client completes it is left once, and others that have joined it go on', async () => {
  const waiters = new Waiters();
  waiters.add();
  const never = new Promise<never>(() => undefined);
  const answer = new Answer({ waiters, execute: () => never, failed: () => expect.unreachable() });
  void answer.next();
  await Promise.all([answer.return(), answer.return()]);
  expect(waiters.isGone).toBe(false);
  waiters.remove();
  expect(waiters.isGone).toBe(true);
});
