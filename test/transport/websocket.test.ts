import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { createExpiryWatch } from '../../src/auth/expiry-watch.ts';
import { systemAlarmClock } from '../../src/common/alarms.ts';
import { Rounds } from '../../src/common/rounds.ts';
import type { Graph } from '../../src/graphql/yoga.ts';
import { createOpenStreams } from '../../src/transport/sockets/open-streams.ts';
import { serveWebSockets } from '../../src/transport/websocket.ts';
import { bell } from '../helpers/bell.ts';
import { until } from '../helpers/until.ts';

/** Sockets of a graph that nobody asks. */
async function start() {
  const cleanup = new AsyncDisposableStack();
  const server = createServer((_request, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
  cleanup.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const streams = createOpenStreams({ total: 9, perAddress: 9, perCaller: 9, perClient: 9 });
  const nothing = () => undefined;
  const closed: number[] = [];
  const drain = { isDraining: false };
  const never = () => Promise.reject(new Error('is not asked'));
  // Nothing is asked of the graph.
  const transport = serveWebSockets(server, {} as Graph, {
    path: '/graphql',
    allowsOrigin: () => true,
    onForeignOrigin: () => undefined,
    openStream: () => streams.enter(undefined, 'websocket'),
    addressOf: nothing,
    turns: { turn: nothing },
    identify: () => Promise.reject(new Error('Nobody says who calls.')),
    turnKeyOf: () => '',
    expiries: createExpiryWatch({ clock: systemAlarmClock, identify: never }),
    drain,
    metrics: {
      sharing: nothing,
      slow: nothing,
      delivered: nothing,
      gap: nothing,
      failed: nothing,
      lag: nothing,
    },
    rounds: new Rounds(bell()),
    documentOf: () => '',
    publicForm: (error) => error,
    onTold: nothing,
    onFailed: nothing,
    lifetimeMs: 0,
    operationTimeoutMs: 1_000,
    onClosed: (code) => void closed.push(code),
  });
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  return { transport, port, closed, drain, cleanup, [Symbol.asyncDispose]: () => cleanup.disposeAsync() };
}

/** A peer that never answers that its socket is closed. */
async function silentPeer(port: number, cleanup: AsyncDisposableStack): Promise<Socket> {
  const silent = connect(port, '127.0.0.1');
  silent.on('error', () => {});
  cleanup.defer(() => void silent.destroy());
  silent.write(
    [
      ...['GET /graphql HTTP/1.1', 'Host: gateway', 'Connection: Upgrade', 'Upgrade: websocket'],
      ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='],
      ...['Sec-WebSocket-Protocol: graphql-transport-ws', '', ''],
    ].join('\r\n'),
  );
  expect(String((await once(silent, 'data'))[0])).toContain('101 Switching Protocols');
  return silent;
}

it('lets no socket in while it waits for others to be closed', async () => {
  await using started = await start();
  const { transport, port } = started;
  await silentPeer(port, started.cleanup);
  started.drain.isDraining = true;
  const stopped = transport.stop(0);
  const late = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
  const outcome = new Promise((resolve) => {
    late.once('open', () => resolve('let in'));
    late.once('unexpected-response', (_, { statusCode, headers }) =>
      resolve([statusCode, headers['retry-after']]),
    );
    late.on('error', () => undefined);
  });
  expect(await outcome).toEqual([503, '1']);
  late.terminate();
  await stopped;
});

/** Timers that a test moves: those that repeat, or all. */
function stillTimers(which: 'repeated' | 'all'): void {
  const once = which === 'all' ? (['setTimeout', 'clearTimeout'] as const) : [];
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', ...once] });
  onTestFinished(() => void vi.useRealTimers());
}

it('cuts off a peer that does not answer for a second that its socket is closed', async () => {
  stillTimers('all');
  await using started = await start();
  const silent = await silentPeer(started.port, started.cleanup);
  const stopped = started.transport.stop(0);
  await once(silent, 'data');
  vi.advanceTimersByTime(999);
  expect(started.closed).toEqual([]);
  vi.advanceTimersByTime(1);
  await stopped;
  expect(started.closed).toEqual([1006]);
});

it('pings a socket that waits, and tells with which code it was closed', async () => {
  stillTimers('repeated');
  await using started = await start();
  const socket = new WebSocket(`ws://127.0.0.1:${started.port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const pinged = once(socket, 'ping');
  vi.advanceTimersByTime(12_000);
  await pinged;
  const gone = once(socket, 'close');
  socket.close(4_000);
  await gone;
  await started.transport.stop(0);
  expect(started.closed).toEqual([4_000]);
});

it.each([
  ['is too long', 1009, (socket: WebSocket) => socket.send('x'.repeat(65_537))],
  [
    'says too late how long it is',
    1009,
    (socket: WebSocket) => {
      socket.send('x'.repeat(65_000), { fin: false });
      socket.send('x'.repeat(1_000));
    },
  ],
  [
    'comes in too many pieces',
    1008,
    (socket: WebSocket) => {
      for (let count = 0; count < 2_000; count += 1) socket.send('x', { fin: false });
    },
  ],
])('closes a socket whose message %s, and tells with which code', async (_, code, send) => {
  await using started = await start();
  const socket = new WebSocket(`ws://127.0.0.1:${started.port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const gone = once(socket, 'close');
  send(socket);
  expect((await gone)[0]).toBe(code);
  await until(() => started.closed.length > 0);
  expect(started.closed).toEqual([code]);
});

it('a socket whose message comes byte by byte is closed', async () => {
  await using started = await start();
  const silent = await silentPeer(started.port, started.cleanup);
  // A text of 60,000 bytes, masked with zeros.
  silent.write(Buffer.from([0x81, 0xfe, 0xea, 0x60, 0, 0, 0, 0]));
  const told: Buffer[] = [];
  silent.on('data', (data) => told.push(Buffer.from(data)));
  for (let count = 0; count < 50_000 && told.length === 0; count += 1) {
    silent.write('x');
    await new Promise(setImmediate);
  }
  // A close frame, and its code.
  expect([told[0]?.[0], told[0]?.readUInt16BE(2)]).toEqual([0x88, 1008]);
});
