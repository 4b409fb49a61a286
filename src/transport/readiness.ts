/** Sentences for the operator about held payments. */
const HELD = {
  'put-back': 'Payments are held: their record has been put back to an earlier state.',
  stopped: 'Payments are held: an operator has stopped them.',
  off: 'Payments are held: PAYMENTS is off.',
} as const;

/** Likewise about calls that the breaker does not let through. */
const SUSPENDED = {
  all: 'Calls to the REST service are suspended for everybody: it keeps failing, or cannot be reached.',
  some: 'Calls to the REST service are suspended for some callers, as it keeps failing for them.',
} as const;

/** Likewise about a gateway that is not in rotation. */
const UNREADY = {
  full: 'No event can be kept, so that webhooks get 503: neither the event log nor a spool on the disk of DATA_DIR takes one.',
  unknown: 'The first look at the stores has not ended yet.',
} as const;

/** After so many milliseconds in which they were asked in vain the stores count as silent. A look at a Redis that is away ends sooner. */
const SILENT_MS = 10_000;

/** What is known of the stores. */
interface StoresKnown {
  /** The age of this knowledge, in milliseconds. */
  readonly ageMs: number;
  /** For how long they have been asked in vain since, in milliseconds. */
  readonly silentMs: number;
  /** Whether an event could be kept, in the log or in the spool. */
  readonly writable: boolean;
  /** Whether the event log itself answers. */
  readonly eventsAvailable: boolean;
  /** Whether the record of payments can be kept. */
  readonly paymentsAvailable: boolean;
  /** Why it cannot, as a sentence for the operator, where the event log does not say it. */
  readonly paymentsProblem?: string | undefined;
  /** Why payments are held until an operator lets them go on; empty where they are not. */
  readonly paymentsHeld: readonly (keyof typeof HELD)[];
  /** Events waiting for the log to come back. */
  readonly spooled: number;
  /** Names of the spools that cannot be read. */
  readonly unreadableSpools: readonly string[];
  /** Why the spool takes no event, as a sentence for the operator; undefined where it does. */
  readonly spoolProblem?: string | undefined;
  /** Why the event log does not answer, as sentences for the operator. */
  readonly reasons?: readonly string[] | undefined;
  /** How Redis may lose what it has taken, likewise. */
  readonly risks?: readonly string[] | undefined;
}

/** What readiness depends on. */
export interface Condition {
  readonly draining: boolean;
  /** What this process has of payments in its memory alone, as their record did not take it: a restart loses it. */
  readonly unwritten: number;
  /** For whom calls to the REST service of one kind or more are suspended; undefined for nobody. */
  readonly suspended: keyof typeof SUSPENDED | undefined;
  /** Undefined while the first look at them is under way. */
  readonly stores: StoresKnown | undefined;
}

/**
 * Returns the answer of `/readyz`. The gateway is `degraded`, never unready, while the upstream or Redis is away, while Redis
 * may lose what it has taken, while a spool cannot be read or takes no event, and while payments cannot be recorded or are held: out of
 * rotation it could not even keep events that arrive meanwhile. Stores that were asked in vain for {@link SILENT_MS} count as away.
 */
export function readiness({ draining, unwritten, suspended, stores }: Condition): {
  readonly status: 200 | 503;
  readonly body: {
    readonly status: string;
    readonly degraded?: readonly string[];
    readonly unwritten?: number;
    readonly reasons?: readonly string[];
  };
} {
  if (draining) return { status: 503, body: { status: 'draining' } };
  const kept = unwritten > 0 ? { unwritten } : {};
  if (stores?.writable !== true) {
    const why = stores === undefined ? [UNREADY.unknown] : [UNREADY.full, ...reasonsOf(stores)];
    return { status: 503, body: { status: 'unready', ...kept, reasons: why } };
  }
  const { ageMs, silentMs, spooled, unreadableSpools, spoolProblem, paymentsHeld, risks = [] } = stores;
  const { paymentsProblem } = stores;
  const isHeld = paymentsHeld.length > 0;
  const isSilent = silentMs > SILENT_MS;
  const degraded = [
    ...(stores.eventsAvailable && !isSilent ? [] : ['events']),
    ...(unreadableSpools.length === 0 && spoolProblem === undefined ? [] : ['spool']),
    ...(stores.paymentsAvailable && !isHeld && !isSilent ? [] : ['payments']),
    ...(risks.length === 0 ? [] : ['redis']),
    ...(suspended === undefined ? [] : ['upstream']),
  ];
  const held = paymentsHeld.map((why) => HELD[why]);
  const silent = isSilent ? [`The stores have said nothing for ${Math.floor(silentMs / 1_000)} s.`] : [];
  const told = [
    ...silent,
    ...reasonsOf(stores),
    ...(paymentsProblem === undefined ? [] : [paymentsProblem]),
    ...risks,
    ...held,
    ...(suspended === undefined ? [] : [SUSPENDED[suspended]]),
  ];
  const body = {
    status: degraded.length > 0 ? 'degraded' : 'ready',
    degraded,
    spooled,
    ...kept,
    ageMs: Math.round(ageMs),
    ...(isHeld && { paymentsHeld: true }),
    ...(told.length > 0 && { reasons: told }),
    ...(unreadableSpools.length > 0 && { unreadableSpools }),
  };
  return { status: 200, body };
}

/** Why the event log does not answer, and why the spool takes no event. */
const reasonsOf = ({ reasons = [], spoolProblem }: StoresKnown): readonly string[] =>
  spoolProblem === undefined ? reasons : [...reasons, spoolProblem];
