import { hash } from 'node:crypto';
import type { Entry } from './entry.ts';
import type { StoredEvent } from './log.ts';

/** The texts by which an event is found again, such as the id of its transaction. It never throws. */
export type EventNames = (event: StoredEvent) => readonly string[];

/** No event is found by a name: for logs that nobody searches. */
export const noNames: EventNames = () => [];

/** What a store found, as one atomic read saw it. */
export interface Found {
  readonly epoch: string;
  /** Whether the position that was searched from is still in the log: otherwise events after it may be gone. */
  readonly isHeld: boolean;
  /** Those that may be of the search, oldest first. Nothing that is of it is left out before or between them. */
  readonly entries: readonly Entry[];
  /** Whether more may follow in the direction of the search; never so where there are no entries. */
  readonly hasMore: boolean;
}

/** Where a search begins, and how far it goes. */
export interface SearchFrom {
  /** Exclusive; null for the end of the log at which the direction begins. */
  readonly position: string | null;
  readonly direction: 'on' | 'back';
  readonly limit: number;
}

/**
 * Of so many events in a row the log remembers when the earliest and the latest was received. A search by time passes over those
 * that have none of its time, whatever the order in which they arrived: what waited in a spool comes late.
 */
export const BLOCK = 256;

/** Events that are entered into the index at a time, where they were appended without it. */
export const INDEXED_AT_ONCE = 100;

/**
 * What stands for a client's name in the index: a word of one length that tells nothing. The reader of the event tells equal ones
 * apart.
 */
export const digestOf = (clientId: string, name: string): string =>
  hash('sha256', `${clientId}\n${name}`, 'base64url').slice(0, 16);

/**
 * Begins the digests of an event that has all the names of this version. An earlier version tells fewer names of an event, and
 * leaves its digests without the mark: they are told once more. No digest is like it.
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
    // The ingress writes it; of an event that has none the time is not known, and it is found by name alone.
    receivedAt: Number.isNaN(receivedAt) ? 0 : receivedAt,
    digests: [MARK, ...[...new Set(names(event))].map((name) => digestOf(clientId, name))].join(' '),
  };
}
