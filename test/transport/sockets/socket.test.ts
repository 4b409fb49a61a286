import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { queryObjects } from 'node:v8';
import { UnsecuredJWT } from 'jose';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { AlarmClock } from '../../../src/common/alarms.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { connect } from '../../helpers/socket.ts';
import { until } from '../../helpers/until.ts';

/** The machine's time, and who sleeps. */
function watchedClock() {
  const sleepers = new Set<object>();
  const clock: AlarmClock = {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    sleep: (_ms, signal) =>
      new Promise((_resolve, reject) => {
        const own = {};
        sleepers.add(own);
        signal.addEventListener('abort', () => {
          sleepers.delete(own);
          reject(signal.reason);
        });
      }),
  };
  return { clock, sleepers };
}

it.each([
  ['a moment ago', 60, 1],
  ['long ago', 3_600, 0],
])(
  'a socket whose token has ended %s, by the clock of the gateway %i s ago, costs so many questions about its caller: %i',
  async (_, ago, questions) => {
    await using upstream = await startUpstream((_request, response) =>
      json(response, { currentPage: 1, perPage: 1, totalItems: 0, data: [] }),
    );
    await using gateway = await startGateway({ webhooks: false, config: { upstreamUrl: upstream.url } });
    const end = Math.floor(Date.now() / 1_000) - ago;
    const token = new UnsecuredJWT({ client_id: CLIENT_ID }).setExpirationTime(end).encode();
    const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
    const [code] = await once(socket, 'close');
    expect([code, upstream.requests.length]).toEqual([4403, questions]);
  },
);

it.each([
  ['no token', {}, 'An access token is needed'],
  ['no Bearer before its token', { authorization: 'nonsense' }, 'must have the form: Bearer'],
  ['a token that is no JWT', { authorization: 'Bearer nonsense' }, 'it is no JWT'],
])('a socket with %s is closed with the reason', async (_, payload, told) => {
  await using gateway = await startGateway({ webhooks: false });
  const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload }));
  const [code, reason] = await once(socket, 'close');
  expect([code, String(reason)]).toEqual([4403, expect.stringContaining(told)]);
});

it('a socket that asks one thing after another keeps nothing of what has ended', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const socket = await connect(gateway, `Bearer ${gateway.sandbox.accessToken}`);
  // Of one caller 16 MiB may be kept: these take more together.
  for (let count = 0; count < 8; count += 1) {
    const id = `${count}`;
    socket.ask(id, `query Q${count} { __typename } # ${'x'.repeat(20_000)}`);
    expect(await socket.end(id)).toEqual({ type: 'complete', id });
  }
  await socket.close();
});

it('a socket carries twenty operations at once, and another where one of them ends', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const socket = await connect(gateway, `Bearer ${gateway.sandbox.accessToken}`);
  const watch = (id: string) => socket.ask(id, 'subscription { moneyIn { id } }');
  for (let count = 1; count <= 21; count += 1) watch(`${count}`);
  expect(await socket.end('21')).toMatchObject({
    type: 'error',
    payload: [{ extensions: { code: 'TOO_COMPLEX', retryable: true } }],
  });
  socket.send({ type: 'complete', id: '1' });
  // Messages are taken in their order: a query says that the one before was.
  socket.ask('22', '{ __typename }');
  expect(await socket.end('22')).toMatchObject({ type: 'complete' });
  expect(socket.got.filter(({ type }) => type === 'error')).toHaveLength(1);
  await socket.close();
});

it('nothing waits for the end of a credential whose sockets are gone', async () => {
  const { clock, sleepers } = watchedClock();
  await using plain = await startGateway({ webhooks: false });
  await using gateway = await startGateway({
    sandbox: plain.sandbox,
    webhooks: false,
    clock,
    config: { service: serviceFor(plain.sandbox) },
  });
  const authorization = `Bearer ${await callerToken()}`;
  const sockets = [await connect(gateway, authorization), await connect(gateway, authorization)];
  await until(() => sleepers.size === 1);
  for (const socket of sockets) await socket.close();
  await until(() => sleepers.size === 0);
});

it('a socket keeps nothing of the request that it came with', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const requests = () => queryObjects(IncomingMessage, { format: 'count' });
  // Node's own WebSocket, which makes no such object on its side.
  const sockets = Array.from(
    { length: 20 },
    () => new globalThis.WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws'),
  );
  let acknowledged = 0;
  for (const socket of sockets) {
    socket.addEventListener('message', () => {
      acknowledged += 1;
    });
    socket.addEventListener('open', () => {
      const payload = { authorization: `Bearer ${gateway.sandbox.accessToken}` };
      socket.send(JSON.stringify({ type: 'connection_init', payload }));
    });
  }
  await until(() => acknowledged === sockets.length);
  // The tests before may hold some for a moment.
  await until(() => requests() < sockets.length / 2);
  for (const socket of sockets) socket.close();
});

it('a socket that completes its mutations at once has no more than twenty of them executed', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const socket = await connect(gateway, `Bearer ${gateway.sandbox.accessToken}`);
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { method: 'DELETE' },
    fault: { delayMs: 60_000 },
    times: 100,
  });
  for (let count = 1; count <= 30; count += 1) {
    socket.ask(`${count}`, `mutation { deleteWebhook(input: { id: "w${count}" }) { __typename } }`);
    socket.send({ type: 'complete', id: `${count}` });
  }
  expect(await socket.end('30')).toMatchObject({
    type: 'error',
    payload: [{ extensions: { code: 'TOO_COMPLEX' } }],
  });
  expect(socket.got.filter(({ type }) => type === 'error')).toHaveLength(10);
  await socket.close();
});

it('a socket keeps nothing of operations that have ended, however much they brought', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const socket = await connect(gateway, `Bearer ${gateway.sandbox.accessToken}`);
  const query = 'query ($id: ID!) { client { id } node(id: $id) { id } }';
  // All of them together bring more than the operations of one caller may keep.
  const variables = { id: 'x'.repeat(60 * 1024) };
  for (let count = 1; count <= 150; count += 1) {
    socket.send({ type: 'subscribe', id: `${count}`, payload: { query, variables } });
    expect((await socket.end(`${count}`)).type).toBe('complete');
  }
  await socket.close();
});
