import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import packageOfGateway from '../../package.json' with { type: 'json' };
import { EVENT_TYPES } from '../events/log.ts';
import { type EventMetrics, UNATTRIBUTED_REASONS } from '../events/metrics.ts';
import type { QuarantineReason } from '../events/quarantine.ts';
import type { CallRecord } from '../upstream/call/rest.ts';
import { createPaymentMetrics, type PaymentMetrics } from './payment-metrics.ts';
import { createServingMetrics, type ServingMetrics } from './serving-metrics.ts';

const VERSION = packageOfGateway.version;

const QUARANTINE_REASONS: readonly QuarantineReason[] = [
  ...(['unreadable', 'incomplete', 'foreign-client', 'misnamed'] as const),
  ...(['conflict', 'undecided'] as const),
];

/** What transports count of the results that they send. */
export interface DeliveryMetrics {
  /** An event was sent to so many subscribers. */
  delivered(type: string, readers: number): void;
  /** How long after its webhook had arrived an event was sent. Not told of what had arrived before its subscribers. */
  lag(milliseconds: number): void;
}

/** What sockets that share a stream are counted by. */
export interface FanOutMetrics extends DeliveryMetrics {
  /** How the number of streams differs from that of the log's followers. */
  sharing(change: number): void;
  slowConsumerDisconnect(): void;
}

/** What the gateway counts, as Prometheus reads it at `/metrics`. No label ever holds an id or a name. */
export interface Metrics {
  readonly registry: Registry;
  readonly events: EventMetrics;
  readonly fanOut: FanOutMetrics;
  readonly money: PaymentMetrics;
  readonly serving: ServingMetrics;
  upstreamCall(call: CallRecord): void;
  /** An operation has its result, or a subscription is open, after so many milliseconds. */
  operation(type: string, outcome: 'ok' | 'error', milliseconds: number): void;
  /** How many operations wait for their turn. */
  operationsWaiting(count: number): void;
  operationRefused(): void;
  /** The files of trusted documents have changed. */
  trustedDocumentsReload(isTaken: boolean): void;
  /** How many REST calls wait for their turn. */
  callsWaiting(count: number): void;
}

/**
 * Makes a registry with the process' own metrics and all of `pasarela_*`.
 *
 * @param undocumentedValues how often each open enum has met a value that it does not know, by the enum's name.
 */
export function createMetrics(undocumentedValues: () => ReadonlyMap<string, number>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const serving = createServingMetrics(registry, VERSION);
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });

  const durations = new Histogram({
    name: 'pasarela_operation_duration_seconds',
    help: 'From the start of an operation until its result, or until a subscription is open, by type and outcome.',
    labelNames: ['type', 'outcome'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  new Counter({
    name: 'pasarela_operations_total',
    help: 'GraphQL operations, by type and outcome.',
    labelNames: ['type', 'outcome'],
    registers,
    // Each operation is observed once, as its duration.
    async collect() {
      const { values } = await durations.get();
      this.reset();
      for (const { metricName, labels, value } of values) {
        if (metricName?.endsWith('_count'))
          this.inc({ type: labels.type ?? '', outcome: labels.outcome ?? '' }, value);
      }
    },
  });
  const calls = new Histogram({
    name: 'pasarela_upstream_request_duration_seconds',
    help: 'REST calls, by method, route and status (0 when no answer came).',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  new Counter({
    name: 'pasarela_undocumented_values_total',
    help: 'Values of the service that its specification does not name, by the enum that shows them as OTHER.',
    labelNames: ['enum'],
    registers,
    collect() {
      this.reset();
      for (const [name, count] of undocumentedValues()) this.inc({ enum: name }, count);
    },
  });
  const operationsWaiting = new Gauge({
    name: 'pasarela_operations_waiting',
    help: 'Operations that wait for their turn, as their callers have others under way.',
    registers,
  });
  const operationsRefused = counter(
    'pasarela_operations_refused_total',
    'Operations refused as RATE_LIMITED, beyond the queue of their caller.',
  );
  const callsWaiting = new Gauge({
    name: 'pasarela_upstream_calls_waiting',
    help: 'REST calls that wait for their turn, as their callers have others under way.',
    registers,
  });
  const documentReloads = counter(
    'pasarela_trusted_documents_reloads_total',
    'Times that the files of TRUSTED_DOCUMENTS had changed, by whether they could be taken over.',
    ['outcome'],
  );
  const appended = counter('pasarela_events_appended_total', 'Events written to the log.', ['type']);
  const duplicates = counter('pasarela_events_duplicates_total', 'Webhooks recognised as delivered before.', [
    'type',
    'conflict',
  ]);
  const spooled = counter('pasarela_events_spooled_total', 'Events kept on disk while the log was away.', [
    'type',
  ]);
  const drained = counter('pasarela_events_drained_total', 'Events moved from disk to the log.', ['type']);
  const waiting = new Gauge({
    name: 'pasarela_spooled_events',
    help: 'Events on this disk that are not in the log yet.',
    registers,
  });
  const unreadableSpools = new Gauge({
    name: 'pasarela_events_unreadable_spools',
    help: 'Files in DATA_DIR that are named like spools and cannot be read.',
    registers,
  });
  const quarantined = counter('pasarela_events_quarantined_total', 'Webhooks put aside.', ['reason']);
  const delivered = counter('pasarela_events_delivered_total', 'Events handed to subscribers.', ['type']);
  const lag = new Histogram({
    name: 'pasarela_events_delivery_latency_seconds',
    help: 'From the arrival of a webhook until a subscriber that was there is handed its event.',
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  });
  const gaps = counter('pasarela_events_gaps_total', 'Readers told that events are missing.');
  const unattributed = counter(
    'pasarela_events_unattributed_total',
    'Events that no caller narrowed to a customer is shown, as it could not be told whose they are.',
    ['reason'],
  );
  const channelDecodeError = counter(
    'pasarela_events_channel_decode_errors_total',
    'Unreadable messages on the event channel.',
  );
  const slow = counter(
    'pasarela_events_slow_consumer_disconnects_total',
    'Subscribers ended because they read too slowly.',
  );
  const subscribers = new Gauge({
    name: 'pasarela_events_subscribers',
    help: 'Open subscriptions.',
    registers,
  });

  // A series that begins at 1 has no increase: an alert would miss what happens for the first time.
  for (const type of EVENT_TYPES) {
    for (const count of [appended, spooled, drained, delivered]) count.inc({ type }, 0);
    for (const conflict of ['true', 'false']) duplicates.inc({ type, conflict }, 0);
  }
  for (const reason of UNATTRIBUTED_REASONS) unattributed.inc({ reason }, 0);
  for (const reason of QUARANTINE_REASONS) quarantined.inc({ reason }, 0);
  for (const type of ['query', 'mutation', 'subscription']) {
    for (const outcome of ['ok', 'error']) durations.zero({ type, outcome });
  }

  for (const outcome of ['ok', 'error']) documentReloads.inc({ outcome }, 0);

  // Streams that are shared have one follower of the log for all who read them.
  let followers = 0;
  let sharing = 0;

  return {
    registry,
    money: createPaymentMetrics(registers),
    fanOut: {
      sharing(change) {
        sharing += change;
        subscribers.set(followers + sharing);
      },
      slowConsumerDisconnect: () => slow.inc(),
      delivered: (type, readers) => delivered.inc({ type }, readers),
      lag: (milliseconds) => lag.observe(milliseconds / 1000),
    },
    serving,
    upstreamCall({ method, route, status, milliseconds }) {
      calls.observe({ method, route, status: String(status ?? 0) }, milliseconds / 1000);
    },
    operation: (type, outcome, milliseconds) => durations.observe({ type, outcome }, milliseconds / 1000),
    operationsWaiting: (count) => operationsWaiting.set(count),
    operationRefused: () => operationsRefused.inc(),
    trustedDocumentsReload: (isTaken) => documentReloads.inc({ outcome: isTaken ? 'ok' : 'error' }),
    callsWaiting: (count) => callsWaiting.set(count),
    events: {
      appended: (type) => appended.inc({ type }),
      duplicate: (type, conflict) => duplicates.inc({ type, conflict: String(conflict) }),
      spooled: (type) => spooled.inc({ type }),
      drained: (type) => drained.inc({ type }),
      waiting: (count) => waiting.set(count),
      unreadableSpools: (count) => unreadableSpools.set(count),
      quarantined: (reason) => quarantined.inc({ reason }),
      gap: () => gaps.inc(),
      unattributed: (reason) => unattributed.inc({ reason }),
      channelDecodeError: () => channelDecodeError.inc(),
      subscribers(count) {
        followers = count;
        subscribers.set(followers + sharing);
      },
      slowConsumerDisconnect: () => slow.inc(),
    },
  };
}
