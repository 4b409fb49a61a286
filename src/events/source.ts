import type { LogPosition } from './cursor.ts';
import type { Entry, Slice } from './entry.ts';
import type { EventSearch } from './log.ts';
import type { Found, SearchFrom } from './search.ts';

/** How far back the log of a client reaches. */
export interface Reach {
  /** Names the current life of the log. */
  readonly epoch: string;
  /** The event at the beginning of the log. */
  readonly first: Entry;
  /** When the latest of the trimmed events was received, in milliseconds since 1970; undefined if none was trimmed. */
  readonly goneUpTo: number | undefined;
}

/** What a store gives the hub: atomic reads, and a channel of new entries. The channel may lose, repeat or delay entries. */
export interface Source {
  /** Whether the text can be an event's position here. */
  isPosition(text: string): boolean;

  /** Whether an event's position comes before another event's. */
  isBefore(position: string, other: string): boolean;

  /**
   * Makes sure that later reads see the current log, and not a server that has been replaced.
   *
   * @throws {StoreUnavailableError} if that is not certain
   */
  confirm(clientId: string): Promise<void>;

  /**
   * Returns up to `limit` entries after a position, or from the oldest retained one for null. The caller checks that none is
   * missing.
   *
   * @throws {StoreUnavailableError}
   */
  read(clientId: string, after: string | null, limit: number): Promise<Slice>;

  /**
   * Returns up to `limit` entries that end with the one at a position, or with the newest for null; oldest first. The caller
   * checks that none is missing. `hasMore` says whether older ones are retained.
   *
   * @throws {StoreUnavailableError}
   */
  readBack(clientId: string, upTo: string | null, limit: number): Promise<Slice>;

  /**
   * Returns entries that may match a search, by the index; undefined while the index lacks some of the client's events.
   *
   * @throws {StoreUnavailableError}
   */
  find(clientId: string, from: SearchFrom, search: EventSearch): Promise<Found | undefined>;

  /**
   * Enters some of the events that the index lacks. Resolves with true once it lacks none.
   *
   * @throws {StoreUnavailableError}
   */
  catchUp(clientId: string): Promise<boolean>;

  /**
   * Returns what `EventLog.wholeSince` is computed from; undefined if the log holds no event.
   *
   * @throws {StoreUnavailableError}
   */
  reach(clientId: string): Promise<Reach | undefined>;

  /** @throws {StoreUnavailableError} */
  head(clientId: string): Promise<LogPosition>;

  /**
   * Returns the positions before the oldest retained event and of the newest one.
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
   * Begins to call the listener. After this has resolved, every entry that is appended is either received or followed by a
   * resync.
   *
   * @throws {StoreUnavailableError}
   */
  attach(clientId: string, listener: Listener): Promise<void>;

  detach(clientId: string): void;
}

export interface Listener {
  /** An entry has arrived on the channel. */
  receive(entry: Entry): void;
  /** Entries may have been missed: the listener must compare with the log. */
  resync(): void;
}
