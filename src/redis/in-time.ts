import { clock, type Timer } from '../common/clock.ts';

/**
 * Resolves with an answer of Redis, if it comes in time. ioredis measures a command's time only from when a connection has
 * it. A client of a Cluster may hold a command back before that, while it looks for the owner of the slot.
 *
 * @throws {Error} after `milliseconds` without an answer
 */
export async function inTime<T>(answer: Promise<T>, milliseconds: number): Promise<T> {
  let timer: Timer | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new Error('no answer in time')), milliseconds);
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    clock.clearTimeout(timer);
  }
}
