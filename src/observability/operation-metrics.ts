import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { FULL, type Full } from '../common/refusals.ts';
import type { Way } from '../operation/way.ts';
import { countersOf } from './counters.ts';

export interface OperationMetrics {
  /** An operation has its result, or a subscription is open, after so many milliseconds. */
  operation(type: string, outcome: 'ok' | 'error' | 'left', milliseconds: number): void;
  /** The way that a query or a mutation took to its result. */
  way(way: Way): void;
  /** How many operations wait for a seat. */
  operationsWaiting(count: number): void;
  /** An operation that had to wait for a seat waits no longer, after so many milliseconds. */
  operationWaited(milliseconds: number): void;
  /** An operation was refused, as its caller's queue or these seats were full. */
  operationRefused(full: Full): void;
  /** The files of trusted documents have changed. */
  trustedDocumentsReload(isTaken: boolean): void;
}

/** What is counted of operations. */
export function createOperationMetrics(registry: Registry): OperationMetrics {
  const counter = countersOf(registry);
  const registers = [registry];
  const operationsWaiting = new Gauge({
    name: 'pasarela_operations_waiting',
    help: 'Operations that wait for a seat, as their caller, its client, customer or address, or all callers together have as many under way as they may.',
    registers,
  });
  const waits = new Histogram({
    name: 'pasarela_operations_wait_seconds',
    help: 'How long operations that had to wait for a seat did so: until they had it, were refused, or their callers left.',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const operationsRefused = counter(
    'pasarela_operations_refused_total',
    'Queries and mutations refused as RATE_LIMITED, by what was full: the queue of their caller, or the seats of the caller, the group or the process.',
    ['full'],
  );
  for (const full of FULL) operationsRefused.inc({ full }, 0);
  const documentReloads = counter(
    'pasarela_trusted_documents_reloads_total',
    'Times that the files of TRUSTED_DOCUMENTS had changed, by whether they could be taken over.',
    ['outcome'],
  );
  for (const outcome of ['ok', 'error']) documentReloads.inc({ outcome }, 0);
  return {
    operation: durations(registry),
    way: ways(registry),
    operationsWaiting: (count) => operationsWaiting.set(count),
    operationWaited: (milliseconds) => waits.observe(milliseconds / 1000),
    operationRefused: (full) => operationsRefused.inc({ full }),
    trustedDocumentsReload: (isTaken) => documentReloads.inc({ outcome: isTaken ? 'ok' : 'error' }),
  };
}

function durations(registry: Registry): OperationMetrics['operation'] {
  const registers = [registry];
  const durations = new Histogram({
    name: 'pasarela_operation_duration_seconds',
    help: 'From the start of an operation until its result, or until a subscription is open, by type and outcome.',
    labelNames: ['type', 'outcome'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  new Counter({
    name: 'pasarela_operations_total',
    help: 'GraphQL operations, by type and outcome (left: a query with an error whose callers had all left before).',
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
  for (const type of ['query', 'mutation', 'subscription']) {
    for (const outcome of ['ok', 'error']) durations.zero({ type, outcome });
  }
  durations.zero({ type: 'query', outcome: 'left' });
  return (type, outcome, milliseconds) => durations.observe({ type, outcome }, milliseconds / 1000);
}

/** Counted in a map of our own, as a counter of five labels costs an everyday query more than all else that is counted of it. */
function ways(registry: Registry): OperationMetrics['way'] {
  const counts = new Map<string, { readonly way: Way; count: number }>();
  new Counter({
    name: 'pasarela_operation_ways_total',
    help: 'Queries and mutations, by the way that they took through the layers (docs/layers.md).',
    labelNames: ['transport', 'document', 'executor', 'because', 'shared'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { way, count } of counts.values()) {
        const { transport = '', document, executor = '', because = '', isShared } = way;
        this.inc({ transport, document, executor, because, shared: String(isShared) }, count);
      }
    },
  });
  return (way) => {
    const key = `${way.transport} ${way.document} ${way.executor} ${way.because} ${way.isShared}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { way, count: 1 });
    else known.count += 1;
  };
}
