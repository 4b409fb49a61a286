import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import type { z } from 'zod';
import {
  alternativeChoices,
  type Choices,
  defaultChoices,
  startSandbox,
} from '../../packages/sandbox/src/index.ts';
import { errorBody, explored, ledger } from './spec.ts';

/** Both readings of what the spec leaves open; a suite that holds for either holds for the spec. */
export const READINGS: readonly (readonly [name: string, choices: Choices])[] = [
  ['default', defaultChoices],
  ['alternative', alternativeChoices],
];

export interface Reply {
  status: number;
  contentType: string;
  text: string;
  /** The body, read by a schema; throws what does not fit. */
  as<T>(schema: z.ZodType<T>): T;
}

/** A fresh sandbox whose time stands still, with what there is in it. */
export async function openSandbox(choices: Partial<Choices> = {}, speed = 0) {
  const sandbox = await startSandbox({
    port: 0,
    speed,
    seed: 7,
    choices,
    webhookHosts: ['example.mx', 'receiver.example.mx', 'other.example.mx'],
  });
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = { authorization: `Bearer ${sandbox.accessToken}` },
  ): Promise<Reply> => {
    const response = await fetch(sandbox.url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      contentType: response.headers.get('content-type') ?? '',
      text,
      as: (schema) => schema.parse(JSON.parse(text)),
    };
  };
  const seeded = (await call('GET', '/sandbox')).as(explored);
  const of = (path: string) => `/v1/clients/${sandbox.clientId}${path}`;
  return {
    sandbox,
    seeded,
    choices: { ...defaultChoices, ...choices },
    call,
    get: (path: string) => call('GET', path),
    post: (path: string, body: unknown) => call('POST', path, body),
    /** Path of something of the demo client. */
    of,
    ledger: async () => (await call('GET', '/sandbox/ledger')).as(ledger),
    step: (advanceSeconds: number) => call('POST', '/sandbox/clock', { advanceSeconds }),
    register: (type: string, url: string, token = 'a token') =>
      call('POST', of('/webhooks'), { client_id: sandbox.clientId, url, token, webhook_type: type }),
    [Symbol.asyncDispose]: sandbox.stop,
  };
}

export type Opened = Awaited<ReturnType<typeof openSandbox>>;

interface Received {
  headers: NodeJS.Dict<string | string[]>;
  text: string;
  json: unknown;
}

/** A receiver of webhooks; `replies` are given in turn, the last one for ever. */
export async function openReceiver(...replies: { status: number; body?: unknown }[]) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const reply = replies[Math.min(received.length, replies.length - 1)] ?? { status: 201 };
      received.push({ headers: request.headers, text, json: JSON.parse(text) });
      response.writeHead(reply.status, { 'content-type': 'application/json' });
      response.end(reply.body === undefined ? '' : JSON.stringify(reply.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A TCP server's address is an object; a string stands for a pipe.
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}/hook`, received, close, [Symbol.asyncDispose]: close };
}

/** Checks a refusal: 400 always has the spec's body; of the others only status and identifier are promised. */
export function expectRefusal(
  reply: Reply,
  expected: { status: number; reason?: string; detail?: string; method?: string },
): void {
  expect(reply.status, reply.text).toBe(expected.status);
  if (expected.status !== 400) {
    if (expected.reason !== undefined) expect(reply.text).toContain(expected.reason);
    return;
  }
  const body = reply.as(errorBody);
  const [{ reason, metadata }] = body.details;
  expect(body.code).toBe(9);
  expect(metadata.http_code).toBe('400');
  if (expected.reason !== undefined) expect(reason).toBe(expected.reason);
  if (expected.detail !== undefined) expect(metadata.error_detail).toBe(expected.detail);
  if (expected.method !== undefined) {
    expect(metadata).toMatchObject({ module: 'Transactions', method_name: expected.method });
  }
}

/** Item `index` of a list that must have one. */
export function at<T>(list: readonly T[], index: number): T {
  const item = list.at(index);
  if (item === undefined) throw new RangeError(`an item ${index} is needed, the list has ${list.length}`);
  return item;
}

/** The body of a money out or an internal transaction. */
export function transfer(
  { seeded }: { seeded: Pick<Opened['seeded'], 'clientId' | 'centralizingInstrumentId'> },
  destination: string,
  change: Record<string, unknown> = {},
  source = seeded.centralizingInstrumentId,
) {
  return {
    client_id: seeded.clientId,
    source_instrument_id: source,
    destination_instrument_id: destination,
    transaction_request: {
      external_reference: '1234567',
      description: 'Pago',
      amount: '10.00',
      currency: 'MXN',
      ...change,
    },
  };
}
