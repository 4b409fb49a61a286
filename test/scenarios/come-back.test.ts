import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { sendQuery, startGateway } from '../helpers/gateway.ts';
import { CLIENT_ID } from '../helpers/http-stub.ts';
import { until } from '../helpers/until.ts';

const PHONES = 200;
/** Probes of one address that may be under way (upstream/call/http.ts). */
const AT_ONCE = 96;
const NOTHING = JSON.stringify({ data: [], currentPage: 1, perPage: 1, totalItems: 0 });

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const tokenOf = (name: string): string =>
  [encode({ alg: 'HS256', typ: 'JWT' }), encode({ client_id: CLIENT_ID, jti: name }), 'signed'].join('.');

/** A REST service that keeps phones waiting for their answer, and nobody else. */
async function startSlowForPhones(): Promise<
  { readonly url: string; readonly held: ServerResponse[] } & AsyncDisposable
> {
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    const [, claims = ''] = (request.headers.authorization ?? '').split('.');
    if (Buffer.from(claims, 'base64url').toString().includes('phone')) held.push(response);
    else response.end(NOTHING);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A socket that says who it is; calls back once that is acknowledged, or with how the socket was closed. */
function connect(
  graphql: string,
  name: string,
  address: string,
  onAnswer: (answer: string) => void,
): WebSocket {
  const socket = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws', {
    headers: { 'x-forwarded-for': address },
  });
  const payload = { authorization: `Bearer ${tokenOf(name)}` };
  socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload })));
  socket.on('message', (data) => onAnswer(JSON.parse(String(data)).type));
  socket.on('close', (code) => onAnswer(`closed with ${code}`));
  return socket;
}

it('phones that come back all at once keep nobody else waiting, and none of them is lost', async () => {
  await using upstream = await startSlowForPhones();
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const inFront: Sandbox = { ...sandbox, url: upstream.url };
  await using gateway = await startGateway({
    sandbox: inFront,
    webhooks: false,
    config: { upstreamTimeoutMs: 25_000, operationTimeoutMs: 25_000 },
  });
  const answers: string[] = [];
  const sockets = Array.from({ length: PHONES }, (_, index) =>
    connect(gateway.graphql, `phone ${index}`, '198.51.100.1', (answer) => answers.push(answer)),
  );
  await until(() => upstream.held.length === AT_ONCE);

  // Somebody whom the gateway does not know yet either, over both transports.
  const asked = await sendQuery(
    gateway.graphql,
    '{ client { id } }',
    {},
    { authorization: `Bearer ${tokenOf('another')}`, 'x-forwarded-for': '198.51.100.2' },
  );
  expect(asked.data).toEqual({ client: { id: CLIENT_ID } });
  const others: string[] = [];
  sockets.push(connect(gateway.graphql, 'a third', '198.51.100.3', (answer) => others.push(answer)));
  await until(() => others.length === 1);
  expect(others).toEqual(['connection_ack']);
  expect(answers).toEqual([]);
  expect(upstream.held).toHaveLength(AT_ONCE);

  await until(() => {
    for (const response of upstream.held.splice(0)) response.end(NOTHING);
    return answers.length === PHONES;
  });
  expect(new Set(answers)).toEqual(new Set(['connection_ack']));
  for (const socket of sockets) {
    socket.removeAllListeners('close');
    socket.terminate();
  }
});
