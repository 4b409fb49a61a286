import { gaveUp } from '../../common/attempt.ts';
import { SuspendedError } from './errors.ts';
import type { Attempt } from './http.ts';

/** Tries of one GET, the first included. */
const MAX_TRIES = 3;
const BASE_DELAY_MS = 100;
/** If the service asks to wait longer than this, in milliseconds, nobody waits: the caller gets its error. */
export const MOST_PAUSE_MS = 30_000;

/**
 * Returns how long to wait before a GET is tried again, in milliseconds; undefined if it must not be, because the answer is
 * final, the tries are used up, or the wait is longer than `MOST_PAUSE_MS` or than the time left. A GET is repeated after a connection that could
 * not be made or broke off, 408, 425, 502, 503, 504, and a 429 that says when; never after a time-out. Full jitter: a random part of a
 * delay that doubles, after `Retry-After` if the answer has one, so that calls that were refused together do not come back
 * together.
 *
 * @param tries how often the call has been made by now.
 * @param timeLeftMs until the operation's deadline.
 * @param random from [0, 1).
 */
export function retryDelay(
  attempt: Attempt,
  tries: number,
  timeLeftMs: number,
  random: number,
): number | undefined {
  if (tries >= MAX_TRIES || !isTransient(attempt)) return undefined;
  const asked = attempt.kind === 'answered' ? (attempt.retryAfterMs ?? 0) : 0;
  if (asked > MOST_PAUSE_MS) return undefined;
  const delay = asked + random * BASE_DELAY_MS * 2 ** tries;
  return delay < timeLeftMs ? delay : undefined;
}

function isTransient(attempt: Attempt): boolean {
  if (attempt.kind === 'failed') {
    const { error } = attempt;
    return error.code === 'UPSTREAM_UNAVAILABLE' && !(error instanceof SuspendedError);
  }
  if (attempt.status === 429) return attempt.retryAfterMs !== undefined;
  return gaveUp(attempt.status) || attempt.status === 502 || attempt.status === 503 || attempt.status === 504;
}
