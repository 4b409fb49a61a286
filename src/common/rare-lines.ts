import { clock } from './clock.ts';
import { Lru } from './lru.ts';

/** Between two log lines of one key, in milliseconds. */
const LINE_EVERY_MS = 60_000;
/** More keys than have lines within that time. */
const MOST_KEYS = 1000;

/** Returns a function that is called each time something happens. It says whether a line of the key is due: once a minute. */
export function createRareLines(): (key: string) => boolean {
  /** When the last line of each key was written. */
  const written = new Lru<number>(MOST_KEYS);
  return (key) => {
    const now = clock.monotonic();
    if (now - (written.get(key) ?? Number.NEGATIVE_INFINITY) < LINE_EVERY_MS) return false;
    written.set(key, now);
    return true;
  };
}

/** Writes a line that says how often something has happened since the last line of its key. */
type WriteLine = (times: number) => void;

/**
 * Returns a function that is called each time something happens. It writes a line of the key at once, and counts for a minute then. What
 * has happened in that minute is one line at its end, by the `write` that was given last; a process that ends before writes none.
 */
export function createCountedLines(): (key: string, write: WriteLine) => void {
  /** By key: what has happened since its last line, which is less than a minute old. */
  const counting = new Lru<{ times: number; write: WriteLine }>(MOST_KEYS);
  const begin = (key: string, write: WriteLine): void => {
    const since = { times: 0, write };
    counting.set(key, since);
    const end = (): void => {
      const isKept = counting.peek(key) === since;
      if (isKept) counting.delete(key);
      if (since.times === 0) return;
      if (isKept) begin(key, since.write);
      since.write(since.times);
    };
    clock.setTimeout(end, LINE_EVERY_MS).unref();
  };
  return (key, write) => {
    const since = counting.get(key);
    if (since === undefined) {
      begin(key, write);
      write(1);
    } else {
      since.times += 1;
      since.write = write;
    }
  };
}
