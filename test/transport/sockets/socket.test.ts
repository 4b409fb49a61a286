import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { AlarmClock } from '../../../src/common/alarms.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';

interface Message {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it asked for.
  readonly payload?: any;
}

/** A socket that is initialised, and what it is sent. */
async function connect(gateway: RunningGateway, authorization: string) {
  const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const got: Message[] = [];
  socket.on('message', (data) => got.push(JSON.parse(String(data))));
  await once(socket, 'open');
  const send = (message: object) => socket.send(JSON.stringify(message));
  send({ type: 'connection_init', payload: { authorization } });
  await until(() => got.some(({ type }) => type === 'connection_ack'));
  return {
    got,
    send,
    ask: (id: string, query: string) => send({ type: 'subscribe', id, payload: { query } }),
    /** How an operation has ended. */
    end: (id: string) => until(() => got.find((one) => one.id === id && one.type !== 'next')),
    async close() {
      socket.close();
      await once(socket, 'close');
    },
  };
}

/** The machine's time, and who sleeps. */
function watchedClock() {
  const sleepers = new Set<object>();
  const clock: AlarmClock = {
    now: () => Date.now(),
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
    payload: [{ extensions: { code: 'TOO_COMPLEX' } }],
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

it('a socket that completes its queries at once has no more than twenty of them executed', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const socket = await connect(gateway, `Bearer ${gateway.sandbox.accessToken}`);
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { method: 'GET', path: '/v1/banks' },
    fault: { delayMs: 60_000 },
    times: 100,
  });
  for (let count = 1; count <= 30; count += 1) {
    socket.ask(`${count}`, `query Q${count} { banks { id } }`);
    socket.send({ type: 'complete', id: `${count}` });
  }
  expect(await socket.end('30')).toMatchObject({
    type: 'error',
    payload: [{ extensions: { code: 'TOO_COMPLEX' } }],
  });
  expect(socket.got.filter(({ type }) => type === 'error')).toHaveLength(10);
  await socket.close();
});
