import type { LogPosition } from './cursor.ts';
import type { Slice } from './entry.ts';

/**
 * True if a slice holds every entry after `after`: each entry names the one before it, and the last entry is the log's head
 * unless `hasMore` says that more follow.
 *
 * @param after the position that was read from, or null for the oldest retained one
 */
export function isUnbroken(after: string | null, slice: Slice): boolean {
  let expected = after ?? slice.entries[0]?.prev ?? slice.head;
  for (const entry of slice.entries) {
    if (entry.prev !== expected) return false;
    expected = entry.position;
  }
  return slice.hasMore || expected === slice.head;
}

/** True if a slice was read in the life of the log that a position is of. Events were lost with any other one. */
export const isOfLife = (at: LogPosition | undefined, { epoch }: Slice): boolean =>
  at === undefined || at.epoch === epoch;

/**
 * True if the oldest page of a log holds an event, or the log never had one. Trimming keeps the newest event, so a log that has had
 * events and holds none has lost them, as by an eviction of its key.
 */
export const holdsNewest = ({ entries, head, epoch }: Slice): boolean => entries.length > 0 || head === epoch;
