import type { Attempt } from '../common/attempt.ts';

/** Upper bounds of pauses, in ms: of the first pause, and of all. */
export interface Backoff {
  readonly first: number;
  readonly most: number;
}

/**
 * Returns the pause before the next try, in ms. It doubles each time, and is random in its upper half, so that calls that
 * fail together do not come back together.
 *
 * @param tries how many pauses there were before this one.
 */
export function backoff({ first, most }: Backoff, tries: number, random: () => number): number {
  const longest = Math.min(most, first * 2 ** tries);
  return longest / 2 + (longest / 2) * random();
}

/** Returns how long an answer asks to wait before the next try (`Retry-After`), in ms; 0 if it does not. */
export const askedToWaitMs = (attempt: Attempt): number =>
  attempt.kind === 'answered' ? (attempt.retryAfterMs ?? 0) : 0;

/**
 * How long after the first sending the same bytes may be sent again, in ms: an hour less than the upstream remembers their
 * key.
 */
export const RETRY_WINDOW_MS = 23 * 60 * 60 * 1000;
