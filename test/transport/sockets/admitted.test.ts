import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { Caller, Scope } from '../../../src/auth/caller.ts';
import { createExpiryWatch, type ExpiryWatch } from '../../../src/auth/expiry-watch.ts';
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

interface Admitting extends AsyncDisposable {
  readonly url: string;
  readonly expiries: ExpiryWatch;
  /** The sockets whose lifetime goes on. */
  readonly living: ReadonlySet<object>;
  /** How many sockets are gone, and everything that follows on it has been done. */
  readonly gone: () => number;
  readonly turns: string[];
  readonly told: (readonly [string, string])[];
  readonly peers: Peer[];
}

/** Serves sockets, and asks nothing of a graph. */
async function start(identify: () => Promise<Caller>): Promise<Admitting> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const nothing = () => undefined;
  const living = new Set<object>();
  let gone = 0;
  const never = () => Promise.reject(new Error('is not asked'));
  const expiries = createExpiryWatch({ clock: systemAlarmClock, identify: never });
  const protocol = createProtocol(
    {} as Graph,
    {
      identify,
      turnKeyOf: (authorization, address) => `caller of ${authorization} at ${address}`,
      expiries,
      drain: { isDraining: false },
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
    },
    { begin: (one) => void living.add(one), leave: (one) => void living.delete(one), stop: nothing },
  );
  const streams = createOpenStreams({ total: 2, perAddress: 2, perCaller: 1, perClient: 1 });
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
        onFailed: nothing,
        turns: { turn: (urgency, key) => void turns.push(`${urgency} ${key}`) },
      },
    );
    peers.push(peer);
    const closed = protocol.opened(peer, peer);
    socket.once('close', async (code, reason) => {
      await closed(code, String(reason));
      gone += 1;
    });
  });
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}`,
    ...{ expiries, living, turns, told, peers, gone: () => gone },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        for (const client of server.clients) client.terminate();
        server.close(() => resolve());
      }),
  };
}

it('a socket takes turns as its caller once that is known, and as its address before, and tells whom it is told for, for as long as it is there', async () => {
  await using serving = await start(async () => CALLER);
  const { url, turns, told, peers, living } = serving;
  const socket = new WebSocket(url, 'graphql-transport-ws');
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
  expect(serving.expiries.isWatched('Bearer one')).toBe(true);
  socket.terminate();
  await until(() => living.size === 0);
  expect(serving.expiries.isWatched('Bearer one')).toBe(false);
});

it('a socket that is gone before its caller is known is not watched, and no lifetime of it begins', async () => {
  const asked = Promise.withResolvers<void>();
  const known = Promise.withResolvers<Caller>();
  await using serving = await start(() => {
    asked.resolve();
    return known.promise;
  });
  const socket = new WebSocket(serving.url, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await asked.promise;
  socket.terminate();
  await until(() => serving.peers[0]?.isOpen === false);
  known.resolve(CALLER);
  // What follows on the answer has been done by then.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(serving.expiries.isWatched('Bearer one')).toBe(false);
  expect(serving.living.size).toBe(0);
});

it('a socket that is gone before it has begun leaves others with the same credential watched', async () => {
  await using serving = await start(async () => CALLER);
  const connect = () => new WebSocket(serving.url, 'graphql-transport-ws');
  const [staying, leaving] = [connect(), connect()];
  await Promise.all([staying, leaving].map((socket) => once(socket, 'open')));
  staying.send(JSON.stringify({ type: 'connection_init' }));
  await until(() => serving.expiries.isWatched('Bearer one'));
  leaving.terminate();
  await until(() => serving.gone() === 1);
  expect(serving.expiries.isWatched('Bearer one')).toBe(true);
  staying.terminate();
  await until(() => serving.gone() === 2);
  expect(serving.expiries.isWatched('Bearer one')).toBe(false);
});

it('a socket whose `connection_init` came while the process was busy stays, though its time is over when it is read', async () => {
  await using serving = await start(async () => CALLER);
  const socket = new WebSocket(serving.url, 'graphql-transport-ws');
  const heard: string[] = [];
  socket.on('message', (data) => heard.push(JSON.parse(String(data)).type));
  socket.on('close', (code) => heard.push(`closed with ${code}`));
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  // The 3 s that a client has pass before the server reads again.
  const begun = performance.now();
  while (performance.now() - begun < 3_100);
  await until(() => heard.length > 0);
  expect(heard).toEqual(['connection_ack']);
});

it('a socket that sends other messages in the place of `connection_init` is closed once its time is over', async () => {
  await using serving = await start(async () => CALLER);
  const socket = new WebSocket(serving.url, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'ping' }));
  const [code] = await once(socket, 'close');
  expect(code).toBe(4408);
});
