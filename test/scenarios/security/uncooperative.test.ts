import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';

/** The gateway's ends of connections, by the port of the other end. */
const accepted = new Map<number | undefined, Socket>();
const note = (message: unknown): void => {
  const { socket } = message as { readonly socket: Socket };
  accepted.set(socket.remotePort, socket);
};

let gateway: RunningGateway;
let stopping: RunningGateway;
beforeAll(async () => {
  diagnostics.subscribe('net.server.socket', note);
  // Where it is longer, a connection is kept for longer, and no less surely ended.
  const keepAliveTimeoutMs = 1_000;
  gateway = await startGateway({ webhooks: false, config: { streams: STREAMS, keepAliveTimeoutMs } });
  const { sandbox } = gateway;
  stopping = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), keepAliveTimeoutMs },
  });
});
afterAll(async () => {
  diagnostics.unsubscribe('net.server.socket', note);
  for (const { socket } of peers) socket.destroy();
  await stopping.stop();
  await gateway.stop();
});

const STREAMS = { total: 1_000, perAddress: 100, perCaller: 100, perClient: 100 };
const FULL = '198.51.100.77';

/** How a peer does not cooperate. It never closes its half of the connection in either. */
const PEERS = ['reads, and keeps its half open', 'never reads'] as const;

interface Peer {
  readonly socket: Socket;
  /** Its own; a socket that is closed does not know it any more. */
  readonly port: number | undefined;
}

const peers: Peer[] = [];

async function connected(url: string, kind: (typeof PEERS)[number]): Promise<Peer> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.on('error', () => undefined);
  if (kind === 'never reads') socket.pause();
  else socket.resume();
  await once(socket, 'connect');
  const peer = { socket, port: socket.localPort };
  peers.push(peer);
  return peer;
}

const lines = (...text: string[]): string => `${text.join('\r\n')}\r\n\r\n`;

const upgrade = (path = '/graphql', ...headers: string[]): string =>
  lines(
    `GET ${path} HTTP/1.1`,
    'Host: x',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
    ...headers,
  );

const post = (path: string, length: number | 'chunked', ...headers: string[]): string =>
  lines(
    `POST ${path} HTTP/1.1`,
    'Host: x',
    'Content-Type: application/json',
    length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
    ...headers,
  );

/** A text frame as clients send it, masked with zeros (RFC 6455, 5.2). */
function frame(text: string): Buffer {
  const payload = Buffer.from(text);
  const head =
    payload.length < 126
      ? Buffer.from([0x81, 0x80 | payload.length])
      : Buffer.from([0x81, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  if (payload.length >= 126) head.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

const init = (authorization?: string): Buffer =>
  frame(JSON.stringify({ type: 'connection_init', payload: { authorization } }));

const subscription = JSON.stringify({ query: 'subscription { moneyIn { id } }' });

/** All ways in which the gateway ends a connection, or should, and what a peer sends for it. */
const WAYS: Readonly<Record<string, () => readonly (string | Buffer)[]>> = {
  'an upgrade at another path': () => [upgrade('/nothing')],
  'an upgrade from another origin': () => [upgrade('/graphql', 'Origin: https://evil.example')],
  'an upgrade from an address that is full': () => [upgrade('/graphql', `X-Forwarded-For: ${FULL}`)],
  'an upgrade to something else': () => [
    lines('GET /graphql HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: h2c'),
  ],
  'an upgrade with a body after it': () => [upgrade('/nothing'), Buffer.alloc(300_000)],
  'a token that is refused': () => [upgrade(), init('Bearer nonsense')],
  'a socket that says nothing': () => [upgrade()],
  'a message that is none': () => [upgrade(), frame('nonsense')],
  'two initialisations': () => [upgrade(), init('Bearer nonsense'), init('Bearer nonsense')],
  'a message that is too long': () => [upgrade(), frame('x'.repeat(70_000))],
  'an operation before the initialisation': () => [
    upgrade(),
    frame(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: '{ client { id } }' } })),
  ],
  'a connection that sends nothing': () => [],
  'headers that never end': () => ['GET /graphql HTTP/1.1\r\nHost: x\r\n'],
  'a request that is no HTTP': () => ['nonsense\r\n\r\n'],
  'a request that has been answered': () => [lines('GET /healthz HTTP/1.1', 'Host: x')],
  'a request that asks to be the last': () => [
    lines('GET /healthz HTTP/1.1', 'Host: x', 'Connection: close'),
  ],
  'a body that is longer than said to be allowed': () => [
    post('/graphql', 10_000_000),
    Buffer.alloc(200_000, ' '),
  ],
  'a body whose length nobody said, too long': () => [
    post('/graphql', 'chunked'),
    ...Array.from({ length: 6 }, () =>
      Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, ' '), Buffer.from('\r\n')]),
    ),
  ],
  'a body that never ends': () => [post('/graphql', 1_000), '{'],
  'a delivery that is not signed': () => [post('/webhooks/a/CEP/b', 1_000), '{'],
  'a delivery whose body never ends': () => [post(webhookPath(), 1_000), '{'],
  'a delivery that is too long': () => [post(webhookPath(), 100_000), Buffer.alloc(99_000, ' ')],
  'a method that is not served': () => [lines('DELETE /graphql HTTP/1.1', 'Host: x', 'Content-Length: 1000')],
  'a CONNECT': () => [lines('CONNECT example.mx:443 HTTP/1.1', 'Host: example.mx:443')],
};

const webhookPath = (): string =>
  new URL(gateway.ingress.url(gateway.sandbox.clientId, 'CEP') ?? '').pathname;

const gone = ({ port }: Peer): Promise<boolean> => until(() => accepted.get(port)?.destroyed === true);

async function begin(kind: (typeof PEERS)[number], parts: readonly (string | Buffer)[]): Promise<Peer> {
  const peer = await connected(gateway.url, kind);
  for (const part of parts) peer.socket.write(part);
  return peer;
}

describe.each(PEERS)('a peer that %s', (kind) => {
  // All at once: each takes as long as the time-out that ends it.
  const begun = new Map<string, Promise<Peer>>();
  beforeAll(async () => {
    const full = upgrade('/graphql', `X-Forwarded-For: ${FULL}`);
    const holders = Array.from({ length: STREAMS.perAddress }, () => begin(PEERS[0], [full]));
    for (const { socket } of await Promise.all(holders)) await once(socket, 'data');
    for (const [way, parts] of Object.entries(WAYS)) begun.set(way, begin(kind, parts()));
    await Promise.all(begun.values());
  });

  it.each(Object.keys(WAYS))('holds no connection after %s', async (way) => {
    const peer = await begun.get(way);
    expect(peer && (await gone(peer))).toBe(true);
  });

  it('holds no connection after a stream that has ended', async () => {
    const exp = Math.floor(Date.now() / 1000) + 2;
    const peer = await connected(stopping.url, kind);
    const authorization = `Authorization: Bearer ${await callerToken({ exp })}`;
    peer.socket.write(
      post('/graphql', subscription.length, 'Accept: text/event-stream', authorization) + subscription,
    );
    await gone(peer);
  });

  it('holds no connection, having closed its half in the midst of a socket', async () => {
    const peer = await begin(kind, [upgrade(), init(`Bearer ${gateway.sandbox.accessToken}`)]);
    peer.socket.end();
    await gone(peer);
  });
});

it('four hundred refused upgrades leave no connection behind', async () => {
  const refused = await Promise.all(
    Array.from({ length: 400 }, () => begin(PEERS[0], [upgrade('/graphql', 'Origin: https://evil.example')])),
  );
  for (const peer of refused) await gone(peer);
  expect((await fetch(`${gateway.url}/healthz`)).ok).toBe(true);
});

it('a gateway that stops waits for none of them', async () => {
  const ending = await startGateway({ sandbox: gateway.sandbox, webhooks: false });
  const open = await Promise.all(PEERS.map((kind) => connected(ending.url, kind)));
  for (const { socket } of open) {
    socket.write(upgrade());
    socket.write(init(`Bearer ${gateway.sandbox.accessToken}`));
  }
  const idle = await connected(ending.url, 'never reads');
  idle.socket.write(lines('GET /healthz HTTP/1.1', 'Host: x'));
  const all = [...open, idle];
  await until(() => all.every(({ port }) => (accepted.get(port)?.bytesWritten ?? 0) > 0));
  await ending.stop();
  for (const peer of all) await gone(peer);
});
