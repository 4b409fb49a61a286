import { clock, type Timer } from './clock.ts';

/** For how long behind its time a busy process goes on reading what comes piece by piece, in milliseconds. */
const MOST_READING_MS = 1_000;

/**
 * Calls back after `milliseconds`, once what had come by then has been read. Node calls timers that are due before it reads its sockets, and
 * immediates after that: in a process that was busy, or paused, an answer may lie there.
 *
 * @returns the timer. Once it has rung, clearing it does not keep the call back.
 */
export const afterReading = (callback: () => void, milliseconds: number): Timer =>
  clock.setTimeout(() => clock.setImmediate(callback), milliseconds);

/**
 * Calls back once a turn of the event loop has brought no more of what comes piece by piece. It is called when the time is over, for the
 * same reason as {@link afterReading}.
 *
 * @param pieces how much has come
 * @param until when it calls back though more comes: each turn of a busy process may bring a piece of what comes slowly
 */
export function afterLastPiece(
  pieces: () => number,
  callback: () => void,
  until = clock.monotonic() + MOST_READING_MS,
): void {
  const before = pieces();
  clock.setImmediate(() => {
    if (pieces() > before && clock.monotonic() < until) afterLastPiece(pieces, callback, until);
    else callback();
  });
}

/**
 * Does work that has a limit of time. An answer that had come by then still counts.
 *
 * @param work ends with the signal, which aborts with a TimeoutError, as that of `AbortSignal.timeout` does.
 */
export async function withTimeLimit<T>(
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const timer = afterReading(
    () => over.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    milliseconds,
  );
  try {
    return await work(over.signal);
  } finally {
    clock.clearTimeout(timer);
  }
}
