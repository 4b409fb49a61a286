import { clock } from './clock.ts';

/**
 * The longest pause between two, in milliseconds. Each client that reconnects costs its new process about 6 ms of CPU, for
 * the socket, the credential, the subscription and the events that it has missed.
 */
const APART_MS = 10;

/** Returns the pause between two of `count`, in milliseconds. */
export const intervalOf = (count: number, withinMs: number): number => Math.min(APART_MS, withinMs / count);

/**
 * Does something with each item, one after another: 10 ms apart, or closer if that would take longer than `withinMs`. Clients
 * that are sent elsewhere then do not arrive there all at once. Resolves once it is done with all.
 *
 * @param withinMs how long it may take until the last one's turn; 0 for all at once.
 */
export async function stagger<T>(
  items: readonly T[],
  act: (item: T) => unknown,
  withinMs: number,
): Promise<void> {
  const apart = intervalOf(items.length, withinMs);
  await Promise.all(
    items.map(async (item, index) => {
      await clock.sleep(index * apart);
      await act(item);
    }),
  );
}
