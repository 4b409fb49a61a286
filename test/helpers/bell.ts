import type { AlarmClock } from '../../src/common/alarms.ts';

/** A clock that stands still until it is told how much time passes, for one who sleeps at a time. */
export interface Bell extends AlarmClock {
  /** Whether nobody sleeps. */
  readonly isIdle: boolean;
  /** Wakes the sleeper each time that its sleep is over within this time, in milliseconds. */
  pass(ms: number): Promise<void>;
}

export function bell(): Bell {
  let now = 0;
  let sleeper: { readonly due: number; wake(): void } | undefined;
  return {
    now: () => now,
    monotonic: () => now,
    get isIdle() {
      return sleeper === undefined;
    },
    sleep: (ms, signal) =>
      new Promise<void>((wake, reject) => {
        const own = { due: now + ms, wake };
        sleeper = own;
        signal.addEventListener('abort', () => {
          if (sleeper === own) sleeper = undefined;
          reject(signal.reason);
        });
      }),
    async pass(ms) {
      const end = now + ms;
      while (sleeper !== undefined && sleeper.due <= end) {
        const { due, wake } = sleeper;
        sleeper = undefined;
        now = due;
        wake();
        await new Promise((resolve) => setImmediate(resolve));
      }
      now = end;
    },
  };
}
