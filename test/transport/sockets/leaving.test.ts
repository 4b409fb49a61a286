import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { UnsecuredJWT } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Waiters } from '../../../src/common/waiters.ts';
import { Answer } from '../../../src/transport/sockets/answer.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
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

let held: Held[];
let upstream: Upstream;
let gateway: RunningGateway;
beforeEach(async () => {
  held = [];
  upstream = await startUpstream((request: IncomingMessage, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x');
    if (pathname.endsWith('/instruments')) {
      json(response, { currentPage: 1, perPage: 1, totalItems: 0, data: [] });
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

it('a socket that uses the id of a mutation again which is executed is closed, as its answer would be taken for another', async () => {
  const socket = await connect(gateway, TOKEN);
  socket.ask('one', 'mutation { deleteWebhook(input: { id: "one" }) { __typename } }');
  const change = await callTo('/one');
  const closed = socket.closed();
  socket.send({ type: 'complete', id: 'one' });
  socket.ask('one', '{ client { id } }');
  expect(await closed).toBe(4409);
  change.response.writeHead(204).end();
  await once(change.response, 'finish');
  expect(socket.got.filter(({ id }) => id === 'one')).toEqual([]);
});

const ANOTHER = { type: 'subscribe', id: 'one', payload: { query: '{ client { id } }' } };
const STREAM = { type: 'subscribe', id: 'one', payload: { query: 'subscription { moneyIn { cursor } }' } };
const QUERY = { type: 'subscribe', id: 'one', payload: { query: '{ banks { id } }' } };
const COMPLETE = { type: 'complete', id: 'one' };

it.each([
  ['a stream', STREAM, (got: () => unknown[]) => until(() => got().length > 0)],
  ['a query that is executed', QUERY, () => callTo('/banks')],
])('the id of %s that its client completes is free at once', async (_, first, isRunning) => {
  const socket = await connect(gateway, TOKEN);
  socket.send(first);
  // A stream tells where it stands as it begins.
  await isRunning(() => socket.got.filter(({ type }) => type === 'ping'));
  // Within a moment after another message, the gateway takes both at once.
  socket.send({ type: 'ping' });
  await socket.heard();
  const before = socket.got.length;
  socket.together([COMPLETE, ANOTHER]);
  await socket.end('one');
  expect(socket.got.slice(before)).toMatchObject([
    { type: 'next', id: 'one', payload: { data: { client: { id: CLIENT_ID } } } },
    { type: 'complete', id: 'one' },
  ]);
  await socket.close();
});

it.each([
  ['a stream', STREAM],
  ['a query', { ...QUERY, payload: { query: '{ client { banks: id } }' } }],
  ['an operation that is refused', { ...QUERY, payload: { query: '{ nothing }' } }],
])('the id of %s that its client completes as it begins is free, too', async (_, first) => {
  const socket = await connect(gateway, TOKEN);
  socket.send({ type: 'ping' });
  await socket.heard();
  socket.together([first, COMPLETE, first, COMPLETE, ANOTHER, { ...ANOTHER, id: 'last' }]);
  await socket.end('last');
  const answer = { type: 'next', id: 'one', payload: { data: { client: { id: CLIENT_ID } } } };
  expect(socket.got.filter(({ id }) => id === 'one').slice(-2)).toMatchObject([
    answer,
    { type: 'complete', id: 'one' },
  ]);
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
