import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Turns } from '../../../src/common/turns.ts';
import { createOpenStreams } from '../../../src/transport/sockets/open-streams.ts';

import { Peer } from '../../../src/transport/sockets/peer.ts';
import { until } from '../../helpers/until.ts';

const MEGABYTE = 'x'.repeat(2 ** 20);

it('a socket that sends much at once does not keep the messages of others waiting behind all of it', async () => {
  const many = 2_000;
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const turns = new Turns(() => performance.now());
  const taken: string[] = [];
  const openStreams = createOpenStreams({ total: 2, perAddress: 2, perCaller: 2 });
  server.on('connection', (socket) => {
    const place = openStreams.enter(undefined);
    if (typeof place === 'string') throw new Error('there are two places');
    new Peer(
      socket,
      { authorization: undefined, address: undefined, place },
      { onTold: () => undefined, turns },
    ).onMessage(async (sender) => {
      taken.push(sender);
      if (sender === 'hasty' && taken.length === 2) modest.send('modest');
    });
  });
  const connect = async () => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await once(client, 'open');
    return client;
  };
  const [hasty, modest] = await Promise.all([connect(), connect()]);
  modest.send('modest');
  await until(() => taken.length === 1);
  for (let count = 0; count < many; count += 1) hasty.send('hasty');
  await until(() => taken.length === many + 2);
  expect(taken.lastIndexOf('modest')).toBeLessThan(many / 2);
  for (const client of [hasty, modest]) client.terminate();
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
  const place = createOpenStreams({ total: 1, perAddress: 1, perCaller: 1 }).enter(undefined);
  if (typeof place === 'string') throw new Error('nobody else has a place');
  const peer = new Peer(
    socket,
    { authorization: undefined, address: undefined, place },
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
