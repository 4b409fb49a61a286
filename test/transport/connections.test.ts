import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { boundConnections } from '../../src/transport/connections.ts';

it('connections of an address that were refused take no place, however many they were', async () => {
  // All that it is told by.
  const server = new EventEmitter() as Server;
  boundConnections(server, 2, ({ socket }) => (socket === unknown ? undefined : '192.0.2.1'));
  const come = (socket: Socket): boolean => {
    server.emit('connection', socket);
    return !socket.destroyed;
  };
  const unknown = new Socket();
  const [one, other] = [new Socket(), new Socket()];
  expect([come(one), come(other)]).toEqual([true, true]);
  for (let refused = 0; refused < 5; refused += 1) expect(come(new Socket())).toBe(false);
  expect(come(unknown)).toBe(true);
  one.destroy();
  await once(one, 'close');
  expect([come(new Socket()), come(new Socket())]).toEqual([true, false]);
});
