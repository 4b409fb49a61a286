import { clock } from './clock.ts';
import { URGENCIES, type Urgency } from './turns.ts';

/** For whom an operation or a call is made. Each requester has a fair share of what can be done at once. */
export interface Requester {
  /** One credential, person or address: those with the same have the share of one. */
  readonly caller: string;
  /** All that stand for the same client or customer. Together they have a share as well, however many they are. */
  readonly group: string;
}

/** One who waits for a result. */
export interface Waiter {
  readonly requester: Requester;
  readonly urgency: Urgency;
  /** Until when it is waited for, in milliseconds since the epoch. */
  readonly deadline: number;
}

/** Told of a party's changes. */
export interface PartyWatcher {
  joined?(waiter: Waiter): void;
  left(waiter: Waiter): void;
}

/**
 * All who wait for one result. What is done for them is as pressing as the most pressing of those who
 * are still there, and stands wherever one of them would stand alone.
 */
export class Party {
  readonly #waiters = new Set<Waiter>();
  /** Most calls have nobody that watches. */
  #watchers: Set<PartyWatcher> | undefined;

  /** @param first the one for whom it is begun. */
  constructor(first?: Waiter) {
    if (first !== undefined) this.#waiters.add(first);
  }

  /** Those who are there. */
  get waiters(): ReadonlySet<Waiter> {
    return this.#waiters;
  }

  /** Whether nobody waits any more. */
  get isGone(): boolean {
    return this.#waiters.size === 0;
  }

  /** Until when the last of them waits, in milliseconds since the epoch. */
  get deadline(): number {
    let latest = 0;
    for (const { deadline } of this.#waiters) if (deadline > latest) latest = deadline;
    return latest;
  }

  /** That of the most pressing. */
  get urgency(): Urgency {
    const present = URGENCIES.find((one) => this.#waiters.values().some(({ urgency }) => urgency === one));
    return present ?? 'arrivals';
  }

  /** @returns the waiter by which to leave. */
  join(waiter: Waiter): Waiter {
    const own = { ...waiter };
    this.#waiters.add(own);
    if (this.#watchers !== undefined) for (const watcher of this.#watchers) watcher.joined?.(own);
    return own;
  }

  leave(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return;
    if (this.#watchers !== undefined) for (const watcher of this.#watchers) watcher.left(waiter);
  }

  /** @returns ends the watching. */
  watch(watcher: PartyWatcher): () => void {
    const watchers = this.#watchers ?? new Set();
    this.#watchers = watchers;
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }

  /** Resolves after so many milliseconds, or once nobody is there any more. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.isGone) {
        resolve();
        return;
      }
      const end = (): void => {
        clock.clearTimeout(timer);
        unwatch();
        resolve();
      };
      const timer = clock.setTimeout(end, ms);
      const unwatch = this.watch({ left: () => this.isGone && end() });
    });
  }
}
