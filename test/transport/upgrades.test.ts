import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { clock, useClock } from '../../src/common/clock.ts';
import { WatchedResponse } from '../../src/transport/connections.ts';
import { createOpenStreams } from '../../src/transport/sockets/open-streams.ts';
import { acceptUpgrades } from '../../src/transport/upgrades.ts';
import { until } from '../helpers/until.ts';

const ADDRESS = '192.0.2.1';

it('a peer that is refused sees the reason, and is not cut off, whatever it still sends', async () => {
  await using cleanup = new AsyncDisposableStack();
  const system = clock;
  // The server gives it a second for that. Both ends are in one process, which may stand still.
  cleanup.defer(
    useClock({
      ...system,
      setTimeout: (callback, ms, ...args) => system.setTimeout(callback, 60 * ms, ...args),
    }),
  );
  const server = createServer().listen(0, '127.0.0.1');
  cleanup.defer(() => void server.close());
  await once(server, 'listening');
  const never = () => {
    throw new Error('It is refused before.');
  };
  const options = {
    allowsOrigin: never,
    onForeignOrigin: never,
    openStream: never,
    addressOf: never,
    turns: { turn: never },
  };
  acceptUpgrades(server, { path: '/graphql', drain: { isDraining: false }, ...options }, never);
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  socket.write('GET /other HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.write(Buffer.alloc(16 * 1024 * 1024));
  await once(socket, 'end');
  expect(text).toMatch(/^HTTP\/1.1 404 /);
  // An error would reject it.
  const gone = once(socket, 'close');
  socket.end();
  await gone;
});

/** One socket that waits to be let in, at a server with one seat. */
async function startWaiting(cleanup: AsyncDisposableStack) {
  const server = createServer().listen(0, '127.0.0.1');
  cleanup.defer(() => void server.close());
  await once(server, 'listening');
  const streams = createOpenStreams({ total: 1, perAddress: 1, perCaller: 1, perClient: 1 });
  const turn = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  const letIn: unknown[] = [];
  const drain = { isDraining: false };
  acceptUpgrades(
    server,
    {
      path: '/graphql',
      allowsOrigin: () => true,
      onForeignOrigin: () => undefined,
      openStream: () => streams.enter(ADDRESS, 'websocket'),
      addressOf: () => ADDRESS,
      turns: {
        turn() {
          waiting.resolve();
          return turn.promise;
        },
      },
      drain,
    },
    ({ socket }) => {
      letIn.push(socket);
      socket.destroy();
    },
  );
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  const upgrade = once(server, 'upgrade');
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /graphql HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  const [, upgraded] = await upgrade;
  await waiting.promise;
  return { streams, turn, letIn, drain, socket, upgraded };
}

it('a socket that breaks off while it waits to be let in gives its seat back', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { streams, turn, letIn, socket, upgraded } = await startWaiting(cleanup);
  expect(streams.enter(ADDRESS, 'websocket')).toBe('full');
  // `once` of node:events would reject with the error that comes first.
  const gone = new Promise((resolve) => upgraded.once('close', resolve));
  socket.resetAndDestroy();
  upgraded.resume();
  await gone;
  turn.resolve();
  await until(() => letIn.length === 1);
  expect(streams.enter(ADDRESS, 'websocket')).not.toBeTypeOf('string');
});

it('a socket that waits to be let in as the process begins to drain is refused, and gives its seat back', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { streams, turn, letIn, drain, socket } = await startWaiting(cleanup);
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  drain.isDraining = true;
  turn.resolve();
  await once(socket, 'close');
  expect(text).toMatch(/^HTTP\/1.1 503 .*\r\nRetry-After: 1\r\n/);
  expect(letIn).toEqual([]);
  await until(() => streams.taken.websocket === 0);
});

const PAYMENT = 'POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
const upgradeOf = (path: string, headers = '') =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`;

/** A server that lets sockets in, and answers a request once `answers` resolves. */
async function startAnswering(cleanup: AsyncDisposableStack, { perAddress = 1, isDraining = false } = {}) {
  const answers = Promise.withResolvers<void>();
  const server = createServer({ ServerResponse: WatchedResponse }, (_request, response) => {
    void answers.promise.then(() => response.end('paid'));
  });
  const streams = createOpenStreams({ total: 1, perAddress, perCaller: 1, perClient: 1 });
  const options = {
    path: '/graphql',
    allowsOrigin: () => false,
    onForeignOrigin: () => undefined,
    openStream: () => streams.enter(ADDRESS, 'websocket'),
    addressOf: () => ADDRESS,
    turns: { turn: () => undefined },
    drain: { isDraining },
  };
  acceptUpgrades(server, options, ({ socket }) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'));
  server.listen(0, '127.0.0.1');
  cleanup.defer(() => void server.close());
  await once(server, 'listening');
  // A server that listens on a port has one.
  return { server, answers, streams, port: (server.address() as AddressInfo).port };
}

it.each([
  ['to another path', upgradeOf('/other'), {}],
  ['of a foreign page', upgradeOf('/graphql', 'Origin: https://other.example\r\n'), {}],
  ['to a process that drains', upgradeOf('/graphql'), { isDraining: true }],
  ['of an address without a seat', upgradeOf('/graphql'), { perAddress: 0 }],
  ['that would be let in', upgradeOf('/graphql'), {}],
  // Node hands over such a one before its body is there, by a stream of its own.
  ['whose body is still to come', upgradeOf('/graphql', 'Content-Length: 2\r\n'), {}],
])(
  'ends the connection, and answers no request with what an upgrade behind it gets, %s',
  async (_which, upgrade, options) => {
    await using cleanup = new AsyncDisposableStack();
    const { server, answers, streams, port } = await startAnswering(cleanup, options);
    // A payment lasts until the upgrade is there.
    server.on('upgrade', () => answers.resolve());
    const socket = connect(port, '127.0.0.1');
    socket.write(PAYMENT + upgrade);
    expect(await text(socket)).toBe('');
    await until(() => streams.taken.websocket === 0);
  },
);

it('lets a socket in that comes once the request before it is answered', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { answers, port } = await startAnswering(cleanup);
  answers.resolve();
  const socket = connect(port, '127.0.0.1');
  socket.write(PAYMENT);
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1.1 200 .*paid$/s);
  socket.write(upgradeOf('/graphql'));
  expect(await text(socket)).toMatch(/^HTTP\/1.1 101 /);
});
