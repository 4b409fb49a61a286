import type { MaybePromise } from '../../common/maybe-promise.ts';

/** A list that one operation reads at most once, whole, and looks things up in. */
export interface WholeListLoader<T> {
  all(): Promise<readonly T[]>;
  /** Begins to read, before anybody asks; resolves once the list has arrived. */
  begin(): Promise<unknown>;
  /**
   * The item whose key is `value`, or null. Once the list has arrived the answer is no promise, so that a hundred rows
   * cost no hundred turns of the microtask queue.
   *
   * @param key names the field looked up by; each is indexed at its first use.
   */
  find(key: keyof T & string, value: string): MaybePromise<T | null>;
  /** All items whose key is `value`, in the order of the list; like `find` in all else. */
  where(key: keyof T & string, value: string): MaybePromise<readonly T[]>;
  /** How many questions it has answered so far. */
  lookUps(): number;
}

/**
 * Items to look things up in. It may outlive an operation, and its indexes with it. Where several items have the same value of
 * a key, `find` gives the first in the order of the list (docs/assumptions.md, "Lists").
 */
export class Listing<T> {
  readonly items: readonly T[];
  readonly #single = new Map<keyof T, ReadonlyMap<unknown, T>>();
  readonly #grouped = new Map<keyof T, ReadonlyMap<unknown, readonly T[]>>();

  constructor(items: readonly T[]) {
    this.items = items;
  }

  find(key: keyof T, value: string): T | null {
    let index = this.#single.get(key);
    if (index === undefined) {
      index = firstBy(this.items, key);
      this.#single.set(key, index);
    }
    return index.get(value) ?? null;
  }

  where(key: keyof T, value: string): readonly T[] {
    let index = this.#grouped.get(key);
    if (index === undefined) {
      index = Map.groupBy(this.items, (item) => item[key]);
      this.#grouped.set(key, index);
    }
    return index.get(value) ?? [];
  }
}

/** The first item of each value of a key. A loop: lists of a hundred items are indexed for most operations. */
function firstBy<T>(items: readonly T[], key: keyof T): ReadonlyMap<unknown, T> {
  const index = new Map<unknown, T>();
  for (const item of items) {
    const value = item[key];
    if (!index.has(value)) index.set(value, item);
  }
  return index;
}

/** Wraps the one read of a list. A failed read fails every look-up of the operation alike. */
export function createWholeListLoader<T>(read: () => Promise<Listing<T>>): WholeListLoader<T> {
  let pending: Promise<Listing<T>> | undefined;
  let arrived: Listing<T> | undefined;
  let lookUps = 0;

  const arrive = (): Promise<Listing<T>> => {
    pending ??= read().then((listing) => {
      arrived = listing;
      return listing;
    });
    return pending;
  };

  return {
    begin: arrive,
    async all() {
      lookUps += 1;
      return (await arrive()).items;
    },
    find(key, value) {
      lookUps += 1;
      return arrived === undefined
        ? arrive().then((list) => list.find(key, value))
        : arrived.find(key, value);
    },
    where(key, value) {
      lookUps += 1;
      return arrived === undefined
        ? arrive().then((list) => list.where(key, value))
        : arrived.where(key, value);
    },
    lookUps: () => lookUps,
  };
}
