import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import packageOfGateway from '../../package.json' with { type: 'json' };
import type { Logger } from '../common/logger.ts';
import { refusals } from '../common/refusals.ts';
import type { EventMetrics } from '../events/metrics.ts';
import { ACCOUNTS } from '../upstream/accounts.ts';
import type { CallRecord } from '../upstream/call/rest.ts';
import { CUSTOMERS } from '../upstream/customers.ts';
import type { WalkObserver } from '../upstream/lists/walk-report.ts';
import { countersOf } from './counters.ts';
import { createEventMetrics, type FanOutMetrics } from './event-metrics.ts';
import { createOperationMetrics, type OperationMetrics } from './operation-metrics.ts';
import { createPaymentMetrics, type PaymentMetrics } from './payment-metrics.ts';
import { createServingMetrics, type ServingMetrics } from './serving-metrics.ts';

const VERSION = packageOfGateway.version;

/** What the gateway counts, as Prometheus reads it at `/metrics`. No label ever holds an id or a name. */
export interface Metrics extends OperationMetrics {
  readonly registry: Registry;
  readonly events: EventMetrics;
  readonly fanOut: FanOutMetrics;
  readonly money: PaymentMetrics;
  readonly serving: ServingMetrics;
  upstreamCall(call: CallRecord): void;
  /** How many REST calls wait for a seat. */
  callsWaiting(count: number): void;
  /** Takes a function that tells how many readings of followed transactions wait, each time somebody reads the metrics. */
  watchPolls(waiting: () => number): void;
  readonly listWalked: WalkObserver;
}

let processMetrics: Registry | undefined;

/** What is measured of the process: once, however many gateways it holds, as the library never stops measuring. */
function ofTheProcess(): Registry {
  if (processMetrics === undefined) {
    processMetrics = new Registry();
    collectDefaultMetrics({ register: processMetrics });
  }
  return processMetrics;
}

/**
 * Makes a registry with the process' own metrics and all of `pasarela_*`.
 *
 * @param undocumentedValues how often each open enum has met a value that it does not know, by the enum's name.
 * @param logger is told why readers are told of gaps.
 * @param layersOff the layers that are switched off.
 */
export function createMetrics(
  undocumentedValues: () => ReadonlyMap<string, number>,
  logger: Logger,
  layersOff: Iterable<string> = [],
): Metrics {
  const registry = Registry.merge([ofTheProcess()]);
  const registers = [registry];
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
  new Counter({
    name: 'pasarela_refused_total',
    help: 'Requests, fields, bodies, streams, sockets and guesses refused because of a limit (docs/layers.md, "Every refusal").',
    labelNames: ['limit'],
    registers,
    collect() {
      this.reset();
      for (const [limit, count] of refusals()) this.inc({ limit }, count);
    },
  });
  return {
    registry,
    ...createOperationMetrics(registry),
    ...createEventMetrics(registry, logger),
    ...upstreamMetrics(registry),
    watchPolls: waitingPolls(registry),
    listWalked: walks(registry),
    money: createPaymentMetrics(registers),
    serving: createServingMetrics(registry, { version: VERSION, layersOff: [...layersOff].sort().join(',') }),
  };
}

/** What a call ends with as a rule. Others are counted from their first one on, which an alert then misses. */
const CALL_STATUSES = [
  ...['unsent', 'given_up', '0', '200', '201', '204', '400', '401', '403', '404', '409', '422', '429'],
  ...['500', '502', '503', '504'],
];

function upstreamMetrics(registry: Registry): Pick<Metrics, 'upstreamCall' | 'callsWaiting'> {
  const registers = [registry];
  const calls = new Histogram({
    name: 'pasarela_upstream_request_duration_seconds',
    help: 'REST calls from when they leave until their answer is read, by method, route and status (0 when no answer came; unsent, or given_up by all who waited, where the service is not the reason).',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const statuses = countersOf(registry)(
    'pasarela_upstream_calls_total',
    'REST calls of pasarela_upstream_request_duration_seconds by their status alone, each of which begins at 0.',
    ['status'],
  );
  for (const status of CALL_STATUSES) statuses.inc({ status }, 0);
  const waits = new Histogram({
    name: 'pasarela_upstream_wait_seconds',
    help: 'How long REST calls that had to wait did so: for a seat before they left (queue), or with their answer there for the turn to read it (turn).',
    labelNames: ['wait'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  for (const wait of ['queue', 'turn']) waits.zero({ wait });
  const callsWaiting = new Gauge({
    name: 'pasarela_upstream_calls_waiting',
    help: 'REST calls that wait for a seat, as their caller, its client, customer or address, or all callers together have as many under way as they may.',
    registers,
  });
  return {
    upstreamCall({ method, route, status, dropped, milliseconds, queuedMs, unreadMs }) {
      const ended = dropped ?? String(status ?? 0);
      calls.observe({ method, route, status: ended }, milliseconds / 1000);
      statuses.inc({ status: ended });
      if (queuedMs > 0) waits.observe({ wait: 'queue' }, queuedMs / 1000);
      if (unreadMs > 0) waits.observe({ wait: 'turn' }, unreadMs / 1000);
    },
    callsWaiting: (count) => callsWaiting.set(count),
  };
}

function waitingPolls(registry: Registry): Metrics['watchPolls'] {
  let ask = () => 0;
  new Gauge({
    name: 'pasarela_polls_waiting',
    help: 'Readings of followed transactions and receipts whose time has come, and that wait for UPSTREAM_POLLS_PER_SECOND or for earlier readings of their group.',
    registers: [registry],
    collect() {
      this.set(ask());
    },
  });
  return (waiting) => {
    ask = waiting;
  };
}

/** The lists that the gateway walks. */
const WALKED = [ACCOUNTS, CUSTOMERS];

function walks(registry: Registry): WalkObserver {
  const durations = new Histogram({
    name: 'pasarela_list_walk_duration_seconds',
    help: 'Walks through a long list of the service that learn where its items stand, by route and by whether the list could be read to its end.',
    labelNames: ['route', 'outcome'],
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers: [registry],
  });
  for (const route of WALKED) for (const outcome of ['ok', 'error']) durations.zero({ route, outcome });
  return (route, outcome, milliseconds) => durations.observe({ route, outcome }, milliseconds / 1000);
}
