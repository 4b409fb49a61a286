import { clock } from './clock.ts';
import { URGENCIES, type Urgency } from './turns.ts';

/** Whose something is, for a fair share of what can be done at once. */
export interface Owner {
  /** One credential, person or address: those with the same have the share of one. */
  readonly caller: string;
  /** All that stand for the same client or customer. Together they have a share as well, however many they are. */
  readonly group: string;
}

/** Where somebody waits for a result. */
export interface Place {
  readonly owner: Owner;
  readonly urgency: Urgency;
  /** Until when it is waited for, in milliseconds since the epoch. */
  readonly deadline: number;
}

/** Told of a party's changes. */
export interface PartyWatcher {
  joined?(place: Place): void;
  left(place: Place): void;
}

/**
 * All who wait for one result. Each has a place of its own: what is done for them is as pressing as the most pressing of those who
 * are still there, and stands wherever one of them would stand alone.
 */
export class Party {
  readonly #places = new Set<Place>();
  readonly #watchers = new Set<PartyWatcher>();

  /** @param first place of the one for whom it is begun. */
  constructor(first?: Place) {
    if (first !== undefined) this.#places.add(first);
  }

  /** Those who are there. */
  get places(): ReadonlySet<Place> {
    return this.#places;
  }

  /** Whether nobody waits any more. */
  get isGone(): boolean {
    return this.#places.size === 0;
  }

  /** Until when the last of them waits, in milliseconds since the epoch. */
  get deadline(): number {
    let latest = 0;
    for (const { deadline } of this.#places) if (deadline > latest) latest = deadline;
    return latest;
  }

  /** That of the most pressing. */
  get urgency(): Urgency {
    const present = URGENCIES.find((one) => this.#places.values().some(({ urgency }) => urgency === one));
    return present ?? 'arrivals';
  }

  /** @returns the place taken, with which to leave. */
  join(place: Place): Place {
    const own = { ...place };
    this.#places.add(own);
    for (const watcher of this.#watchers) watcher.joined?.(own);
    return own;
  }

  leave(place: Place): void {
    if (!this.#places.delete(place)) return;
    for (const watcher of this.#watchers) watcher.left(place);
  }

  /** @returns ends the watching. */
  watch(watcher: PartyWatcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
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
