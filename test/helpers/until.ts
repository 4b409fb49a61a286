import { setTimeout as pause } from 'node:timers/promises';

/** A condition that has not held for so long is told, in milliseconds: a test that times out does not say where. */
const TOLD_AFTER_MS = 100_000;

interface Wait {
  readonly began: number;
  readonly stack: string;
}

const waits = new Set<Wait>();

/** Resolves with the first result that is neither false nor undefined. Asks again until the test itself times out. */
export async function until<T>(condition: () => T | Promise<T>): Promise<Exclude<T, false | undefined>> {
  const wait: Wait = {
    began: performance.now(),
    stack: String(new Error(`still waiting until ${condition}`).stack),
  };
  waits.add(wait);
  try {
    for (;;) {
      const result = await condition();
      // The comparison has just excluded these two.
      if (result !== false && result !== undefined) return result as Exclude<T, false | undefined>;
      await pause(10);
    }
  } finally {
    waits.delete(wait);
  }
}

/** What `until` waits for since long, where it was called. Forgets it: the next test is not told of it. */
export function longWaits(): readonly string[] {
  const now = performance.now();
  const long = [...waits].filter(({ began }) => now - began > TOLD_AFTER_MS);
  for (const wait of long) waits.delete(wait);
  return long.map(({ stack }) => stack);
}
