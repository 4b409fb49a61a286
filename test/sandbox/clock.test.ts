import { describe, expect, test } from 'vitest';
import { Clock } from '../../packages/sandbox/src/clock.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { until } from '../helpers/until.ts';

const START = Date.UTC(2026, 0, 1);

describe('the simulated clock', () => {
  test('stands still at speed 0 until it is stepped', async () => {
    const clock = new Clock(0, START, silentLogger);
    clock.start();
    await new Promise((resolve) => setImmediate(resolve));
    expect(clock.now()).toBe(START);
    await clock.advance(1500);
    expect(clock.now()).toBe(START + 1500);
    clock.stop();
  });

  test('goes on from where it is at another speed', async () => {
    const clock = new Clock(1_000_000, START, silentLogger);
    clock.start();
    await until(() => clock.now() > START + 1_000);
    const before = clock.now();
    clock.setSpeed(0);
    const stopped = clock.now();
    expect(stopped).toBeGreaterThanOrEqual(before);
    clock.setSpeed(1_000_000);
    await until(() => clock.now() > stopped);
    clock.stop();
  });

  test('runs on after a step, where it ran before, with what falls due later', async () => {
    const clock = new Clock(1_000_000, START, silentLogger);
    clock.start();
    let isDone = false;
    await clock.advance(1_500);
    const stepped = clock.now();
    expect(stepped).toBeGreaterThanOrEqual(START + 1_500);
    clock.schedule(stepped + 1_000, () => {
      isDone = true;
    });
    await until(() => isDone);
    expect(clock.now()).toBeGreaterThanOrEqual(stepped + 1_000);
    clock.stop();
  });

  test('runs what falls due in the order of times, then of scheduling, each at its own time', async () => {
    const clock = new Clock(0, START, silentLogger);
    const seen: [string, number][] = [];
    const note = (name: string) => () => {
      seen.push([name, clock.now() - START]);
    };
    clock.schedule(START + 30, note('c'));
    clock.schedule(START + 10, note('a'));
    clock.schedule(START + 10, note('b'));
    clock.schedule(START + 31, note('later'));
    await clock.advance(30);
    expect(seen).toEqual([
      ['a', 10],
      ['b', 10],
      ['c', 30],
    ]);
    clock.stop();
  });

  test('a step awaits each task before the next, and runs what tasks schedule within it', async () => {
    const clock = new Clock(0, START, silentLogger);
    const seen: string[] = [];
    clock.schedule(START + 10, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push('slow');
      clock.schedule(clock.now() + 5, () => {
        seen.push('child');
      });
    });
    clock.schedule(START + 20, () => {
      seen.push('second');
    });
    await clock.advance(20);
    expect(seen).toEqual(['slow', 'child', 'second']);
    clock.stop();
  });

  test('a step awaits also what the running clock had begun', async () => {
    const clock = new Clock(1, START, silentLogger);
    clock.start();
    const seen: string[] = [];
    const begun = Promise.withResolvers<void>();
    const delivered = Promise.withResolvers<void>();
    clock.schedule(START, async () => {
      begun.resolve();
      await delivered.promise;
      await new Promise((resolve) => setImmediate(resolve));
      seen.push('delivered');
    });
    await begun.promise;
    clock.schedule(clock.now() + 60_000, () => delivered.resolve());
    await clock.advance(60_000);
    expect(seen).toEqual(['delivered']);
    clock.stop();
  });

  test('two steps at once are made one after the other', async () => {
    const clock = new Clock(0, START, silentLogger);
    await Promise.all([clock.advance(10), clock.advance(20)]);
    expect(clock.now()).toBe(START + 30);
    clock.stop();
  });

  test('what is due already runs at once, also while time stands still', async () => {
    const clock = new Clock(0, START, silentLogger);
    await new Promise<void>((resolve) => clock.schedule(START, resolve));
    clock.stop();
  });

  test('runs by itself faster than real time', async () => {
    const clock = new Clock(100_000, START, silentLogger);
    clock.start();
    await new Promise<void>((resolve) => clock.schedule(START + 3_600_000, resolve));
    expect(clock.now()).toBeGreaterThanOrEqual(START + 3_600_000);
    clock.stop();
  });

  test('a task that fails is logged, and the others run', async () => {
    const logged: unknown[] = [];
    const clock = new Clock(0, START, { ...silentLogger, error: (details) => logged.push(details) });
    const failure = new Error('on purpose');
    clock.schedule(START + 1, () => {
      throw failure;
    });
    const ran: string[] = [];
    clock.schedule(START + 2, () => {
      ran.push('next');
    });
    await clock.advance(2);
    expect(logged).toEqual([{ err: failure }]);
    expect(ran).toEqual(['next']);
    clock.stop();
  });

  test('after stop nothing runs', async () => {
    const clock = new Clock(0, START, silentLogger);
    const ran: string[] = [];
    clock.schedule(START + 1, () => {
      ran.push('late');
    });
    clock.stop();
    await clock.advance(10);
    expect(ran).toEqual([]);
  });
});
