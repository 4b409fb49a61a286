import { vi } from 'vitest';

/** Time that stands still until a test moves it: the machine's, that of timers, and what lru-cache measures by. */
export interface StillTime extends Disposable {
  /** Lets so many milliseconds pass. */
  pass(ms: number): Promise<void>;
}

export function stillTime(): StillTime {
  const began = performance.now();
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
  const start = Date.now();
  const measured = vi.spyOn(performance, 'now').mockImplementation(() => began + Date.now() - start);
  return {
    pass: async (ms) => void (await vi.advanceTimersByTimeAsync(ms)),
    [Symbol.dispose]() {
      measured.mockRestore();
      vi.useRealTimers();
    },
  };
}
