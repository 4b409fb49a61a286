import type { AlarmClock } from '../../src/common/alarms.ts';
import { until } from './until.ts';

/** A clock that begins at the real now, and stands still until it is stepped. */
export interface SteppedClock extends AlarmClock {
  /** Resolves once somebody sleeps for exactly so long. */
  asleep(ms: number): Promise<void>;
  /** Lets the time pass of those who do. */
  pass(ms: number): Promise<void>;
}

export function steppedClock(): SteppedClock {
  const sleepers = new Set<{ readonly ms: number; wake(): void }>();
  let now = Date.now();
  const sleeping = (ms: number) => [...sleepers].filter((sleeper) => sleeper.ms === ms);
  const asleep = async (ms: number) => void (await until(() => sleeping(ms).length > 0));
  return {
    now: () => now,
    monotonic: () => now,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        const sleeper = { ms, wake: resolve };
        sleepers.add(sleeper);
        signal.addEventListener('abort', () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
      });
    },
    asleep,
    async pass(ms) {
      await asleep(ms);
      now += ms;
      for (const sleeper of sleeping(ms)) {
        sleepers.delete(sleeper);
        sleeper.wake();
      }
    },
  };
}
