import type { PushStream } from '../common/push-stream.ts';
import type { LogBounds } from './errors.ts';

/**
 * The event log: what a webhook said, kept per client in one order, and read back by callers who may see it.
 *
 * Guaranteed by every implementation:
 *
 * - What `append` has answered is on disk, as far as the store's own settings go.
 * - A message appended again, through any process that shares the log, makes no second event and gets the first answer.
 * - Per client there is one order. A reader that goes on from a cursor gets every later event, once, in that order, or
 *   the error `EVENTS_GAP`. It never gets a part as if it were the whole: each event is checked against the one before it.
 * - What is read is what was appended: the payload is the parsed text of the delivery, extra fields and all.
 *
 * Not guaranteed:
 *
 * - Any order between clients, or between two messages that were in flight at once.
 * - That an event is readable when `append` returns: while the store is away it waits in a spool (cursor null).
 * - Who may see what: readers filter for themselves.
 * - More than the retained number of events per client, or the recognition of a repeat after seven days.
 * - That a reader learns of events lost when a log was put back to an earlier copy, unless it was ahead of the copy.
 * - With Redis: that positions stay unique when the clock of a promoted replica is behind that of the lost primary.
 */

export type EventType = 'MONEY_IN' | 'CEP' | 'STATUS_UPDATE';

export const EVENT_TYPES: readonly EventType[] = ['MONEY_IN', 'CEP', 'STATUS_UPDATE'];

/** What the gateway said of a MONEY_IN: INFORMED where the spec gives the reply no effect (any but an SPEI credit). */
export type MoneyInDecision = 'ACCEPTED' | 'REJECTED' | 'INFORMED';

/** What the provider is told of a stored message. 422 refunds an SPEI credit (docs/upstream-api.md, "Events"). */
export type Answer =
  | { readonly status: 201 }
  | { readonly status: 422; readonly refundReason?: string | undefined };

/** An event to append. */
export interface NewEvent {
  /** The provider's `id_msg`, or an id made here. */
  readonly id: string;
  readonly type: EventType;
  /** RFC 3339, when the delivery arrived. */
  readonly receivedAt: string;
  /** MONEY_IN only. */
  readonly decision?: MoneyInDecision | undefined;
  /** With REJECTED only. */
  readonly refundReason?: string | undefined;
  /** The delivery's JSON text, valid and whole. */
  readonly payload: string;
  /** Two deliveries of a type with the same identity are one message. */
  readonly identity: string;
  /** Digest of the parsed contents: a repeat with another one is a conflict. */
  readonly contents: string;
  /**
   * Whether the answer is certain without asking the log, so that a spool may stand in for it. False where somebody was
   * asked: another process may have got, and given, another answer.
   */
  readonly spoolable: boolean;
  /** Where the delivery stands in a trace (W3C Trace Context), so that what is done with the event can join it. */
  readonly traceparent?: string | undefined;
}

/** What came of an append. */
export interface Appended {
  /** What the first delivery of this message is answered, whichever process stored it. */
  readonly answer: Answer;
  readonly duplicate: boolean;
  /** A duplicate whose contents are not those of the first. */
  readonly conflict: boolean;
  /** Where the event stands; null while it waits in the spool. */
  readonly cursor: string | null;
}

/** An event as it is read. Shared by all readers in the process: not to be changed. */
export interface StoredEvent {
  readonly cursor: string;
  readonly id: string;
  readonly type: EventType;
  readonly receivedAt: string;
  readonly decision?: MoneyInDecision;
  readonly refundReason?: string;
  readonly traceparent?: string;
  /** The delivery's parsed JSON, whole. */
  readonly payload: unknown;
}

/** What is looked for. An event is of it that fits everything given. */
export interface EventSearch {
  /** Received at this time or later, in milliseconds since 1970. */
  readonly receivedFrom?: number | undefined;
  /** Received before this time, in milliseconds since 1970. */
  readonly receivedTo?: number | undefined;
  /** One of the names that `EventNames` (search.ts) gives an event. */
  readonly name?: string | undefined;
}

export interface EventPage {
  /** Oldest first. */
  readonly events: readonly StoredEvent[];
  /** Whether the retained log goes on, in the direction of reading. */
  readonly hasMore: boolean;
}

export interface FollowOptions {
  /** Start after this event; without it, with whatever comes once attached. */
  readonly after?: string | undefined;
  /** Only events of these topics (topics.ts); every event where there are none given. */
  readonly topics?: readonly string[] | undefined;
  /** True if some topics need a REST call. */
  readonly needsLookup?: boolean | undefined;
}

/** Events as they come. Ended by `stop()`, or by the iterator's `return()`. */
export type EventStream = PushStream<StoredEvent>;

/** Is told of events. What it is told it takes at once. */
export interface Watcher {
  event(event: StoredEvent): void;
  /** No more is told: `EventsGapError` or `DrainingError`. */
  end(error: Error): void;
}

export interface EventWatch {
  /**
   * Watches for more topics from now on.
   *
   * @returns what has come of all its topics since it began to watch, oldest first, what it was told of already included;
   * undefined where the feed no longer remembers so far back.
   */
  add(topics: readonly string[]): readonly StoredEvent[] | undefined;
  stop(): void;
}

/** Whether events can be kept and read now. */
export interface EventLogHealth {
  /** An append that may be spooled would be kept. */
  readonly writable: boolean;
  /** The log itself answers: events are readable, new ones are followed, and credits with a decider can be answered. */
  readonly available: boolean;
  /** Events that wait in the spools of this process, those that it has adopted among them. */
  readonly spooled: number;
  /** Names of the spools in `DATA_DIR` that cannot be read, where there are any: nobody gets their events. */
  readonly unreadableSpools?: readonly string[];
  /** Why the log is not available, as far as it is known, as sentences for the operator. */
  readonly reasons?: readonly string[];
  /** By what it may lose what it has taken, though it is available, as sentences for the operator. */
  readonly risks?: readonly string[];
  /** Of a log in Redis: whether it answers, and how long it took. */
  readonly redis?: { readonly answers: boolean; readonly milliseconds: number };
}

export interface EventLog {
  /**
   * Keeps an event, or recognises it.
   *
   * @throws {StoreUnavailableError} when it is certain that nothing may be answered: try again later.
   */
  append(clientId: string, event: NewEvent): Promise<Appended>;

  /**
   * What an earlier delivery of the same message was answered; undefined when none is remembered. Certain, because it
   * is asked of the log itself.
   *
   * @throws {StoreUnavailableError} when the log cannot be asked, or events of this client still wait in the spool.
   */
  recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined>;

  /**
   * Up to `limit` events after a cursor, or from the oldest retained one for null.
   *
   * @param search passes over events that are not of it, by an index. It may give others too: who reads looks at each. Where
   * there are no events in the page, no more follow.
   * @throws {CursorInvalidError | EventsGapError | StoreUnavailableError}
   */
  readAfter(clientId: string, cursor: string | null, limit: number, search?: EventSearch): Promise<EventPage>;

  /**
   * The `limit` events before a cursor, or the newest ones for null; oldest first.
   *
   * @param search as for `readAfter`
   * @throws {CursorInvalidError | EventsGapError | StoreUnavailableError}
   */
  readBefore(
    clientId: string,
    cursor: string | null,
    limit: number,
    search?: EventSearch,
  ): Promise<EventPage>;

  /**
   * A time from which on the log is whole, in milliseconds since 1970: no event received then or later has been given up. Null
   * where it holds none. The order of the log is not that of receipt, so the event at its beginning need not be the oldest.
   *
   * @throws {StoreUnavailableError}
   */
  wholeSince(clientId: string): Promise<number | null>;

  /**
   * The cursor of the newest event; of the position before the first where there is none.
   *
   * @throws {StoreUnavailableError}
   */
  head(clientId: string): Promise<string>;

  /**
   * The places from which all that is retained, and nothing but what comes, can be read.
   *
   * @throws {StoreUnavailableError}
   */
  bounds(clientId: string): Promise<LogBounds>;

  /**
   * The key that cursors of this client are sealed with for those who may not read its log whole (seal.ts). The log keeps it
   * for as long as it keeps its events, and makes it when it is first asked for; processes that share a log have the same.
   *
   * @throws {StoreUnavailableError}
   */
  sealKey(clientId: string): Promise<Buffer>;

  /**
   * Events as they come, after the history since `after`. Resolves once attached: everything appended from then on is
   * given. The stream ends with `EventsGapError`, `SlowConsumerError` or `DrainingError`; it outlives an outage of the
   * store in silence.
   *
   * @throws {CursorInvalidError | EventsGapError | StoreUnavailableError | DrainingError}
   */
  follow(clientId: string, options?: FollowOptions): Promise<EventStream>;

  /**
   * Tells a watcher of the events of some topics, from now on. Resolves once attached.
   *
   * @throws {StoreUnavailableError | DrainingError}
   */
  watch(clientId: string, topics: readonly string[], watcher: Watcher): Promise<EventWatch>;

  health(): Promise<EventLogHealth>;

  /**
   * Ends every follower with `DrainingError` and closes what is open.
   *
   * @param withinMs over how many milliseconds the followers may be spread, so that not all return at once; 0 unless given.
   */
  stop(withinMs?: number): Promise<void>;
}
