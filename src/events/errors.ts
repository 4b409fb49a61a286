/**
 * The errors of the event log. `code` is literal and public. `retryable` says whether the same request can succeed later; a
 * follower sends it with the cursor of the last event that it saw.
 */

/**
 * Two cursors to start again from. Reading after `oldest` gives all events that are retained when it is read, and is no gap as
 * long as reading after `head` is none. Reading after `head` gives only events to come.
 */
export interface LogBounds {
  readonly oldest: string;
  readonly head: string;
}

/**
 * Why events are missing.
 *
 * - `trimmed`: more events came than are retained; or, once events have come again, the log was evicted.
 * - `begun-anew`: the log was lost, and a new one has begun.
 * - `lost`: the log lacks the reader's place, because a failover has lost its end, an earlier copy was put back, or its events were evicted or deleted.
 */
export type GapReason = 'trimmed' | 'begun-anew' | 'lost';

export const GAP_REASONS: readonly GapReason[] = ['trimmed', 'begun-anew', 'lost'];

/** What the gateway tells an operator about a gap. */
export interface Gap {
  readonly clientId: string;
  readonly reason: GapReason;
}

/**
 * Events next to the cursor are missing from the log: trimmed, flushed, or lost in a failover. A reader starts again from
 * `oldest` (all retained events) or `head` (only events to come).
 */
export class EventsGapError extends Error {
  override readonly name = 'EventsGapError';
  readonly code = 'EVENTS_GAP';
  readonly retryable = false;
  readonly oldest: string;
  readonly head: string;
  readonly gap: Gap;

  constructor(bounds: LogBounds, gap: Gap) {
    super('Events next to the given cursor are no longer in the log. Start again from `oldest` or `head`.');
    this.oldest = bounds.oldest;
    this.head = bounds.head;
    this.gap = gap;
  }
}

/**
 * The cursor was not made by this log for this client. A reader starts again from `oldest` (all retained events) or `head`
 * (only events to come). Both are absent until the log has been asked for them; no reader is told of it without them.
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

/** The store cannot keep or read events now. Nothing has been kept. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
  readonly code = 'STORE_UNAVAILABLE';
  readonly retryable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** The log has taken the events, and told its followers. Its replicas do not have them, so that they may still be lost. */
export class UnreplicatedError extends StoreUnavailableError {
  /** Names the history of data that they are in. A server that is promoted begins another, and so does a log that was lost. */
  readonly history: string;

  constructor(message: string, history: string, options?: ErrorOptions) {
    super(message, options);
    this.history = history;
  }
}

/** The log has taken none of the events: its data have another history than the one that was named. */
export class OtherHistoryError extends StoreUnavailableError {}

/** This process is shutting down. A follower misses nothing when it resumes from its last cursor in another one. */
export class DrainingError extends Error {
  override readonly name = 'DrainingError';
  readonly code = 'DRAINING';
  readonly retryable = true;

  constructor() {
    super('This process is shutting down. Connect again, and resume with the last cursor.');
  }
}

/** Too many events waited for the follower, and its queue was dropped. It misses nothing when it resumes from its last cursor. */
export class SlowConsumerError extends Error {
  override readonly name = 'SlowConsumerError';
  readonly code = 'SLOW_CONSUMER';
  readonly retryable = true;
  /** Whose events they are. */
  readonly clientId: string;

  constructor(clientId: string) {
    super('Events came faster than they were read. Resume from the cursor of the last one.');
    this.clientId = clientId;
  }
}
