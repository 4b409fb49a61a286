import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as immediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { refusals } from '../../src/common/refusals.ts';
import {
  boundConnections,
  boundRequests,
  createConnections,
  WatchedResponse,
} from '../../src/transport/connections.ts';
import { startGateway } from '../helpers/gateway.ts';

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

const UPGRADE = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

it.each([
  ['nothing', ''],
  ['an upgrade', UPGRADE],
  ['a CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
])(
  'each answer of a connection that ends is closed, also where others are before it and %s is behind it',
  async (_what, behind) => {
    const closed: string[] = [];
    const connections = createConnections(({ req }) => void closed.push(req.url ?? ''));
    const bound = boundRequests();
    const came = Promise.withResolvers<Socket>();
    const server = createServer({ ServerResponse: WatchedResponse }, (request, response) => {
      bound(response);
      connections.watch(response);
      if (request.url === '/3') came.resolve(request.socket);
    });
    server
      .on('upgrade', (_request, upgraded) => upgraded.once('end', () => upgraded.destroy()).resume())
      .listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    // A server that listens on a port has one.
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const requests = ['/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    socket.write(`${requests.join('')}${behind}`);
    const gone = once(await came.promise, 'close');
    socket.destroy();
    await gone;
    await immediate();
    expect(closed.toSorted()).toEqual(['/1', '/2', '/3']);
  },
);

it('twenty requests may come behind one that is not answered yet; the next is refused, and ends its connection', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const refused = () => refusals().get('requests_of_connection') ?? 0;
  const before = refused();
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(30));
  const statuses = (await text(socket)).match(/(?<=^HTTP\/1\.1 )\d+/gm);
  expect(statuses).toEqual([...new Array<string>(21).fill('200'), '429']);
  expect(refused() - before).toBe(9);
});
