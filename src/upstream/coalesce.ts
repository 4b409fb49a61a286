import { LRUCache } from 'lru-cache';
import { type Flight, SingleFlight } from '../common/single-flight.ts';

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

/** A read that began longer ago, in milliseconds, is not joined: what it saw may be that old. */
const JOINED_WITHIN_MS = 1_000;
/** Answers that are kept for others, of all callers together. */
const MAX_KEPT = 256;

/** @param now milliseconds of a monotonic clock. */
export function createCoalescer(now: () => number): Coalescer {
  const reads = new SingleFlight<unknown>({ now, joinedWithinMs: JOINED_WITHIN_MS });
  const kept = new LRUCache<string, Flight<unknown>>({ max: MAX_KEPT });

  function begin<T>(caller: string, path: string, read: () => Promise<T>, keptMs: number): Promise<T> {
    const keep = (got: T): T => {
      // What has been forgotten meanwhile is not kept.
      if (reads.isCurrent(caller, path, flight)) kept.set(`${caller} ${path}`, flight);
      return got;
    };
    const answer = keptMs === 0 ? read() : read().then(keep);
    const flight = reads.begin(caller, path, answer, undefined);
    return answer;
  }

  function keptFor(keptMs: number, caller: string, path: string): Flight<unknown> | undefined {
    if (keptMs === 0) return undefined;
    const flight = kept.get(`${caller} ${path}`);
    return flight !== undefined && now() - flight.startedAt <= keptMs ? flight : undefined;
  }

  return {
    async read<T>(
      caller: string,
      path: string,
      read: () => Promise<T>,
      joined: () => void,
      keptMs = 0,
    ): Promise<T> {
      const flight = reads.underWay(caller, path) ?? keptFor(keptMs, caller, path);
      if (flight === undefined) return begin(caller, path, read, keptMs);
      try {
        // What is under way at the same path answers in the same form.
        const answer = (await flight.result) as T;
        joined();
        return answer;
      } catch {
        return begin(caller, path, read, keptMs);
      }
    },
    forget(caller) {
      reads.forget(caller);
      if (kept.size === 0) return;
      const prefix = `${caller} `;
      for (const key of kept.keys()) if (key.startsWith(prefix)) kept.delete(key);
    },
  };
}
