import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { Caller, Scope } from '../../../src/auth/caller.ts';
import { createExpiryWatch } from '../../../src/auth/expiry-watch.ts';
import { systemAlarmClock } from '../../../src/common/alarms.ts';
import { Rounds } from '../../../src/common/rounds.ts';
import type { Graph } from '../../../src/graphql/yoga.ts';
import { createOpenStreams } from '../../../src/transport/sockets/open-streams.ts';
import { Peer } from '../../../src/transport/sockets/peer.ts';
import { createProtocol } from '../../../src/transport/sockets/protocol.ts';
import { bell } from '../../helpers/bell.ts';
import { until } from '../../helpers/until.ts';

const CALLER: Caller = {
  ...{ clientId: 'client', customerId: undefined, subject: 'ana', keyOwner: undefined },
  ...{ scopes: new Set<Scope>(), expiresAt: undefined },
};

it('a socket takes turns as its caller once that is known, and as its address before, and tells whom it is told for, for as long as it is there', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const nothing = () => undefined;
  const living = new Set<object>();
  const never = () => Promise.reject(new Error('is not asked'));
  const protocol = createProtocol(
    // Nothing is asked of it.
    {} as Graph,
    {
      identify: async () => CALLER,
      turnKeyOf: (authorization, address) => `caller of ${authorization} at ${address}`,
      expiries: createExpiryWatch({ clock: systemAlarmClock, identify: never }),
      metrics: {
        sharing: nothing,
        slow: nothing,
        delivered: nothing,
        gap: nothing,
        lag: nothing,
      },
      rounds: new Rounds(bell()),
      documentOf: () => '',
      publicForm: (error) => error,
    },
    { begin: (one) => void living.add(one), leave: (one) => void living.delete(one), stop: nothing },
  );
  const streams = createOpenStreams({ total: 1, perAddress: 1, perCaller: 1, perClient: 1 });
  const turns: string[] = [];
  const told: (readonly [string, string])[] = [];
  const peers: Peer[] = [];
  server.on('connection', (socket) => {
    const seat = streams.enter('an address', 'websocket');
    if (typeof seat === 'string') throw new Error('There is a seat.');
    const peer = new Peer(
      socket,
      { authorization: 'Bearer one', address: 'an address', turnKey: 'the address', seat },
      {
        onTold: (...whose) => void told.push(whose),
        turns: { turn: (urgency, key) => void turns.push(`${urgency} ${key}`) },
      },
    );
    peers.push(peer);
    const closed = protocol.opened(peer, peer);
    socket.once('close', (code, reason) => void closed(code, String(reason)));
  });
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, 'graphql-transport-ws');
  const heard: string[] = [];
  socket.on('message', (data) => heard.push(JSON.parse(String(data)).type));
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await until(() => heard.includes('connection_ack'));
  expect(turns).toEqual([]);
  socket.send(JSON.stringify({ type: 'ping' }));
  await until(() => heard.includes('pong'));
  expect(turns).toEqual(['streams caller of Bearer one at an address']);
  for (const peer of peers) peer.beforeEvent();
  expect(told).toEqual([['Bearer one', 'client']]);
  expect(living.size).toBe(1);
  socket.terminate();
  await until(() => living.size === 0);
  await new Promise((resolve) => server.close(resolve));
});
