import { createClient } from 'graphql-ws';
import { expect, it } from 'vitest';
import { type CloseEvent, WebSocket } from 'ws';
import { control, startGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { inject } from '../../scenarios/faults/payments.ts';

const SOCKETS = 20;

/** A socket of the stock client that stays open until it is closed by the other side. */
function open(graphql: string, token: string) {
  const closes: { code: number; reason: string }[] = [];
  let opened = 0;
  const client = createClient({
    url: graphql.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    lazy: false,
    onNonLazyError() {},
    connectionParams: { authorization: `Bearer ${token}` },
    retryWait: async () => {},
    on: {
      connected: () => {
        opened += 1;
      },
      closed: (event) => {
        // graphql-ws hands on what the socket's own class gives.
        const { code, reason } = event as CloseEvent;
        closes.push({ code, reason });
      },
    },
  });
  return { client, closes, opened: () => opened };
}

it('closes sockets whose time is over, and they connect again, twice', async () => {
  await using gateway = await startGateway({ config: { socketLifetimeMs: 400 } });
  const { graphql, sandbox } = gateway;
  const sockets = Array.from({ length: SOCKETS }, () => open(graphql, sandbox.accessToken));
  await until(() => sockets.every(({ closes, opened }) => closes.length >= 2 && opened() >= 3));
  const told = sockets.flatMap(({ closes }) => closes.slice(0, 2));
  expect(told).toEqual(told.map(() => ({ code: 1012, reason: 'Connect again' })));
  for (const { client } of sockets) await client.dispose();
});

it('closes a socket that waits for an answer once it has it', async () => {
  await using gateway = await startGateway({ config: { socketLifetimeMs: 100 } });
  const { graphql, sandbox } = gateway;
  await inject(sandbox, { path: '/v1/' }, { delayMs: 1_000 });
  const { client, closes } = open(graphql, sandbox.accessToken);
  for (let time = 0; time < 2; time += 1) {
    const before = closes.length;
    for await (const { data } of client.iterate({
      query: '{ client { accounts(first: 1) { nodes { id } } } }',
    }))
      expect(data).toMatchObject({ client: {} });
    await until(() => closes.length > before);
  }
  await control(sandbox, 'DELETE', '/sandbox/faults');
  await client.dispose();
});
