import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import {
  type Counter,
  context,
  createNoopMeter,
  type MeterProvider,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { type PushStream, type Sink, WrappedStream } from '../common/push-stream.ts';
import { createRareLines } from '../common/rare-lines.ts';
import { EVENT_TYPES, type EventLog, type NewEvent, type StoredEvent, type Watcher } from '../events/log.ts';
import { WrappedLog } from '../events/wrapped-log.ts';
import type { CallRecord } from '../upstream/call/rest.ts';
import { type FindOperation, useTracing } from './use-tracing.ts';

/** How long the last spans may take on their way, in milliseconds. */
const STOP_TIMEOUT_MS = 2_000;

/** What the server calls so that its work appears in traces. No span holds an id of a client, an address or a name. */
export interface Tracing {
  /** A span per operation, and per delivered event. */
  plugin(findOperation: FindOperation): ReturnType<typeof useTracing>;
  /** Handles a request within the trace that it belongs to already, where it says so (W3C Trace Context). */
  within<T>(headers: IncomingHttpHeaders, work: () => T): T;
  /** Handles a delivery of the provider's in a span of its own. */
  webhook(path: string, response: ServerResponse, work: () => Promise<void>): Promise<void>;
  /** A REST call that has been answered, beneath the operation or the delivery that it was made for. */
  call(record: CallRecord): void;
  /** The same log, in which each event remembers the trace of its webhook, and each delivery continues it. */
  log(log: EventLog): EventLog;
  /** Sends what is left, and ends. */
  stop(): Promise<void>;
}

/**
 * Starts the OpenTelemetry SDK, once in the life of a process. `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and
 * `OTEL_EXPORTER_OTLP_HEADERS` are read by the SDK itself.
 *
 * @param endpoint base address of an OTLP collector over HTTP, such as `http://127.0.0.1:4318`. One that is away costs
 * nothing but the spans.
 * @param logger is told, once a minute at most, that spans are lost: the SDK says it to nobody.
 */
export function startTracing(endpoint: string, logger: Logger): Tracing {
  const isDue = createRareLines();
  setGlobalErrorHandler((err) => {
    if (isDue('failed')) logger.warn({ err }, 'spans could not be sent');
  });
  const selfObsMeterProvider = hearDropped(() => {
    if (isDue('dropped')) logger.warn({}, 'spans are dropped, as too many wait for the collector');
  });
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'pasarela' }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }),
        selfObsMeterProvider,
      }),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const tracer = provider.getTracer('pasarela');
  return {
    plugin: (findOperation) => useTracing(tracer, findOperation),
    within: (headers, work) => context.with(propagation.extract(ROOT_CONTEXT, headers), work),
    webhook: (path, response, work) => traceWebhook(tracer, path, response, work),
    call: (record) => traceCall(tracer, record),
    log: (log) => new TracedLog(log, tracer),
    async stop() {
      context.disable();
      // A collector that is away, or hangs, must not hold up the end.
      await Promise.race([provider.shutdown().catch(() => {}), clock.sleep(STOP_TIMEOUT_MS, { ref: false })]);
    },
  };
}

/**
 * Calls back for each span that the SDK drops because its queue is full. It tells a metric of its own. Its other way is the logger of
 * the whole process (`diag`), which may be that of an agent.
 */
function hearDropped(dropped: () => void): MeterProvider {
  const counter: Counter = {
    add(_count, attributes) {
      if (attributes?.['error.type'] === 'queue_full') dropped();
    },
  };
  const meter = Object.create(createNoopMeter(), { createCounter: { value: () => counter } });
  return { getMeter: () => meter };
}

async function traceWebhook(
  tracer: Tracer,
  path: string,
  response: ServerResponse,
  work: () => Promise<void>,
): Promise<void> {
  // Of the path the type alone: the rest of it is a secret.
  const type = EVENT_TYPES.find((known) => path.split('/')[3] === known) ?? 'unknown';
  const span = tracer.startSpan(
    `webhook ${type}`,
    { kind: SpanKind.SERVER, attributes: { 'pasarela.event.type': type, 'http.request.method': 'POST' } },
    ROOT_CONTEXT,
  );
  try {
    await context.with(trace.setSpan(ROOT_CONTEXT, span), work);
    span.setAttribute('http.response.status_code', response.statusCode);
    if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  } catch (error) {
    // What is answered then, the router decides (transport/router.ts).
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

function traceCall(
  tracer: Tracer,
  { method, route, status, dropped, milliseconds, queuedMs, unreadMs }: CallRecord,
): void {
  const parent = context.active();
  // A probe of somebody's token before any operation belongs to no trace.
  if (trace.getSpan(parent) === undefined) return;
  const endTime = clock.now() - unreadMs;
  const span = tracer.startSpan(
    `${method} ${route}`,
    {
      kind: SpanKind.CLIENT,
      startTime: endTime - milliseconds,
      attributes: {
        'http.request.method': method,
        'url.template': route,
        ...(status === null ? {} : { 'http.response.status_code': status }),
        ...(dropped === undefined ? {} : { 'pasarela.dropped': dropped }),
        ...(queuedMs === 0 ? {} : { 'pasarela.queued_ms': queuedMs }),
        ...(unreadMs === 0 ? {} : { 'pasarela.unread_ms': unreadMs }),
      },
    },
    parent,
  );
  // A call that was not sent, or that all who waited for it have left, is no failure of the service.
  if (dropped === undefined && (status === null || status >= 500))
    span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endTime);
}

/** An event log whose appends and deliveries are spans of one trace: that of the webhook. */
class TracedLog extends WrappedLog {
  readonly #tracer: Tracer;

  constructor(log: EventLog, tracer: Tracer) {
    super(log);
    this.#tracer = tracer;
  }

  override async append(clientId: string, event: NewEvent) {
    const carrier: { traceparent?: string } = {};
    propagation.inject(context.active(), carrier);
    const span = this.#tracer.startSpan('append', { attributes: { 'pasarela.event.type': event.type } });
    try {
      const appended = await this.log.append(clientId, { ...event, ...carrier });
      const isSpooled = appended.cursor === null;
      span.setAttributes({
        'pasarela.event.duplicate': appended.duplicate,
        'pasarela.event.spooled': isSpooled,
      });
      return appended;
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }

  override async follow(...args: Parameters<EventLog['follow']>) {
    return new TracedStream(await this.log.follow(...args), this.#tracer);
  }

  override watch(clientId: string, topics: readonly string[], watcher: Watcher) {
    return this.log.watch(clientId, topics, {
      event: (event) => void deliver(this.#tracer, event, () => watcher.event(event)),
      end: (error) => watcher.end(error),
    });
  }
}

/** What is done with each event is beneath a span of its delivery. */
class TracedStream extends WrappedStream<StoredEvent> {
  readonly #tracer: Tracer;

  constructor(source: PushStream<StoredEvent>, tracer: Tracer) {
    super(source);
    this.#tracer = tracer;
  }

  override connect(sink: Sink<StoredEvent>): void {
    this.source.connect({
      take: (event) => deliver(this.#tracer, event, () => sink.take(event)),
      finish: (error) => sink.finish(error),
      rests: () => sink.rests?.(),
    });
  }
}

/** Does something with an event within a span of its delivery, in the trace of its webhook. */
function deliver(
  tracer: Tracer,
  { type, traceparent }: StoredEvent,
  work: () => void | Promise<void>,
): void | Promise<void> {
  if (traceparent === undefined) return work();
  const parent = propagation.extract(ROOT_CONTEXT, { traceparent });
  const options = { kind: SpanKind.PRODUCER, attributes: { 'pasarela.event.type': type } };
  const span = tracer.startSpan(`deliver ${type}`, options, parent);
  const done = context.with(trace.setSpan(parent, span), work);
  if (done instanceof Promise) return done.finally(() => span.end());
  span.end();
  return undefined;
}
