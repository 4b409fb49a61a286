import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import { WatchedResponse } from '../../src/transport/connections.ts';
import { answerUnreadable } from '../../src/transport/unreadable.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false });
});
afterAll(() => gateway.stop());

const REQUEST = 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
/** Of version 2, as HAProxy sends it with `send-proxy-v2`: the signature, PROXY over TCP of IPv4, the length and the addresses. */
const PROXY_2 = '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x05\x06\x07\x08\0\x01\0\x02';

/** What a connection gets for these bytes, until it is closed. */
function send(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes, 'latin1');
  return text(socket);
}

/** Its level and text, and the protocol, of each line that tells of a connection. */
const lines = () =>
  gateway.log
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message.startsWith('a connection was refused'));

it.each([
  ['the PROXY protocol', `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${REQUEST}`, 'X-Forwarded-For'],
  ['the PROXY protocol', `${PROXY_2}${REQUEST}`, 'X-Forwarded-For'],
  ['TLS', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03', 'http://'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'HTTP/1.1'],
])('says of a connection that begins with %s what helps, and logs it once', async (protocol, bytes, cure) => {
  const port = Number(new URL(gateway.url).port);
  for (const _time of [1, 2]) {
    const answer = await send(port, bytes);
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(answer).toContain(`This connection begins with ${protocol}. `);
    expect(answer).toContain(cure);
  }
  expect(lines().filter((line) => line.protocol === protocol)).toHaveLength(1);
});

it('says what is wrong with headers that are too long, and with what is no request, and logs neither', async () => {
  const port = Number(new URL(gateway.url).port);
  const before = lines().length;
  const long = `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`;
  expect(await send(port, long)).toMatch(
    /^HTTP\/1.1 431 .*"The headers of a request have 16384 bytes at most\."/s,
  );
  expect(await send(port, 'nothing\r\n\r\n')).toMatch(
    /^HTTP\/1.1 400 .*"This is no request of HTTP\/1\.1\."/s,
  );
  expect(lines()).toHaveLength(before);
});

it('writes nothing into an answer that has begun', async () => {
  const server = createServer({ ServerResponse: WatchedResponse }, (_request, response) => {
    response.writeHead(200).write('begun');
  });
  answerUnreadable(server, silentLogger);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(socket, 'data');
  socket.write('nothing\r\n\r\n');
  expect(await text(socket)).toBe('');
});

const PAYMENT = 'POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
const CHUNKED = 'POST /graphql HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';

it.each([
  ['whose head does not end', 'GET /healthz HTTP/1.1\r\nHost'],
  ['whose body is malformed', `${CHUNKED}nothing\r\n`],
  ['that is none', 'nothing\r\n\r\n'],
])(
  'ends the connection, and answers no whole request with the fault of one behind it %s',
  async (_which, behind) => {
    const paid = Promise.withResolvers<void>();
    const limits = { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 10 };
    const server = createServer({ ServerResponse: WatchedResponse, ...limits }, (received, response) => {
      // A payment lasts until the fault is there.
      if (received.headers['content-length'] === '2') void paid.promise.then(() => response.end('paid'));
    });
    answerUnreadable(server, silentLogger);
    server.on('clientError', () => paid.resolve());
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    // A server that listens on a port has one.
    const { port } = server.address() as AddressInfo;
    expect(await send(port, `${PAYMENT}${behind}`)).toBe('');
  },
);

it('says of a body what is wrong, as long as its request has no answer', async () => {
  const port = Number(new URL(gateway.url).port);
  expect(await send(port, `${CHUNKED}nothing\r\n`)).toMatch(
    /^HTTP\/1.1 400 .*"This is no request of HTTP\/1\.1\."/s,
  );
});

it('answers between two requests of a connection', async () => {
  const port = Number(new URL(gateway.url).port);
  const socket = connect(port, '127.0.0.1');
  socket.write(REQUEST.replace('Connection: close\r\n', ''));
  await once(socket, 'data');
  socket.write('nothing\r\n\r\n');
  expect(await text(socket)).toMatch(/HTTP\/1.1 400 /);
});

const HANDSHAKE = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' };

/** @returns the status and the body of what is answered to a GET of the graph */
async function get(headers: Readonly<Record<string, string>>) {
  const sent = request(gateway.graphql, { headers });
  sent.end();
  const [answer] = await once(sent, 'response');
  return { status: answer.statusCode, body: await text(answer) };
}

it('says of a WebSocket whose proxy has taken Upgrade off what is missing, and logs it once', async () => {
  // As nginx passes it on with `proxy_pass` alone.
  const lost = { ...HANDSHAKE, connection: 'close' };
  for (const headers of [lost, { ...lost, upgrade: 'websocket' }]) {
    const { status, body } = await get(headers);
    expect(status).toBe(400);
    expect(body).toContain('without its header Upgrade, or Connection');
  }
  expect(gateway.log.filter((line) => line.includes('without its header Upgrade'))).toHaveLength(1);
});

it('says of a WebSocket whose proxy has cut the port off Host what helps, and logs both headers once', async () => {
  const foreign = { ...HANDSHAKE, connection: 'Upgrade', upgrade: 'websocket' };
  for (const _time of [1, 2]) {
    const { status, body } = await get({ ...foreign, origin: 'https://a.example:8443', host: 'a.example' });
    expect(status).toBe(403);
    expect(JSON.parse(body).error).toContain('Have the proxy on the way pass Host on');
  }
  const told = gateway.log.filter((line) => line.includes('its Origin is neither'));
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('"origin":"https://a.example:8443","host":"a.example"');
});

it('has no cache keep whether it is ready, what it measures, or that a path is unknown', async () => {
  for (const path of ['/readyz', '/healthz', '/metrics', '/nothing']) {
    const answer = await fetch(`${gateway.url}${path}`);
    await answer.text();
    expect([path, answer.headers.get('cache-control')]).toEqual([path, 'no-store']);
  }
});
