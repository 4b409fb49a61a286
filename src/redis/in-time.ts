import type { Command, Redis } from 'ioredis';
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
    timer = afterReading(() => reject(new Error('no answer in time')), milliseconds);
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    clock.clearTimeout(timer);
  }
}

/**
 * Has a command of ioredis read what has arrived before its `commandTimeout` ends it. ioredis ends it by a timer alone, and fails
 * answered commands in a process that was busy, or paused, for longer than that time.
 */
export function readsBeforeTimeout(command: Command): void {
  let timer: Timer | undefined;
  const settled = (): void => {
    clock.clearTimeout(timer);
    timer = undefined;
  };
  command.setTimeout = (milliseconds) => {
    if (timer !== undefined) return;
    timer = afterReading(() => {
      if (!command.isSettled) command.reject(new Error(TIMED_OUT));
    }, milliseconds);
    command.promise.then(settled, settled);
  };
}

/** The same for `socketTimeout`, which ends a connection on which nothing came for so long. */
export function readsBeforeSilence(redis: Redis): void {
  redis.on('connect', () => {
    const { stream } = redis;
    const destroy = stream.destroy.bind(stream);
    stream.destroy = (error) => {
      if (error?.message.startsWith('Socket timeout.') !== true) return destroy(error);
      const { bytesRead } = stream;
      clock.setImmediate(() => {
        if (stream.bytesRead === bytesRead) destroy(error);
      });
      return stream;
    };
  });
}

/** What ioredis says of a command whose `commandTimeout` is over. */
export const TIMED_OUT = 'Command timed out';

/** Node calls timers that are due before it reads its sockets, and immediates after that. */
const afterReading = (callback: () => void, milliseconds: number): Timer =>
  clock.setTimeout(() => clock.setImmediate(callback), milliseconds);
