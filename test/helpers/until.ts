import { setTimeout as pause } from 'node:timers/promises';

/** After this time a condition that does not hold is told, in milliseconds: a test that times out does not say where. */
const TOLD_AFTER_MS = 100_000;

/** Resolves with the first result that is neither false nor undefined. Asks again until the test itself times out. */
export async function until<T>(condition: () => T | Promise<T>): Promise<Exclude<T, false | undefined>> {
  const { stack } = new Error(`still waiting until ${condition}`);
  const began = performance.now();
  let told = false;
  for (;;) {
    const result = await condition();
    // The comparison has just excluded these two.
    if (result !== false && result !== undefined) return result as Exclude<T, false | undefined>;
    if (!told && performance.now() - began > TOLD_AFTER_MS) {
      told = true;
      console.warn(stack);
    }
    await pause(10);
  }
}
