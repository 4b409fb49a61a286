import type { PushStream } from '../common/push-stream.ts';
import type { LogBounds } from './errors.ts';

/**
 * The event log: what a webhook said, kept per client in one order, and read back by callers who may see it.
 *
 * Guaranteed by every implementation:
 *
 * - What `append` has answered is on disk, as far as the store's own settings go.
 * - A message appended again, through any process that shares the log, makes no second event. It gets the first answer, unless it goes
 *   to a spool: that does not know the answer, and gives 201.
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
 * - That a reader learns of what the log lost from its end, in a failover or with an earlier copy that was put back, unless it stood
 *   in the lost part.
 * - With Redis: that positions stay unique when the clock of a promoted replica is behind that of the lost primary.
 */

/**
 * The types that this version takes in and shows. A log may hold events of others, which a later version has stored: readers pass over
 * them.
 */
export const EVENT_TYPES = ['MONEY_IN', 'CEP', 'STATUS_UPDATE'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** What was decided on a MONEY_IN and stored, before it was answered. INFORMED for all but an SPEI credit: the answer to the others has no effect. */
export type MoneyInDecision = 'ACCEPTED' | 'REJECTED' | 'INFORMED';

/**
 * The gateway's HTTP answer to the delivery of a stored message. 422 refunds an SPEI credit (docs/upstream-api.md, "Events").
 */
export type Answer =
  | { readonly status: 201 }
  | {
      readonly status: 422;
      readonly refundReason?: string | undefined;
      /** The credit that was refused. Undefined in what version 0.2.0 and earlier ones stored. */
      readonly transactionId?: string | undefined;
    };

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
  /** With REJECTED only: the credit that was judged. It is kept with the answer, which is given for no other credit. */
  readonly transactionId?: string | undefined;
  /** The delivery's JSON text, valid and whole. */
  readonly payload: string;
  /** Two deliveries of a type with the same identity are one message. */
  readonly identity: string;
  /** Digest of the parsed contents. A repeated delivery with another digest is a conflict. */
  readonly contents: string;
  /**
   * True if the answer does not depend on the log, so that a spool may keep the event instead. False if a decider was asked:
   * another process may have got, and given, another answer.
   */
  readonly spoolable: boolean;
  /** The delivery's trace context (W3C Trace Context), so that spans of work done with the event join its trace. */
  readonly traceparent?: string | undefined;
  /** The names that the process which spooled it gave it. One that drains the spool may be older, and not know the type. */
  readonly names?: readonly string[] | undefined;
}

/** The result of an append. */
export interface Appended {
  /** The answer that the log has stored for this message, whichever process stored it first; 201 while the event waits in a spool. */
  readonly answer: Answer;
  readonly duplicate: boolean;
  /** True for a duplicate whose first delivery was this very event: it was sent before, and nobody learned that the log keeps it. */
  readonly resent?: boolean;
  /** True for a duplicate whose contents differ from those of the first delivery. */
  readonly conflict: boolean;
  /** The event's cursor; null while the event waits in the spool. */
  readonly cursor: string | null;
}

/** An event as it is read. All readers in the process share the object, so none may change it. */
export interface StoredEvent {
  readonly cursor: string;
  readonly id: string;
  /** One of `EVENT_TYPES`, or the name of a type that a later version has stored. */
  readonly type: string;
  readonly receivedAt: string;
  readonly decision?: MoneyInDecision;
  readonly refundReason?: string;
  readonly traceparent?: string;
  /** The delivery's parsed JSON, whole. */
  readonly payload: unknown;
}

/** The conditions of a search. An event matches if it fits every condition that is given. */
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
  /** The cursor of the event to start after. Without it the reader gets the events that come once it is attached. */
  readonly after?: string | undefined;
  /** Only events that have one of these topics (topics.ts). Undefined: every event. An empty list: none. */
  readonly topics?: readonly string[] | undefined;
  /** True if some topics need a REST call. */
  readonly needsLookup?: boolean | undefined;
}

/** Events as they come. Ended by `stop()`, or by the iterator's `return()`. */
export type EventStream = PushStream<StoredEvent>;

/** Is called with events as they come. It has no queue, so it must take each event at once. */
export interface Watcher {
  event(event: StoredEvent): void;
  /** No more events follow, because of an `EventsGapError` or a `DrainingError`. */
  end(error: Error): void;
}

export interface EventWatch {
  /**
   * Watches for more topics from now on.
   *
   * @returns the events of all its topics since it began to watch, oldest first, including those that it was called with
   * already; undefined if the feed no longer remembers so far back.
   */
  add(topics: readonly string[]): readonly StoredEvent[] | undefined;
  stop(): void;
}

/** Whether events can be kept and read now. */
export interface EventLogHealth {
  /** True if an append that may be spooled would be kept. */
  readonly writable: boolean;
  /**
   * True if the log itself answers: events are readable, new ones are followed, and credits with a decider can be answered.
   */
  readonly available: boolean;
  /** Number of events that wait in the spools of this process, including spools that it has adopted. */
  readonly spooled: number;
  /** Names of the spools in `DATA_DIR` that are damaged or cannot be read, if there are any. Events in them may reach nobody. */
  readonly unreadableSpools?: readonly string[];
  /** Why the spool takes no event, if it does not: a sentence for the operator. It is needed once the log is away. */
  readonly spoolProblem?: string;
  /** Why the log is not available, as far as is known: sentences for the operator. */
  readonly reasons?: readonly string[];
  /** How it may lose events that it has taken, although it is available: sentences for the operator. */
  readonly risks?: readonly string[];
  /** Of a log in Redis: whether Redis answers, and after how many milliseconds. */
  readonly redis?: { readonly answers: boolean; readonly milliseconds: number };
}

export interface EventLog {
  /**
   * Keeps an event, or recognises it as one that is kept already.
   *
   * @throws {StoreUnavailableError} if it is neither kept nor spooled. The delivery must then not be acknowledged.
   */
  append(clientId: string, event: NewEvent): Promise<Appended>;

  /**
   * Returns the answer to an earlier delivery of the same message; undefined if the log remembers none. It asks the log
   * itself, so the result is certain.
   *
   * @throws {StoreUnavailableError} if the log cannot be asked, or events of this client still wait in the spool.
   */
  recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined>;

  /**
   * Returns up to `limit` events after a cursor, or from the oldest retained one for null. If the page holds no events, no
   * more follow.
   *
   * @param search skips, by an index, events that do not match. It may let others through, so the reader checks each event.
   * @throws {CursorInvalidError | EventsGapError | StoreUnavailableError}
   */
  readAfter(clientId: string, cursor: string | null, limit: number, search?: EventSearch): Promise<EventPage>;

  /**
   * Returns the `limit` events before a cursor, or the newest ones for null; oldest first.
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
   * Returns the time since which the log holds every received event, in milliseconds since 1970; null if it holds no event.
   * That need not be the time of its oldest event, because the log is not in the order of receipt. It is never before this life of
   * the log began.
   *
   * The log does not know what it has lost from its end, in a failover or with an earlier copy that was put back.
   *
   * @throws {StoreUnavailableError}
   */
  wholeSince(clientId: string): Promise<number | null>;

  /**
   * Returns when the gateway received the latest event that the log has given up, in milliseconds since 1970. Returns null if it gave up
   * none: the log holds every event since it began.
   *
   * @throws {StoreUnavailableError}
   */
  givenUpTo(clientId: string): Promise<number | null>;

  /**
   * Returns the cursor of the newest event. If there is none, returns the cursor of the position before the first.
   *
   * @throws {StoreUnavailableError}
   */
  head(clientId: string): Promise<string>;

  /**
   * Returns the cursors from which a reader who is told of a gap starts again.
   *
   * @throws {StoreUnavailableError}
   */
  bounds(clientId: string): Promise<LogBounds>;

  /**
   * Returns the key that seals this client's cursors for callers who may not read its whole log (seal.ts). The log makes the
   * key when it is first asked for, and keeps it as long as its events. Processes that share a log have the same key.
   *
   * @throws {StoreUnavailableError}
   */
  sealKey(clientId: string): Promise<Buffer>;

  /**
   * Returns a stream of the events since `after`, then of events as they come. Resolves once attached: the stream has every
   * event that is appended from then on. It ends with `EventsGapError`, `SlowConsumerError` or `DrainingError`. While the
   * store is away it waits.
   *
   * @throws {CursorInvalidError | EventsGapError | StoreUnavailableError | DrainingError}
   */
  follow(clientId: string, options?: FollowOptions): Promise<EventStream>;

  /**
   * Calls a watcher with the events of some topics, from now on. Resolves once attached.
   *
   * @throws {StoreUnavailableError | DrainingError}
   */
  watch(clientId: string, topics: readonly string[], watcher: Watcher): Promise<EventWatch>;

  health(): Promise<EventLogHealth>;

  /**
   * Ends every follower with `DrainingError`, and closes connections and files.
   *
   * @param withinMs over how many milliseconds the ends of the followers are spread, so that not all clients reconnect at
   * once; 0 unless given.
   */
  stop(withinMs?: number): Promise<void>;
}
