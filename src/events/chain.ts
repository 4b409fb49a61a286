import type { Slice } from './entry.ts';

/**
 * Whether a slice is the whole of what follows `after`: every entry names the one before it, and the last one is the
 * log's head unless more is to come.
 *
 * @param after the position read from, or null for the oldest retained one
 */
export function isUnbroken(after: string | null, slice: Slice): boolean {
  let expected = after ?? slice.entries[0]?.prev ?? slice.head;
  for (const entry of slice.entries) {
    if (entry.prev !== expected) return false;
    expected = entry.position;
  }
  return slice.hasMore || expected === slice.head;
}
