/**
 * The error family of the event log. `code` is literal and public; `retryable` says whether the same request can succeed
 * later (a follower: from the cursor of the last event it saw).
 */

/** The cursors from which all that is retained, and nothing but what comes, can be read. */
export interface LogBounds {
  readonly oldest: string;
  readonly head: string;
}

/**
 * Why events are missing: `trimmed`, more came than are retained; `begun-anew`, the log was lost, and another has begun; `lost`, the
 * log goes on without what it had, as a failover has lost its end, or an earlier copy was put back.
 */
export type GapReason = 'trimmed' | 'begun-anew' | 'lost';

export const GAP_REASONS: readonly GapReason[] = ['trimmed', 'begun-anew', 'lost'];

/** What an operator is told of a gap. */
export interface Gap {
  readonly clientId: string;
  readonly reason: GapReason;
}

/**
 * Events after the cursor are missing from the log: trimmed, flushed, or lost in a failover. Start again from `oldest`
 * (all that is retained) or `head` (only what comes).
 */
export class EventsGapError extends Error {
  override readonly name = 'EventsGapError';
  readonly code = 'EVENTS_GAP';
  readonly retryable = false;
  readonly oldest: string;
  readonly head: string;
  readonly gap: Gap;

  constructor(bounds: LogBounds, gap: Gap) {
    super('Events after the given cursor are no longer in the log. Start again from `oldest` or `head`.');
    this.oldest = bounds.oldest;
    this.head = bounds.head;
    this.gap = gap;
  }
}

/**
 * The cursor was not made by this log for this client. Start again from `oldest` (all that is retained) or `head` (only what
 * comes), where the log could be asked for them.
 */
export class CursorInvalidError extends Error {
  override readonly name = 'CursorInvalidError';
  readonly code = 'CURSOR_INVALID';
  readonly retryable = false;
  readonly bounds: LogBounds | undefined;

  constructor(bounds?: LogBounds) {
    super('The cursor is not one of this event log and client.');
    this.bounds = bounds;
  }
}

/** The store cannot keep or read events now. Nothing was promised. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
  readonly code = 'STORE_UNAVAILABLE';
  readonly retryable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** This process is shutting down. A follower misses nothing when it resumes from its last cursor in another one. */
export class DrainingError extends Error {
  override readonly name = 'DrainingError';
  readonly code = 'DRAINING';
  readonly retryable = true;

  constructor() {
    super('This process is shutting down. Connect again, and resume with the last cursor.');
  }
}

/** The follower read too slowly and its queue was dropped. It misses nothing when it resumes from its last cursor. */
export class SlowConsumerError extends Error {
  override readonly name = 'SlowConsumerError';
  readonly code = 'SLOW_CONSUMER';
  readonly retryable = true;

  constructor() {
    super('Events came faster than they were read. Resume from the cursor of the last one.');
  }
}
