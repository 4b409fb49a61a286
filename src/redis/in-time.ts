import type { Command, Redis } from 'ioredis';
import { clock, type Timer } from '../common/clock.ts';
import { afterReading } from '../common/time-limit.ts';

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
 * Has a connection of ioredis keep to `commandTimeout` and `socketTimeout` as its callers are told of them:
 *
 * - It reads what has arrived before either ends anything. ioredis goes by timers alone: in a process that was busy, or paused, for
 *   longer, it fails answered commands and ends their connection.
 * - It sends nothing whose caller was told that it failed. ioredis keeps a command that has timed out where no reply came, and sends
 *   it on the next connection that is ready, however late that is.
 */
export function keepsTime(redis: Redis): void {
  /** Commands and pipelines of which nothing is sent any more. */
  const overdue = new WeakSet<object>();
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    readsBeforeTimeout(command);
    // Of a pipeline all are sent, or none: the first of them decides.
    const decides = stream === undefined || command.pipelineIndex === 0;
    if (decides && (command.isSettled || timedOut.has(command))) overdue.add(stream ?? command);
    if (!overdue.has(stream ?? command)) return send(command, stream);
    command.reject(new Error(TIMED_OUT));
    return command.promise;
  };
  redis.on('connect', () => readsBeforeSilence(redis.stream));
}

/** ioredis begins the commands of a Cluster's pipeline anew once all have failed, also where it then sends none of them again. */
const timedOut = new WeakSet<Command>();

function readsBeforeTimeout(command: Command): void {
  // It is being sent again: its time goes on.
  if (Object.hasOwn(command, 'setTimeout')) return;
  let timer: Timer | undefined;
  const settled = (): void => {
    clock.clearTimeout(timer);
    timer = undefined;
  };
  command.setTimeout = (milliseconds) => {
    if (timer !== undefined) return;
    timer = afterReading(() => {
      if (command.isSettled) return;
      timedOut.add(command);
      command.reject(new Error(TIMED_OUT));
    }, milliseconds);
    command.promise.then(settled, settled);
  };
}

function readsBeforeSilence(stream: Redis['stream']): void {
  const destroy = stream.destroy.bind(stream);
  stream.destroy = (error) => {
    if (error?.message.startsWith('Socket timeout.') !== true) return destroy(error);
    const { bytesRead } = stream;
    clock.setImmediate(() => {
      if (stream.bytesRead === bytesRead) destroy(error);
    });
    return stream;
  };
}

/** What ioredis says of a command whose `commandTimeout` is over. */
export const TIMED_OUT = 'Command timed out';
