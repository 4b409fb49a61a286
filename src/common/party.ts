import { clock } from './clock.ts';
import { URGENCIES, type Urgency } from './turns.ts';

/** The caller for which the gateway runs an operation or a REST call. Seats are shared fairly between requesters. */
export interface Requester {
  /** One credential, person or address. All requests with the same one have a single share together. */
  readonly caller: string;
  /**
   * The client, the customer, or the subject of a token that acts for the whole client (operation/caller-keys.ts). All its requesters
   * together have a share as well, however many there are.
   */
  readonly group: string;
  /** Those whose failing calls the breaker counts together with its own; its group where undefined. */
  readonly failureDomain?: string | undefined;
}

/** The group of all callers of one client. */
export const clientGroup = (clientId: string): string => `client ${clientId}`;

/** A call that waits for a result. */
export interface Waiter {
  readonly requester: Requester;
  readonly urgency: Urgency;
  /** When the waiter gives up, in milliseconds since the epoch. */
  readonly deadline: number;
}

/** Called when a party changes. */
export interface PartyWatcher {
  joined?(waiter: Waiter): void;
  left(waiter: Waiter): void;
}

/**
 * All waiters of one result. The work for them has the urgency of the most urgent waiter that is still there. It waits in the
 * queue of each waiter, and starts at the first turn that any of them gets.
 */
export class Party {
  readonly #waiters = new Set<Waiter>();
  /** Undefined until somebody watches, since most calls have no watcher. */
  #watchers: Set<PartyWatcher> | undefined;

  /** @param first the waiter for which it is begun. */
  constructor(first?: Waiter) {
    if (first !== undefined) this.#waiters.add(first);
  }

  /** The waiters that have not left. */
  get waiters(): ReadonlySet<Waiter> {
    return this.#waiters;
  }

  /** True if nobody waits any more. */
  get isGone(): boolean {
    return this.#waiters.size === 0;
  }

  /** When the last of them gives up, in milliseconds since the epoch. */
  get deadline(): number {
    let latest = 0;
    for (const { deadline } of this.#waiters) if (deadline > latest) latest = deadline;
    return latest;
  }

  /** The urgency of the most urgent waiter. */
  get urgency(): Urgency {
    const present = URGENCIES.find((one) => this.#waiters.values().some(({ urgency }) => urgency === one));
    return present ?? 'arrivals';
  }

  /** @returns the waiter to pass to `leave`. */
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

  /** @returns a function that ends the watching. */
  watch(watcher: PartyWatcher): () => void {
    const watchers = this.#watchers ?? new Set();
    this.#watchers = watchers;
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }

  /** Resolves after `ms` milliseconds, or once nobody waits any more, or once `earlier` has resolved. */
  pause(ms: number, earlier?: Promise<unknown>): Promise<void> {
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
      void earlier?.then(end);
    });
  }
}
