import { LRUCache } from 'lru-cache';

/** Reads under way, so that one caller's others may wait for the same answer. */
export interface Coalescer {
  /**
   * The answer of a read, from the same one under way where there is one. Failures are not shared: each
   * waiter reads on its own, in the time that it has left.
   *
   * @param caller all that tells who is calling: reads are shared within one credential alone.
   * @param joined called when the answer came from another's read.
   * @param keptMs how long after a read has begun its answer serves others too; 0 for as long as it is under way.
   */
  read<T>(
    caller: string,
    path: string,
    read: () => Promise<T>,
    joined: () => void,
    keptMs?: number,
  ): Promise<T>;
  /** What the caller reads from now on is read afresh: it has changed something, or has been told of a change. */
  forget(caller: string): void;
}

interface Reading {
  readonly startedAt: number;
  readonly answer: Promise<unknown>;
}

/** A read that began longer ago, in milliseconds, is not joined: what it saw may be that old. */
const JOINED_WITHIN_MS = 1_000;
/** Answers that are kept for others, of all callers together. */
const MAX_KEPT = 256;

/** @param now milliseconds of a monotonic clock. */
export function createCoalescer(now: () => number): Coalescer {
  const callers = new Map<string, Map<string, Reading>>();
  const kept = new LRUCache<string, Reading>({ max: MAX_KEPT });

  async function begin<T>(caller: string, path: string, read: () => Promise<T>, keptMs: number): Promise<T> {
    let readings = callers.get(caller);
    if (readings === undefined) {
      readings = new Map();
      callers.set(caller, readings);
    }
    const others = readings;
    const answer = read();
    const reading = { startedAt: now(), answer };
    others.set(path, reading);
    try {
      const got = await answer;
      // What has been forgotten meanwhile is not kept.
      if (keptMs > 0 && others.get(path) === reading) kept.set(`${caller} ${path}`, reading);
      return got;
    } finally {
      if (others.get(path) === reading) others.delete(path);
      if (others.size === 0 && callers.get(caller) === others) callers.delete(caller);
    }
  }

  return {
    async read<T>(
      caller: string,
      path: string,
      read: () => Promise<T>,
      joined: () => void,
      keptMs = 0,
    ): Promise<T> {
      const underWay = callers.get(caller)?.get(path);
      const reading = underWay ?? (keptMs > 0 ? kept.get(`${caller} ${path}`) : undefined);
      const servedMs = underWay === undefined ? keptMs : JOINED_WITHIN_MS;
      if (reading === undefined || now() - reading.startedAt > servedMs) {
        return begin(caller, path, read, keptMs);
      }
      try {
        // What is under way at the same path answers in the same form.
        const answer = (await reading.answer) as T;
        joined();
        return answer;
      } catch {
        return begin(caller, path, read, keptMs);
      }
    },
    forget(caller) {
      callers.delete(caller);
      if (kept.size === 0) return;
      const prefix = `${caller} `;
      for (const key of kept.keys()) if (key.startsWith(prefix)) kept.delete(key);
    },
  };
}
