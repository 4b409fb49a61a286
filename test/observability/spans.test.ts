import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { PushStream, type Sink } from '../../src/common/push-stream.ts';
import type { EventLog, NewEvent, StoredEvent } from '../../src/events/log.ts';
import { startTracing } from '../../src/observability/tracing.ts';

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
const HOUR_MS = 3_600_000;
/** The code of a status that says so (OpenTelemetry). */
const FAILED = 2;
const ms = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1_000_000n);

it('spans end when the work does, name no address, and stand beneath what caused them', async () => {
  let sent = '';
  const collector = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (chunk: string) => {
      sent += chunk;
    });
    request.on('end', () => response.end('{}'));
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const tracing = startTracing(`http://127.0.0.1:${(collector.address() as AddressInfo).port}`);

  const call = { method: 'GET', route: '/v1/banks', path: '/v1/banks', status: 200, startedAt: 0 };
  // Its answer waited an hour for the turn to be read: that is none of the service's time.
  const waits = { milliseconds: 5, queuedMs: 0, unreadMs: HOUR_MS, cached: false, identifies: false };
  const response = { statusCode: 404 } as ServerResponse;
  await tracing.webhook('/webhooks/a-client/OTHER/a-signature', response, async () =>
    tracing.call({ ...call, ...waits }),
  );

  const source = new Handed();
  const away = async () => Promise.reject(new Error('The log is away.'));
  const log = tracing.log({ follow: async () => source, append: away } as unknown as EventLog);
  await expect(log.append('a client', { type: 'CEP' } as NewEvent)).rejects.toThrow('The log is away.');
  (await log.follow('a client')).connect({
    take: () => Promise.reject(new Error('Nobody reads it.')),
    finish: () => undefined,
  });
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
  const event = { type: 'CEP', traceparent } as StoredEvent;
  await expect(source.sink?.take(event)).rejects.toThrow('Nobody reads it.');

  const before = Date.now();
  await tracing.stop();
  collector.close();
  const spans: Span[] = JSON.parse(sent).resourceSpans.flatMap(
    ({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) => scopeSpans.flatMap((scope) => scope.spans),
  );
  const named = new Map(spans.map((span) => [span.name, span]));
  expect([...named.keys()].sort()).toEqual(['GET /v1/banks', 'append', 'deliver CEP', 'webhook unknown']);
  expect(sent).not.toMatch(/a-client|a-signature/);
  expect(named.get('append')?.status).toEqual({ code: FAILED });
  const made = named.get('GET /v1/banks');
  expect(made?.parentSpanId).toBe(named.get('webhook unknown')?.spanId);
  expect(named.get('deliver CEP')?.parentSpanId).toBe('2'.repeat(16));
  const [start, end] = [ms(made?.startTimeUnixNano ?? '0'), ms(made?.endTimeUnixNano ?? '0')];
  expect(end).toBeLessThanOrEqual(before - HOUR_MS);
  expect(end - start).toBe(5);
});

it('a stream tells its reader that it has caught up, with each event in a span or not', async () => {
  const tracing = startTracing(NOBODY);
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
