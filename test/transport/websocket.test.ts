import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createExpiryWatch } from '../../src/auth/expiry-watch.ts';
import { systemAlarmClock } from '../../src/common/alarms.ts';
import { Rounds } from '../../src/common/rounds.ts';
import type { Graph } from '../../src/graphql/yoga.ts';
import { createOpenStreams } from '../../src/transport/sockets/open-streams.ts';
import { serveWebSockets } from '../../src/transport/websocket.ts';
import { bell } from '../helpers/bell.ts';

it('lets no socket in while it waits for others to be closed', async () => {
  await using cleanup = new AsyncDisposableStack();
  const server = createServer((_request, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
  cleanup.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const streams = createOpenStreams({ total: 9, perAddress: 9, perCaller: 9, perClient: 9 });
  const nothing = () => undefined;
  const never = () => Promise.reject(new Error('is not asked'));
  // Nothing is asked of the graph.
  const transport = serveWebSockets(server, {} as Graph, {
    path: '/graphql',
    allowsOrigin: () => true,
    openStream: () => streams.enter(undefined),
    addressOf: nothing,
    turns: { turn: nothing },
    identify: () => Promise.reject(new Error('Nobody says who calls.')),
    turnKeyOf: () => '',
    expiries: createExpiryWatch({ clock: systemAlarmClock, identify: never }),
    metrics: {
      sharing: nothing,
      slowConsumerDisconnect: nothing,
      delivered: nothing,
      gap: nothing,
      lag: nothing,
    },
    rounds: new Rounds(bell()),
    documentOf: () => '',
    publicForm: (error) => error,
    onTold: nothing,
    lifetimeMs: 0,
    operationTimeoutMs: 1_000,
    onClosed: nothing,
  });
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  // It never answers that it is closed, so that the stop waits for it.
  const silent = connect(port, '127.0.0.1');
  cleanup.defer(() => void silent.destroy());
  silent.write(
    [
      ...['GET /graphql HTTP/1.1', 'Host: gateway', 'Connection: Upgrade', 'Upgrade: websocket'],
      ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='],
      ...['Sec-WebSocket-Protocol: graphql-transport-ws', '', ''],
    ].join('\r\n'),
  );
  expect(String((await once(silent, 'data'))[0])).toContain('101 Switching Protocols');
  const stopped = transport.stop(0);
  const late = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
  const outcome = new Promise((resolve) => {
    late.once('open', () => resolve('let in')).once('error', ({ message }) => resolve(message));
  });
  expect(await outcome).toContain('404');
  await stopped;
});
