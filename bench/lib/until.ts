import { setTimeout as pause } from 'node:timers/promises';

/** Resolves once the condition holds; rejects when it does not within the time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
  what = 'a condition',
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}.`);
    await pause(1);
  }
}
