import { clock } from './clock.ts';
import { Lru } from './lru.ts';

/** Between two log lines of one key, in milliseconds. */
const LINE_EVERY_MS = 60_000;
/** More keys than have lines within that time. */
const MOST_KEYS = 1000;

/**
 * Returns a function that is called each time something happens. It says how often that was since the last line of the key, this time
 * included, where a line is due: once a minute for each key. Undefined where none is.
 */
export function createRareLines(): (key: string) => number | undefined {
  /** By key: when its last line was written, and how often it has happened since. */
  const keys = new Lru<{ loggedAt: number; times: number }>(MOST_KEYS);
  return (key) => {
    const now = clock.monotonic();
    const known = keys.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, times: 0 };
    keys.set(key, known);
    known.times += 1;
    if (now - known.loggedAt < LINE_EVERY_MS) return undefined;
    const { times } = known;
    known.loggedAt = now;
    known.times = 0;
    return times;
  };
}
