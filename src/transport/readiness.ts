/** What readiness depends on. */
export interface Condition {
  readonly draining: boolean;
  /** Whether an event could be kept now, in the log or in the spool. */
  readonly writable: boolean;
  /** Whether the event log itself answers. */
  readonly eventsAvailable: boolean;
  readonly upstreamAvailable: boolean;
  /** Events waiting for the log to come back. */
  readonly spooled: number;
}

/**
 * The answer of `/readyz`. An upstream or a Redis that is away is `degraded`, never unready: a gateway taken out of
 * rotation could not even keep what arrives meanwhile.
 */
export function readiness(condition: Condition): { readonly status: 200 | 503; readonly body: object } {
  const { draining, writable, eventsAvailable, upstreamAvailable, spooled } = condition;
  if (draining || !writable) {
    return { status: 503, body: { status: draining ? 'draining' : 'unready' } };
  }
  const degraded = [...(eventsAvailable ? [] : ['events']), ...(upstreamAvailable ? [] : ['upstream'])];
  return { status: 200, body: { status: degraded.length > 0 ? 'degraded' : 'ready', degraded, spooled } };
}
