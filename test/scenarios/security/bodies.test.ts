import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  control,
  type GraphQLAnswer,
  type RunningGateway,
  sendQuery,
  startGateway,
} from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { inject, requestsOf } from '../faults/payments.ts';

const ORIGIN = 'https://app.example';
const LENGTH = 256 * 1024;
const MEGABYTE = 1024 * 1024;
/** What the bodies of one address may take, and those of all strangers. */
const PER_ADDRESS = 8 * MEGABYTE;
const STRANGERS = 16 * MEGABYTE;

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({
    webhooks: false,
    // A question that hangs does so for as long as a slow machine takes.
    config: {
      allowsOrigin: (origin) => origin === ORIGIN,
      upstreamTimeoutMs: 60_000,
      operationTimeoutMs: 60_000,
    },
  });
});
afterAll(() => gateway.stop());

interface Sender {
  readonly socket: Socket;
  /** What it was answered. */
  text: string;
}

/** Sends a body but for its last byte. */
async function send(
  path: string,
  address: string,
  length = LENGTH,
  framing = 'plain',
  authorization?: string,
): Promise<Sender> {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  const sender: Sender = { socket, text: '' };
  socket.setEncoding('utf8').on('error', () => undefined);
  socket.on('data', (text) => {
    sender.text += text;
  });
  await once(socket, 'connect');
  const lines = [
    'Host: x',
    `Origin: ${ORIGIN}`,
    'Content-Type: application/json',
    `X-Forwarded-For: ${address}`,
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
  ];
  const said = framing === 'plain' ? `Content-Length: ${length}` : 'Transfer-Encoding: chunked';
  socket.write(`POST ${path} HTTP/1.1\r\n${[...lines, said].join('\r\n')}\r\n\r\n`);
  const body =
    framing === 'plain' ? Buffer.alloc(length - 1, ' ') : Buffer.from('1\r\n \r\n'.repeat(length - 1));
  await new Promise((resolve) => socket.write(body, resolve));
  return sender;
}

const webhookPath = (): string =>
  new URL(gateway.ingress.url(gateway.sandbox.clientId, 'CEP') ?? '').pathname;

async function isServed(address: string, authorization?: string): Promise<boolean> {
  const query = '{ client { id } }'.padEnd(100_000);
  const { data, errors } = await gateway.query(query, {}, { 'x-forwarded-for': address, authorization });
  return authorization === undefined
    ? errors?.[0]?.extensions['code'] === 'UNAUTHENTICATED'
    : data?.client.id === gateway.sandbox.clientId;
}

describe('bodies that never end', () => {
  it('of one address are refused beyond its share, and others are served', async () => {
    const authorization = `Bearer ${gateway.sandbox.accessToken}`;
    // From now on its caller is known, wherever it calls from.
    expect(await isServed('192.0.2.1', authorization)).toBe(true);
    const count = (2 * PER_ADDRESS) / LENGTH;
    const senders = await Promise.all(Array.from({ length: count }, () => send('/graphql', '192.0.2.1')));
    const refused = () => senders.filter(({ text }) => text !== '');
    await until(() => refused().length > count / 3);
    for (const { text } of refused()) {
      expect(text).toMatch(/^HTTP\/1\.1 429 /);
      expect(text.toLowerCase()).toContain('retry-after: 1');
      expect(text).toContain(
        'The requests under way of this client, subject, customer or address hold too many bytes. Try again later.',
      );
      const [, requestId] = /x-request-id: (\S+)/i.exec(text) ?? [];
      const extensions = { code: 'RATE_LIMITED', retryAfterMs: 1_000, requestId };
      expect(text).toContain(JSON.stringify(extensions));
      // A page that may use the graph can read why it is refused.
      expect(text.toLowerCase()).toContain(`access-control-allow-origin: ${ORIGIN}`);
    }
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/^pasarela_refused_total\{limit="bodies_of_sender"\} [1-9]/m);
    expect(senders.length - refused().length).toBeGreaterThan(10);
    expect(await isServed('192.0.2.1', authorization)).toBe(true);
    expect(await isServed('192.0.2.2')).toBe(true);
    const delivery = await fetch(new URL(webhookPath(), gateway.url), { method: 'POST', body: '{}' });
    expect(delivery.status).toBe(400);
    for (const { socket } of senders) socket.destroy();
    await until(() => isServed('192.0.2.1'));
  });

  it('of many addresses leave room for known callers and for deliveries', async () => {
    const authorization = `Bearer ${gateway.sandbox.accessToken}`;
    expect(await isServed('192.0.2.1', authorization)).toBe(true);
    const count = (2 * STRANGERS) / LENGTH;
    const senders = await Promise.all(
      Array.from({ length: count }, (_, index) => send('/graphql', `198.51.100.${index % 200}`)),
    );
    const refused = () => senders.filter(({ text }) => text !== '');
    await until(() => refused().length > count / 3);
    for (const { text } of refused()) expect(text).toMatch(/^HTTP\/1\.1 503 /);
    expect(await isServed('192.0.2.1', authorization)).toBe(true);
    const delivery = await fetch(new URL(webhookPath(), gateway.url), { method: 'POST', body: '{}' });
    expect(delivery.status).toBe(400);
    for (const { socket } of senders) socket.destroy();
  });

  it('count what each of their pieces takes', async () => {
    const senders = await Promise.all(
      Array.from({ length: 3 }, () => send('/graphql', '203.0.113.9', 60_000, 'chunked')),
    );
    await until(() => senders.some(({ text }) => text.startsWith('HTTP/1.1 429 ')));
    for (const { socket } of senders) socket.destroy();
  });

  it('take no room once their requests are answered, however many one caller sends', async () => {
    const authorization = `Bearer ${gateway.sandbox.accessToken}`;
    // Each is longer than a hundredth of what its sender may have.
    for (let count = 0; count < 100; count += 1)
      expect(await isServed('192.0.2.1', authorization)).toBe(true);
  });

  it('take no room once their senders have left before the answer, however many one caller sends', async () => {
    const { sandbox } = gateway;
    const authorization = `Bearer ${sandbox.accessToken}`;
    expect(await isServed('192.0.2.1', authorization)).toBe(true);
    await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, 'hang');
    const calls = () => requestsOf(sandbox, 'GET /v1/clients/{clientId}/instruments/{instrumentId}');
    const before = await calls();
    for (let count = 1; count <= 40; count += 1) {
      const leaving = new AbortController();
      const query = `{ instrument(id: "${randomUUID()}") { id } }`.padEnd(250_000);
      let answer: GraphQLAnswer | undefined;
      const asked = sendQuery(gateway.graphql, query, {}, { authorization }, leaving.signal).then(
        (came) => {
          answer = came;
        },
        () => undefined,
      );
      // Its body is whole once the gateway asks the service.
      await until(async () => answer !== undefined || (await calls()) === before + count);
      expect(answer).toBeUndefined();
      leaving.abort();
      await asked;
    }
    await control(sandbox, 'DELETE', '/sandbox/faults');
  });

  it('of a known caller leave one line in the log, with its client', async () => {
    const authorization = `Bearer ${gateway.sandbox.accessToken}`;
    expect(await isServed('192.0.2.1', authorization)).toBe(true);
    const senders = await Promise.all(
      Array.from({ length: 3 }, () => send('/graphql', '192.0.2.1', 60_000, 'chunked', authorization)),
    );
    await until(() => senders.some(({ text }) => text.startsWith('HTTP/1.1 429 ')));
    const lines = gateway.log.map((line) => JSON.parse(line));
    expect(lines.filter(({ level, of }) => level === 'warn' && of === 'client')).toEqual([
      {
        level: 'warn',
        message: 'requests are refused, as a limit is reached',
        limit: 'bodies_of_sender',
        of: 'client',
        clientId: gateway.sandbox.clientId,
        refused: 1,
      },
    ]);
    for (const { socket } of senders) socket.destroy();
  });

  it('of deliveries that are signed are bounded for each client', async () => {
    const length = 64 * 1024;
    const count = (48 * MEGABYTE) / length;
    const senders = await Promise.all(
      Array.from({ length: count }, () => send(webhookPath(), '192.0.2.3', length)),
    );
    const refused = () => senders.filter(({ text }) => text.startsWith('HTTP/1.1 503 '));
    await until(() => refused().length > count / 5);
    for (const { socket } of senders) socket.destroy();
  });
});
