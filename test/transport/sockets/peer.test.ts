import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Turns } from '../../../src/common/turns.ts';
import { createOpenStreams } from '../../../src/transport/sockets/open-streams.ts';

import { Peer } from '../../../src/transport/sockets/peer.ts';
import { until } from '../../helpers/until.ts';

const MEGABYTE = 'x'.repeat(2 ** 20);

it('the messages of one caller take turns with those of others, however many sockets it has', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  // Nothing moves this clock but the work: one message is taken in a turn.
  let now = 0;
  const turns = new Turns(() => now);
  const asked: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  /** Messages wait here until all have come. */
  const gated: Pick<Turns, 'turn'> = {
    turn: (urgency, key) => {
      asked.push(key);
      return gate.promise.then(() => turns.turn(urgency, key));
    },
  };
  const taken: string[] = [];
  let sockets = 0;
  const openStreams = createOpenStreams({ total: 10, perAddress: 10, perCaller: 10, perClient: 10 });
  server.on('connection', (socket, request) => {
    const seat = openStreams.enter(undefined);
    if (typeof seat === 'string') throw new Error('there are ten seats');
    const turnKey = request.url ?? '';
    sockets += 1;
    new Peer(
      socket,
      { authorization: undefined, address: undefined, turnKey, seat },
      { onTold: () => undefined, turns: gated },
    ).onMessage(async (message) => {
      taken.push(message);
      now += 4;
    });
  });
  const connect = async (turnKey: string) => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/${turnKey}`);
    await once(client, 'open');
    client.send('hello');
    return client;
  };
  const hasty = await Promise.all(Array.from({ length: 5 }, () => connect('hasty')));
  const modest = await connect('modest');
  await until(() => sockets === 6 && taken.length === 6);
  taken.length = 0;
  for (const client of hasty) for (let count = 0; count < 20; count += 1) client.send('hasty');
  await until(() => asked.length === hasty.length);
  modest.send('modest');
  await until(() => asked.length === hasty.length + 1);
  gate.resolve();
  await until(() => taken.length === hasty.length * 20 + 1);
  expect(taken.indexOf('modest')).toBeLessThanOrEqual(1);
  for (const client of [...hasty, modest]) client.terminate();
  await new Promise((resolve) => server.close(resolve));
});

it('a socket whose client reads nothing is ended before much waits in it', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [WebSocket];
  await once(client, 'open');
  client.pause();
  const seat = createOpenStreams({ total: 1, perAddress: 1, perCaller: 1, perClient: 1 }).enter(undefined);
  if (typeof seat === 'string') throw new Error('nobody else has a seat');
  const peer = new Peer(
    socket,
    { authorization: undefined, address: undefined, turnKey: 'one', seat },
    { onTold: () => undefined, turns: new Turns(() => performance.now()) },
  );
  const largest = { waiting: 0 };
  await until(() => {
    if (!peer.isOpen) return true;
    peer.send(MEGABYTE).catch(() => undefined);
    largest.waiting = Math.max(largest.waiting, socket.bufferedAmount);
    return false;
  });
  expect(largest.waiting).toBeLessThan(6 * 2 ** 20);
  // What is sent to one that has ended goes nowhere.
  await peer.send(MEGABYTE);
  client.terminate();
  await new Promise((resolve) => server.close(resolve));
});
