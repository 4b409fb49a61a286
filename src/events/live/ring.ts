import type { Entry } from '../entry.ts';

/** How much may wait for one follower, or for a feed that reads the log, and how much of the recent past a feed remembers. */
export const QUEUE_LIMIT = { entries: 256, size: 1024 * 1024 } as const;
/** How much of that a follower gets at once, so that its queue has room for entries that come while it reads. */
export const AT_ONCE = { entries: 128, size: 512 * 1024 } as const;

/** Entries that a follower missed: as many as it may get at once, and whether these are all. */
export interface Missed {
  readonly entries: readonly Entry[];
  readonly isComplete: boolean;
}

/** The last entries of an unbroken chain, as many as fit in one follower's queue. */
export class Ring {
  readonly #entries = new Map<string, Entry>();
  #size = 0;

  push(entry: Entry): void {
    this.#entries.set(entry.position, entry);
    this.#size += entry.size;
    for (const [position, oldest] of this.#entries) {
      if (this.#entries.size <= QUEUE_LIMIT.entries && this.#size <= QUEUE_LIMIT.size) break;
      this.#entries.delete(position);
      this.#size -= oldest.size;
    }
  }

  /** True if this very entry, with this link, is among them. */
  holds(entry: Entry): boolean {
    return this.#entries.get(entry.position)?.prev === entry.prev;
  }

  /** Returns the entries after a position, as many as `atOnce` allows; undefined if the ring does not reach back that far. */
  since(position: string, atOnce: typeof AT_ONCE | typeof QUEUE_LIMIT = QUEUE_LIMIT): Missed | undefined {
    const entries = [...this.#entries.values()];
    const known = entries.findLastIndex((entry) => entry.position === position);
    if (known < 0 && entries[0]?.prev !== position) return undefined;
    const missed = entries.slice(known + 1);
    let size = 0;
    const fitting = missed.filter((entry, index) => {
      size += entry.size;
      return index < atOnce.entries && size <= atOnce.size;
    });
    return { entries: fitting, isComplete: fitting.length === missed.length };
  }

  clear(): void {
    this.#entries.clear();
    this.#size = 0;
  }
}
