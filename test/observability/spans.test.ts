import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import { PushStream, type Sink } from '../../src/common/push-stream.ts';
import type { EventLog, NewEvent, StoredEvent } from '../../src/events/log.ts';
import { startTracing, type Tracing } from '../../src/observability/tracing.ts';
import { until } from '../helpers/until.ts';

interface Span {
  readonly name: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
}

/** A stream whose events the test hands on. */
class Handed extends PushStream<StoredEvent> {
  sink: Sink<StoredEvent> | undefined;

  override connect(sink: Sink<StoredEvent>): void {
    this.sink = sink;
  }

  override stop(): void {}
}

/** A collector to which nobody listens. */
const NOBODY = 'http://127.0.0.1:9';
/** So many spans are sent at once, without a pause. */
const BATCH = 512;
/** So many wait for the collector at most. */
const KEPT = 2_048;
const HOUR_MS = 3_600_000;
/** How long an event is taken, at least. */
const TAKEN_MS = 50;
/** The code of a status that says so (OpenTelemetry). */
const FAILED = 2;
const ms = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1_000_000n);

/** What a collector is sent of some work. */
async function collected(work: (tracing: Tracing) => Promise<void>) {
  let sent = '';
  const collector = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (chunk: string) => {
      sent += chunk;
    });
    request.on('end', () => response.end('{}'));
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const tracing = startTracing(`http://127.0.0.1:${(collector.address() as AddressInfo).port}`, silentLogger);
  await work(tracing);
  const endedBefore = Date.now();
  await tracing.stop();
  collector.close();
  const spans: Span[] = JSON.parse(sent).resourceSpans.flatMap(
    ({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) => scopeSpans.flatMap((scope) => scope.spans),
  );
  return { sent, endedBefore, named: new Map(spans.map((span) => [span.name, span])) };
}

const CALL = { method: 'GET', route: '/v1/banks', path: '/v1/banks', status: 200, startedAt: 0 };
const CALLED = { ...CALL, milliseconds: 5, queuedMs: 0, unreadMs: 0, cached: false, identifies: false };
const TRACEPARENT = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
const EVENT = { type: 'CEP', traceparent: TRACEPARENT } as StoredEvent;

it('spans end also where the work fails, name no address, and stand beneath what caused them', async () => {
  const { sent, endedBefore, named } = await collected(async (tracing) => {
    const response = { statusCode: 404 } as ServerResponse;
    await tracing.webhook('/webhooks/a-client/OTHER/a-signature', response, async () =>
      // Its answer waited an hour for the turn to be read: that is none of the service's time.
      tracing.call({ ...CALLED, unreadMs: HOUR_MS }),
    );
    const unexpected = async () => Promise.reject(new Error('Nobody thought of this.'));
    await expect(tracing.webhook('/webhooks/a-client/CEP/a-signature', response, unexpected)).rejects.toThrow(
      'Nobody thought of this.',
    );

    const source = new Handed();
    const away = async () => Promise.reject(new Error('The log is away.'));
    const log = tracing.log({ follow: async () => source, append: away } as unknown as EventLog);
    await expect(log.append('a client', { type: 'CEP' } as NewEvent)).rejects.toThrow('The log is away.');
    (await log.follow('a client')).connect({
      take: () => Promise.reject(new Error('Nobody reads it.')),
      finish: () => undefined,
    });
    await expect(source.sink?.take(EVENT)).rejects.toThrow('Nobody reads it.');
  });
  expect([...named.keys()].sort()).toEqual([
    ...['GET /v1/banks', 'append', 'deliver CEP', 'webhook CEP', 'webhook unknown'],
  ]);
  expect(sent).not.toMatch(/a-client|a-signature|Nobody thought/);
  for (const name of ['append', 'webhook CEP']) expect(named.get(name)?.status).toEqual({ code: FAILED });
  const made = named.get('GET /v1/banks');
  expect(made?.parentSpanId).toBe(named.get('webhook unknown')?.spanId);
  expect(named.get('deliver CEP')?.parentSpanId).toBe('2'.repeat(16));
  const [start, end] = [ms(made?.startTimeUnixNano ?? '0'), ms(made?.endTimeUnixNano ?? '0')];
  expect(end).toBeLessThanOrEqual(endedBefore - HOUR_MS);
  expect(end - start).toBe(5);
});

it('the span of a delivery lasts until the event has been taken, and has the calls that it took beneath it', async () => {
  const { named } = await collected(async (tracing) => {
    const source = new Handed();
    const log = tracing.log({ follow: async () => source } as unknown as EventLog);
    (await log.follow('a client')).connect({
      async take() {
        const began = performance.now();
        await until(() => performance.now() > began + TAKEN_MS);
        tracing.call(CALLED);
      },
      finish: () => undefined,
    });
    await source.sink?.take(EVENT);
  });
  const [made, delivery] = [named.get('GET /v1/banks'), named.get('deliver CEP')];
  expect(made?.parentSpanId).toBe(delivery?.spanId);
  const lasted = ms(delivery?.endTimeUnixNano ?? '0') - ms(delivery?.startTimeUnixNano ?? '0');
  // Both ends are cut to milliseconds.
  expect(lasted).toBeGreaterThanOrEqual(TAKEN_MS - 1);
});

it('a stream tells its reader that it has caught up, with each event in a span or not', async () => {
  const tracing = startTracing(NOBODY, silentLogger);
  const source = new Handed();
  const log = tracing.log({ follow: async () => source } as unknown as EventLog);
  const told: string[] = [];
  (await log.follow('a client')).connect({
    take: () => void told.push('event'),
    rests: () => void told.push('rests'),
    finish: () => void told.push('end'),
  });
  source.sink?.take({ type: 'CEP' } as StoredEvent);
  source.sink?.rests?.();
  source.sink?.finish();
  expect(told).toEqual(['event', 'rests', 'end']);
  await tracing.stop();
});

it('the log says that a collector refuses the spans, and not with each batch', async () => {
  let refused = 0;
  const collector = createServer((request, response) => {
    request.resume().on('end', () => {
      refused += 1;
      response.writeHead(401).end();
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const warn = vi.fn();
  const { port } = collector.address() as AddressInfo;
  const tracing = startTracing(`http://127.0.0.1:${port}`, { ...silentLogger, warn });
  for (const batch of [1, 2]) {
    for (let span = 0; span < BATCH; span += 1)
      await tracing.webhook('/', { statusCode: 201 } as ServerResponse, async () => undefined);
    await until(() => refused === batch && warn.mock.calls.length > 0);
  }
  await tracing.stop();
  collector.close();
  const err = expect.objectContaining({ message: 'Unauthorized' });
  expect(warn.mock.calls).toEqual([[{ err }, 'spans could not be sent']]);
});

it('the log says once that spans are dropped, as more wait than the SDK keeps, though none is refused', async () => {
  const answering = Promise.withResolvers<void>();
  let received = 0;
  const collector = createServer((request, response) => {
    request.resume().on('end', async () => {
      received += 1;
      await answering.promise;
      response.end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const warn = vi.fn();
  const { port } = collector.address() as AddressInfo;
  const tracing = startTracing(`http://127.0.0.1:${port}`, { ...silentLogger, warn });
  const end = async (spans: number): Promise<void> => {
    for (let span = 0; span < spans; span += 1)
      await tracing.webhook('/', { statusCode: 201 } as ServerResponse, async () => undefined);
  };
  await end(BATCH);
  await until(() => received === 1);
  await end(KEPT);
  expect(warn).not.toHaveBeenCalled();
  await end(2);
  expect(warn.mock.calls).toEqual([[{}, 'spans are dropped, as too many wait for the collector']]);
  answering.resolve();
  await tracing.stop();
  collector.close();
  expect(warn).toHaveBeenCalledOnce();
});
