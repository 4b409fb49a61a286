import { setTimeout as pause } from 'node:timers/promises';

/** Resolves with the first result that is neither false nor undefined. Asks again until the test itself times out. */
export async function until<T>(condition: () => T | Promise<T>): Promise<Exclude<T, false | undefined>> {
  for (;;) {
    const result = await condition();
    // The comparison has just excluded these two.
    if (result !== false && result !== undefined) return result as Exclude<T, false | undefined>;
    await pause(10);
  }
}
