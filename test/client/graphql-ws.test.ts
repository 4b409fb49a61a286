import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createSocket, type Socket } from '../../packages/client/src/graphql-ws.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { type Network, startNetwork } from './network.ts';

let gateway: RunningGateway;
let network: Network;

beforeAll(async () => {
  gateway = await startGateway({ webhooks: false });
  network = await startNetwork();
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await gateway.stop();
});

const connect = () => network.route(Number(new URL(gateway.url).port));
beforeEach(connect);

const answers = (socket: Socket) =>
  socket.query('{ __typename }', {}).then(({ data }) => expect(data).toEqual({ __typename: 'Query' }));

// A client of ws waits for half a minute for its close to be answered.
it('asks over another connection where the idle one was closed on a network that is gone', async () => {
  const socket = createSocket({
    url: network.graphql,
    token: () => gateway.sandbox.accessToken,
    webSocketImpl: WebSocket,
  });
  const opened: WebSocket[] = [];
  socket.client.on('connected', (connection) => opened.push(connection as WebSocket));
  await answers(socket);
  network.halfOpen();
  await until(() => opened[0]?.readyState === WebSocket.CLOSING);
  await answers(socket);
  expect(opened).toHaveLength(2);
  socket.close();
}, 15_000);

it('gives up a connection that nobody answers, also where it was checked while the token was on its way', async () => {
  // A network that swallows everything.
  const silent = createServer((connection) => connection.resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  network.route((silent.address() as AddressInfo).port);
  let give = (_: string): void => {};
  let asked = 0;
  const socket = createSocket({
    url: network.graphql,
    heartbeat: { everyMs: 10_000, withinMs: 500 },
    async token() {
      asked += 1;
      if (asked > 1) return gateway.sandbox.accessToken;
      return new Promise((resolve) => {
        give = resolve;
      });
    },
  });
  const first = answers(socket);
  await until(() => asked === 1);
  socket.check?.();
  await expect(first).rejects.toMatchObject({ code: 4499 });
  const second = answers(socket);
  give(gateway.sandbox.accessToken);
  await expect(second).rejects.toMatchObject({ code: 4499 });
  connect();
  await answers(socket);
  socket.close();
  network.cut();
  silent.close();
});
