import { clock, type Timer } from './clock.ts';

/**
 * Calls back after `milliseconds`, once what had come by then has been read. Node calls timers that are due before it reads its sockets, and
 * immediates after that: in a process that was busy, or paused, an answer may lie there.
 *
 * @returns the timer. Once it has rung, clearing it does not keep the call back.
 */
export const afterReading = (callback: () => void, milliseconds: number): Timer =>
  clock.setTimeout(() => clock.setImmediate(callback), milliseconds);

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
