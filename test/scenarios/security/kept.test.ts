import { type ClientRequest, request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';

setFlagsFromString('--expose-gc');
// Node gives it no type.
const collect = runInNewContext('gc') as () => void;

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false });
});
afterAll(() => gateway.stop());

const DOCUMENT = 'subscription ($types: [EventType!]) { events(types: $types) { id } }';
const MEGABYTE = 1024 * 1024;

/** What this process keeps, the gateway in it, in bytes. */
function kept(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

interface Streaming {
  /** Refusals, as texts. */
  readonly errors: string[];
  /** Ends one of its streams. */
  complete(id: string): void;
  /** Begins one more. */
  subscribe(id: string, variables: object): void;
  leave(): Promise<void>;
}

/** A socket that begins streams; resolves once the gateway has taken all of them. */
async function overSocket(streams: number, variables: (index: number) => object): Promise<Streaming> {
  const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const errors: string[] = [];
  let answers = 0;
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type === 'pong') answers += 1;
    if (message.type === 'error') errors.push(JSON.stringify(message.payload));
  });
  const send = (message: object) => socket.send(JSON.stringify(message));
  const subscribe = (id: string, values: object) =>
    send({ id, type: 'subscribe', payload: { query: DOCUMENT, variables: values, extensions: values } });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', (code) => reject(new Error(`closed with ${code}`)));
    socket.once('open', () =>
      send({
        type: 'connection_init',
        payload: { authorization: `Bearer ${gateway.sandbox.accessToken}` },
      }),
    );
    socket.once('message', () => resolve());
  });
  for (let index = 0; index < streams; index += 1) subscribe(String(index), variables(index));
  send({ type: 'ping' });
  await until(() => answers === 1);
  return {
    errors,
    subscribe,
    complete: (id) => send({ id, type: 'complete' }),
    leave: () =>
      new Promise((resolve) => {
        socket.once('close', () => resolve());
        socket.close();
      }),
  };
}

interface SseStream {
  /** What came first. */
  readonly text: string;
  leave(): void;
}

/** A request for a stream over SSE, without its body, which nothing here may keep. */
function sseRequest(): { readonly sent: ClientRequest; readonly begun: Promise<SseStream> } {
  const begun = Promise.withResolvers<SseStream>();
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    authorization: `Bearer ${gateway.sandbox.accessToken}`,
  };
  const sent = request(gateway.graphql, { method: 'POST', agent: false, headers }, (response) => {
    response.once('data', (data) => begun.resolve({ text: String(data), leave: () => sent.destroy() }));
    response.on('error', () => undefined);
  });
  sent.on('error', begun.reject);
  return { sent, begun: begun.promise };
}

/** Resolves once the stream has begun, or been refused. */
function overSse(variables: object): Promise<SseStream> {
  const { sent, begun } = sseRequest();
  sent.end(JSON.stringify({ query: DOCUMENT, variables, extensions: variables }));
  return begun;
}

const undeclared = (length: number) => (index: number) => ({ note: `${index}`.padEnd(length, 'n') });
/** Many values, of which each is another. */
const declared = (index: number) => ({
  types: Array.from({ length: 5_000 + index }, () => 'CEP'),
});

describe('what an operation does not declare', () => {
  it('is not kept by streams of sockets', async () => {
    await (await overSocket(1, undeclared(10))).leave();
    const before = kept();
    const sockets = await Promise.all(Array.from({ length: 20 }, () => overSocket(20, undeclared(28_000))));
    expect(sockets.flatMap(({ errors }) => errors)).toEqual([]);
    // They were sent 22 MB.
    await until(() => kept() - before < 6 * MEGABYTE);
    await Promise.all(sockets.map((socket) => socket.leave()));
  });

  it('is not kept by streams over SSE', async () => {
    (await overSse(undeclared(10)(0))).leave();
    const before = kept();
    const streams = await Promise.all(
      Array.from({ length: 30 }, (_, index) => overSse(undeclared(120_000)(index))),
    );
    // They were sent 7 MB.
    await until(() => kept() - before < 3 * MEGABYTE);
    for (const stream of streams) stream.leave();
  });
});

const REFUSED = 'keep too many bytes of variables and documents';

describe('what streams of one caller keep', () => {
  it('is bounded over sockets, and let go of as they end', async () => {
    const sockets = await Promise.all(Array.from({ length: 6 }, () => overSocket(20, declared)));
    const errors = sockets.flatMap((socket) => socket.errors);
    expect(errors.length).toBeGreaterThan(20);
    expect(errors.length).toBeLessThan(80);
    for (const error of errors) {
      expect(error).toContain(REFUSED);
      expect(error).toContain('TOO_COMPLEX');
    }
    // Over SSE they are the same caller's.
    const over = await overSse(declared(0));
    expect(over.text).toContain(REFUSED);
    over.leave();
    const [one, ...others] = sockets;
    if (one === undefined) throw new Error('there are six');
    for (const other of others) await other.leave();
    const found = one.errors.length;
    await until(async () => {
      const again = await overSse(declared(0));
      again.leave();
      return !again.text.includes(REFUSED);
    });
    for (let round = 0; round < 100; round += 1) {
      one.complete('0');
      one.subscribe('0', declared(0));
    }
    const last = await overSse(declared(1));
    expect(last.text).not.toContain(REFUSED);
    expect(one.errors.length).toBe(found);
    last.leave();
    await one.leave();
  });

  it('is bounded over SSE', async () => {
    const streams = await Promise.all(Array.from({ length: 110 }, (_, index) => overSse(declared(index))));
    const refused = streams.filter(({ text }) => text.includes(REFUSED));
    expect(refused.length).toBeGreaterThan(10);
    expect(refused.length).toBeLessThan(80);
    for (const stream of streams) stream.leave();
  });
});
