import type { Entry } from '../entry.ts';
import { QUEUE_LIMIT } from './ring.ts';

/** Entries that arrive while a feed reads the log: as many as may wait for one follower. */
export class Backlog {
  #entries: Entry[] = [];
  #size = 0;

  /** How many wait. */
  get count(): number {
    return this.#entries.length;
  }

  /** Returns false where an entry has no room; the feed finds it in the log. */
  add(entry: Entry): boolean {
    if (this.count >= QUEUE_LIMIT.entries || this.#size + entry.size > QUEUE_LIMIT.size) return false;
    this.#entries.push(entry);
    this.#size += entry.size;
    return true;
  }

  takeAll(): readonly Entry[] {
    this.#size = 0;
    return this.#entries.splice(0);
  }
}
