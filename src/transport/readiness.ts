/** What the operator is told of held payments. */
const HELD = {
  'put-back': 'Payments are held: their record has been put back to an earlier state.',
  stopped: 'Payments are held: an operator has stopped them.',
  off: 'Payments are held: PAYMENTS is off.',
} as const;

/** What readiness depends on. */
export interface Condition {
  readonly draining: boolean;
  /** Whether an event could be kept now, in the log or in the spool. */
  readonly writable: boolean;
  /** Whether the event log itself answers. */
  readonly eventsAvailable: boolean;
  /** Whether the record of payments can be kept. */
  readonly paymentsAvailable: boolean;
  /** Why payments are held until an operator lets them go on; undefined where they are not. */
  readonly paymentsHeld: keyof typeof HELD | undefined;
  readonly upstreamAvailable: boolean;
  /** Events waiting for the log to come back. */
  readonly spooled: number;
  /** Names of the spools that cannot be read. */
  readonly unreadableSpools: readonly string[];
  /** Why the event log does not answer, as sentences for the operator. */
  readonly reasons?: readonly string[] | undefined;
  /** By what Redis may lose what it has taken, likewise. */
  readonly risks?: readonly string[] | undefined;
}

/**
 * The answer of `/readyz`. An upstream or a Redis that is away or may lose what it has taken, a spool that cannot be read, or a
 * record of payments that cannot be kept, or is held, is `degraded`, never unready: a gateway taken out of rotation could not
 * even keep what arrives meanwhile.
 */
export function readiness(condition: Condition): {
  readonly status: 200 | 503;
  readonly body: { readonly status: string; readonly degraded?: readonly string[] };
} {
  const { draining, writable, spooled, unreadableSpools, paymentsHeld, reasons = [], risks = [] } = condition;
  if (draining || !writable) {
    return { status: 503, body: { status: draining ? 'draining' : 'unready' } };
  }
  const degraded = [
    ...(condition.eventsAvailable ? [] : ['events']),
    ...(unreadableSpools.length === 0 ? [] : ['spool']),
    ...(condition.paymentsAvailable && paymentsHeld === undefined ? [] : ['payments']),
    ...(risks.length === 0 ? [] : ['redis']),
    ...(condition.upstreamAvailable ? [] : ['upstream']),
  ];
  const held = paymentsHeld === undefined ? [] : [HELD[paymentsHeld]];
  const told = [...reasons, ...risks, ...held];
  const body = {
    status: degraded.length > 0 ? 'degraded' : 'ready',
    degraded,
    spooled,
    ...(paymentsHeld !== undefined && { paymentsHeld: true }),
    ...(told.length > 0 && { reasons: told }),
    ...(unreadableSpools.length > 0 && { unreadableSpools }),
  };
  return { status: 200, body };
}
