import { Gauge, Histogram, type Registry } from 'prom-client';
import type { Logger } from '../common/logger.ts';
import { createRareLines } from '../common/rare-lines.ts';
import { GAP_REASONS, type Gap } from '../events/errors.ts';
import { EVENT_TYPES } from '../events/log.ts';
import { type EventMetrics, UNATTRIBUTED_REASONS } from '../events/metrics.ts';
import type { QuarantineReason } from '../events/quarantine.ts';
import { countersOf } from './counters.ts';

const QUARANTINE_REASONS: readonly QuarantineReason[] = [
  ...(['unreadable', 'incomplete', 'foreign-client', 'misnamed'] as const),
  ...(['conflict', 'undecided'] as const),
];

/** What an open stream may fail with for a reason that is not its client's. */
const STREAM_CODES = [
  ...['STORE_UNAVAILABLE', 'EVENTS_GAP', 'INTERNAL', 'UPSTREAM_TIMEOUT', 'UPSTREAM_UNAVAILABLE'],
  ...['UPSTREAM_RATE_LIMITED', 'UPSTREAM_INVALID'],
];

/** What ends because too many events wait. */
export interface SlowReaderMetrics {
  /** So many readers of a client's events were ended. */
  slow(clientId: string, readers: number): void;
}

/** What transports count of the results that they send. */
export interface DeliveryMetrics extends SlowReaderMetrics {
  /** An event was sent to so many subscribers. */
  delivered(type: string, readers: number): void;
  /** How long after its webhook had arrived an event was sent. Not told of what had arrived before its subscribers. */
  lag(milliseconds: number): void;
  /** So many readers were sent a result with errors, the first of which has this code. */
  failed(code: string, readers: number): void;
  /** So many readers were told `EVENTS_GAP`. */
  gap(gap: Gap, readers: number): void;
}

/** What sockets that share a stream are counted by. */
export interface FanOutMetrics extends DeliveryMetrics {
  /** How the number of streams differs from that of the log's followers. */
  sharing(change: number): void;
}

/** How many read events, in streams that have a follower of the log each or share one. */
class Subscribers {
  readonly #gauge: Gauge;
  #followers = 0;
  #sharing = 0;

  constructor(registry: Registry) {
    this.#gauge = new Gauge({
      name: 'pasarela_events_subscribers',
      help: 'Open subscriptions that have their place in the log: each is sent what comes from now on.',
      registers: [registry],
    });
  }

  follow(count: number): void {
    this.#followers = count;
    this.#show();
  }

  /** Streams that are shared have one follower of the log for all who read them. */
  share(change: number): void {
    this.#sharing += change;
    this.#show();
  }

  #show(): void {
    this.#gauge.set(this.#followers + this.#sharing);
  }
}

/** What is counted of events, as they arrive and as they are delivered. */
export function createEventMetrics(
  registry: Registry,
  logger: Logger,
): {
  readonly events: EventMetrics;
  readonly fanOut: FanOutMetrics;
} {
  const subscribers = new Subscribers(registry);
  return {
    events: {
      ...arrivals(registry),
      ...reading(registry),
      subscribers: (count) => subscribers.follow(count),
      watchFeeds: waitingInFeeds(registry),
    },
    fanOut: {
      ...deliveries(registry),
      gap: createGaps(registry, logger),
      slow: createSlowReaders(registry, logger),
      sharing: (change) => subscribers.share(change),
    },
  };
}

/** Events between the log and the transports. */
function waitingInFeeds(registry: Registry): EventMetrics['watchFeeds'] {
  let ask = () => 0;
  new Gauge({
    name: 'pasarela_events_waiting',
    help: 'Events that wait in memory for subscribers: those that read slowly, and those for whom whose an event is, or the log, is being read.',
    registers: [registry],
    collect() {
      this.set(ask());
    },
  });
  return (waiting) => {
    ask = waiting;
  };
}

/** Events that come in, into the log or onto disk. */
function arrivals(registry: Registry) {
  const counter = countersOf(registry);
  const registers = [registry];
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
  const spoolUnwritable = new Gauge({
    name: 'pasarela_events_spool_unwritable',
    help: '1 while the spool that this process adds to takes no event; 0 without Redis, where there is none.',
    registers,
  });
  const olderSecret = counter(
    'pasarela_events_older_secret_total',
    'Deliveries that need a secret of WEBHOOK_SECRET behind the first.',
    ['type'],
  );
  const quarantined = counter('pasarela_events_quarantined_total', 'Webhooks put aside.', ['reason']);
  // A series that begins at 1 has no increase: an alert would miss what happens for the first time.
  for (const type of EVENT_TYPES) {
    for (const count of [appended, spooled, drained, olderSecret]) count.inc({ type }, 0);
    for (const conflict of ['true', 'false']) duplicates.inc({ type, conflict }, 0);
  }
  for (const reason of QUARANTINE_REASONS) quarantined.inc({ reason }, 0);
  return {
    appended: (type: string) => appended.inc({ type }),
    duplicate: (type: string, conflict: boolean) => duplicates.inc({ type, conflict: String(conflict) }),
    spooled: (type: string) => spooled.inc({ type }),
    drained: (type: string) => drained.inc({ type }),
    waiting: (count: number) => waiting.set(count),
    unreadableSpools: (count: number) => unreadableSpools.set(count),
    spoolUnwritable: (isUnwritable: boolean) => spoolUnwritable.set(isUnwritable ? 1 : 0),
    olderSecret: (type: string) => olderSecret.inc({ type }),
    quarantined: (reason: QuarantineReason) => quarantined.inc({ reason }),
  };
}

/** Events that are sent to subscribers. */
function deliveries(registry: Registry): Omit<DeliveryMetrics, 'gap' | 'slow'> {
  const counter = countersOf(registry);
  const registers = [registry];
  const delivered = counter('pasarela_events_delivered_total', 'Events handed to subscribers.', ['type']);
  const lag = new Histogram({
    name: 'pasarela_events_delivery_latency_seconds',
    help: 'From the arrival of a webhook until a subscriber that was there is handed its event.',
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 60, 120, 300, 600],
    registers,
  });
  const failed = counter(
    'pasarela_stream_errors_total',
    'Results with an error that open subscriptions were sent, by the code of the first error.',
    ['code'],
  );
  for (const type of EVENT_TYPES) delivered.inc({ type }, 0);
  for (const code of STREAM_CODES) failed.inc({ code }, 0);
  return {
    failed: (code, readers) => failed.inc({ code }, readers),
    delivered: (type, readers) => delivered.inc({ type }, readers),
    lag: (milliseconds) => lag.observe(milliseconds / 1000),
  };
}

/** Counts the readers for whom too many events waited, and logs whose they are. */
function createSlowReaders(registry: Registry, logger: Logger): SlowReaderMetrics['slow'] {
  const ended = countersOf(registry)(
    'pasarela_events_slow_consumer_disconnects_total',
    'Subscribers ended because too many events waited for them.',
  );
  const isDue = createRareLines();
  return (clientId, readers) => {
    ended.inc(readers);
    if (isDue(clientId))
      logger.info({ clientId, readers }, 'readers are ended, as too many events wait for them');
  };
}

/** Counts the readers that were told of gaps, and logs why. */
function createGaps(registry: Registry, logger: Logger): DeliveryMetrics['gap'] {
  const told = countersOf(registry)('pasarela_events_gaps_total', 'Readers told that events are missing.', [
    'reason',
  ]);
  for (const reason of GAP_REASONS) told.inc({ reason }, 0);
  const isDue = createRareLines();
  return ({ clientId, reason }, readers) => {
    told.inc({ reason }, readers);
    if (!isDue(`${clientId} ${reason}`)) return;
    logger.warn({ clientId, reason, readers }, 'readers are told that events are missing');
  };
}

/** What readers of the log meet. */
function reading(registry: Registry) {
  const counter = countersOf(registry);
  const unattributed = counter(
    'pasarela_events_unattributed_total',
    'Events that no caller narrowed to a customer is shown, as it could not be told whose they are.',
    ['reason'],
  );
  const channelDecodeError = counter(
    'pasarela_events_channel_decode_errors_total',
    'Unreadable messages on the event channel.',
  );
  for (const reason of UNATTRIBUTED_REASONS) unattributed.inc({ reason }, 0);
  return {
    unattributed: (reason: string) => unattributed.inc({ reason }),
    channelDecodeError: () => channelDecodeError.inc(),
  };
}
