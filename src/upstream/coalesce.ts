/** Reads under way, so that one caller's others may wait for the same answer. */
export interface Coalescer {
  /**
   * The answer of a read, from the same one under way where there is one. Failures are not shared: each
   * waiter reads on its own, in the time that it has left.
   *
   * @param caller all that tells who is calling: reads are shared within one credential alone.
   * @param joined called when the answer came from another's read.
   */
  read<T>(caller: string, path: string, read: () => Promise<T>, joined: () => void): Promise<T>;
  /** What the caller reads from now on is read afresh: it has changed something, or has been told of a change. */
  forget(caller: string): void;
}

interface Reading {
  readonly startedAt: number;
  readonly answer: Promise<unknown>;
}

/** A read that began longer ago, in milliseconds, is not joined: what it saw may be that old. */
const JOINED_WITHIN_MS = 1_000;

/** @param now milliseconds of a monotonic clock. */
export function createCoalescer(now: () => number): Coalescer {
  const callers = new Map<string, Map<string, Reading>>();

  async function begin<T>(caller: string, path: string, read: () => Promise<T>): Promise<T> {
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
      return await answer;
    } finally {
      if (others.get(path) === reading) others.delete(path);
      if (others.size === 0 && callers.get(caller) === others) callers.delete(caller);
    }
  }

  return {
    async read<T>(caller: string, path: string, read: () => Promise<T>, joined: () => void): Promise<T> {
      const reading = callers.get(caller)?.get(path);
      if (reading === undefined || now() - reading.startedAt > JOINED_WITHIN_MS) {
        return begin(caller, path, read);
      }
      try {
        // What is under way at the same path answers in the same form.
        const answer = (await reading.answer) as T;
        joined();
        return answer;
      } catch {
        return begin(caller, path, read);
      }
    },
    forget(caller) {
      callers.delete(caller);
    },
  };
}
