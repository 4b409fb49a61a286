/** Pauses in ms: the longest of the first, and the longest of all. */
export interface Backoff {
  readonly first: number;
  readonly most: number;
}

/**
 * The pause before the next try, in ms: doubling, and spread over its upper half so that many who fail together do not
 * come back together.
 *
 * @param tries how many pauses there were before this one.
 */
export function backoff({ first, most }: Backoff, tries: number, random: () => number): number {
  const longest = Math.min(most, first * 2 ** tries);
  return longest / 2 + (longest / 2) * random();
}

/** How long after the first sending the same bytes may leave again: an hour less than the upstream remembers them. */
export const RETRY_WINDOW_MS = 23 * 60 * 60 * 1000;
