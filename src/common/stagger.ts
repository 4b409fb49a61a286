import { setTimeout as sleep } from 'node:timers/promises';

const APART_MS = 5;
const LONGEST_MS = 3_000;

/**
 * Does something with each, one after another: 5 ms apart, or closer where that would take over 3 s. Who is sent elsewhere
 * should not arrive there together with all others. Resolves once it is done with all.
 */
export async function stagger<T>(items: readonly T[], act: (item: T) => unknown): Promise<void> {
  const apart = Math.min(APART_MS, LONGEST_MS / items.length);
  await Promise.all(
    items.map(async (item, index) => {
      await sleep(index * apart);
      await act(item);
    }),
  );
}
