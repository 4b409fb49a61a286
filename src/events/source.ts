import type { LogPosition } from './cursor.ts';
import type { Entry, Slice } from './entry.ts';
import type { EventSearch } from './log.ts';
import type { Found, SearchFrom } from './search.ts';

/** How far back a log reaches. */
export interface Reach {
  /** The event at the beginning of the log. */
  readonly first: Entry;
  /** When the latest of those that were given up was received, in milliseconds since 1970; undefined where none was. */
  readonly goneUpTo: number | undefined;
}

/** What a store gives the hub: atomic reads, and a channel of new entries that may lose, repeat or delay. */
export interface Source {
  /** Whether the text can be an event's position here. */
  isPosition(text: string): boolean;

  /** Whether an event's position comes before another event's. */
  isBefore(position: string, other: string): boolean;

  /**
   * Makes certain that what is read from now on is the log as it is, and not what a server has whose place another has taken.
   *
   * @throws {StoreUnavailableError} where that is not certain
   */
  confirm(clientId: string): Promise<void>;

  /**
   * Up to `limit` entries after a position, unchecked, or from the oldest retained one for null.
   *
   * @throws {StoreUnavailableError}
   */
  read(clientId: string, after: string | null, limit: number): Promise<Slice>;

  /**
   * Up to `limit` entries ending with the one at a position, unchecked, or with the newest for null; oldest first.
   * `hasMore` says whether older ones are retained.
   *
   * @throws {StoreUnavailableError}
   */
  readBack(clientId: string, upTo: string | null, limit: number): Promise<Slice>;

  /**
   * Entries that may be of a search, by the index; undefined while the index lacks some of the client's events.
   *
   * @throws {StoreUnavailableError}
   */
  find(clientId: string, from: SearchFrom, search: EventSearch): Promise<Found | undefined>;

  /**
   * Enters some of the events that the index lacks. Resolves with whether it lacks no more.
   *
   * @throws {StoreUnavailableError}
   */
  catchUp(clientId: string): Promise<boolean>;

  /**
   * What `EventLog.wholeSince` follows from; undefined where nothing is held.
   *
   * @throws {StoreUnavailableError}
   */
  reach(clientId: string): Promise<Reach | undefined>;

  /** @throws {StoreUnavailableError} */
  head(clientId: string): Promise<LogPosition>;

  /**
   * The places from which everything retained, and nothing but what comes, can be read.
   *
   * @throws {StoreUnavailableError}
   */
  bounds(clientId: string): Promise<{ oldest: LogPosition; head: LogPosition }>;

  /**
   * The log's key for this client (`EventLog.sealKey`).
   *
   * @throws {StoreUnavailableError}
   */
  sealKey(clientId: string): Promise<Buffer>;

  /**
   * Begins to call the listener. Once resolved, an entry appended later is either received or followed by a resync.
   *
   * @throws {StoreUnavailableError}
   */
  attach(clientId: string, listener: Listener): Promise<void>;

  detach(clientId: string): void;
}

export interface Listener {
  /** An entry came in on the channel. */
  receive(entry: Entry): void;
  /** Something may have been missed: compare with the log. */
  resync(): void;
}
