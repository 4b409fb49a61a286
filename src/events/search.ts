import { hash } from 'node:crypto';
import type { Entry } from './entry.ts';
import type { StoredEvent } from './log.ts';

/** The texts by which an event is found again, such as the id of its transaction. It never throws. */
export type EventNames = (event: StoredEvent) => readonly string[];

/** No event is found by a name: for logs that nobody searches. */
export const noNames: EventNames = () => [];

/** What a store found in one atomic read. */
export interface Found {
  readonly epoch: string;
  /** True if the log still holds the position that was searched from. Otherwise events after it may be gone. */
  readonly isHeld: boolean;
  /**
   * Entries that may match the search, oldest first. No matching entry is left out before or between them. If none was found among those
   * that one step looks at, the last of these, from which the search goes on.
   */
  readonly entries: readonly Entry[];
  /** True if more may follow in the direction of the search; never true if there are no entries. */
  readonly hasMore: boolean;
}

/** Where a search begins, and how far it goes. */
export interface SearchFrom {
  /**
   * Exclusive. Null for the end of the log: the oldest entry when searching forwards, the newest when searching backwards.
   */
  readonly position: string | null;
  readonly direction: 'on' | 'back';
  readonly limit: number;
}

/**
 * Number of events in a row for which the log remembers the earliest and the latest time of receipt. A search by time skips
 * blocks without an event of that time. Events need not be in the order of receipt: those from a spool come late.
 */
export const BLOCK = 256;

/** Number of events entered into the index in one step, if they were appended without it. */
export const INDEXED_AT_ONCE = 100;

/**
 * Returns what stands for a client's name in the index: a word of one length. Two names may have the same digest, so the
 * reader checks the event. Who has a digest can find out a CLABE by trying them all.
 */
export const digestOf = (clientId: string, name: string): string =>
  hash('sha256', `${clientId}\n${name}`, 'base64url').slice(0, 16);

/**
 * The first character of an event's digests if this version wrote them, with all its names. An earlier version writes fewer
 * names, and no mark; the digests of such an event are written again. No digest equals it.
 */
export const MARK = '+';

/** What the index holds of an event. */
export interface Indexed {
  /** Milliseconds since 1970. */
  readonly receivedAt: number;
  /** The mark and the digests, with a space between them. */
  readonly digests: string;
}

export function indexed(clientId: string, event: StoredEvent, names: EventNames): Indexed {
  const receivedAt = Date.parse(event.receivedAt);
  return {
    // The ingress writes the time. An event without it is found by name alone.
    receivedAt: Number.isNaN(receivedAt) ? 0 : receivedAt,
    digests: [MARK, ...[...new Set(names(event))].map((name) => digestOf(clientId, name))].join(' '),
  };
}
