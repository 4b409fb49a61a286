import { expect, it } from 'vitest';
import { clock, useClock } from '../../src/common/clock.ts';
import { LogReading, type LogReadingOptions } from '../../src/operation/log-reading.ts';

const HOUR = 3_600_000;

function reading(given: Partial<LogReadingOptions> = {}) {
  const left = new AbortController();
  const deadline = Date.now() + HOUR;
  const log = new LogReading({
    turn: () => undefined,
    deadline: () => deadline,
    signal: left.signal,
    ...given,
  });
  return { log, left };
}

it('gives so many events, whole reads and owners, and no more', () => {
  const { log } = reading();
  expect([log.take(9_999), log.take(5), log.take(1)]).toEqual([9_999, 1, 0]);
  log.putBack(3);
  expect(log.take(10)).toBe(3);
  expect(Array.from({ length: 5 }, () => log.beginWholeRead())).toEqual([true, true, true, true, false]);
  expect(Array.from({ length: 251 }, () => log.mayAskOwner()).filter(Boolean)).toHaveLength(250);
});

it('is over at the deadline of the moment', () => {
  let deadline = Date.now() - 1;
  const { log } = reading({ deadline: () => deadline });
  expect(log.isOver).toBe(true);
  deadline += HOUR;
  expect(log.isOver).toBe(false);
});

it('begins no batch for one who has left, before its turn or while it waits for it', async () => {
  const turn = Promise.withResolvers<void>();
  const { log, left } = reading({ turn: () => turn.promise });
  const waiting = log.turn();
  left.abort();
  turn.resolve();
  await expect(waiting).rejects.toThrow('aborted');
  expect(() => log.turn()).toThrow('aborted');
});

it('waits for work until it is done, the time is over, or nobody waits any more', async () => {
  const { log, left } = reading();
  expect(await log.inTime(Promise.resolve('done'))).toBe('done');
  await expect(log.inTime(Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  const never = new Promise<never>(() => undefined);
  expect(await reading({ deadline: () => Date.now() }).log.inTime(never)).toBeUndefined();
  const waiting = log.inTime(never);
  left.abort();
  expect(await waiting).toBeUndefined();
});

it('waits for the end of its time no longer than for the work', async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const system = clock;
  const putBack = useClock({
    ...system,
    sleep: (ms, options) => {
      signals.push(options?.signal);
      return system.sleep(ms, options);
    },
  });
  try {
    expect(await reading().log.inTime(Promise.resolve('done'))).toBe('done');
  } finally {
    putBack();
  }
  expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
});
