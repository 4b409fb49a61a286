import { idKey } from '../call/path.ts';

/** A look-up by key. */
export interface Question<T> {
  /** One of the keys of the list's definition. */
  readonly key: keyof T & string;
  readonly value: string;
  /** True for all items with this value, in the order of the list; false for the first alone. */
  readonly all: boolean;
}

/** What values of a key are compared by. */
export const comparable = (value: unknown): unknown => (typeof value === 'string' ? idKey(value) : value);

/**
 * A list in memory, with look-ups by key. It may outlive an operation, and so may its indexes. If several items have the same
 * value of a key, `find` gives the first in the order of the list (docs/assumptions.md, "Lists").
 */
export class Listing<T> {
  readonly items: readonly T[];
  readonly #firsts = new Map<keyof T, ReadonlyMap<unknown, T>>();
  readonly #groups = new Map<keyof T, ReadonlyMap<unknown, readonly T[]>>();

  constructor(items: readonly T[]) {
    this.items = items;
  }

  find(key: keyof T, value: string): T | null {
    let index = this.#firsts.get(key);
    if (index === undefined) {
      const firsts = new Map<unknown, T>();
      // From the last to the first, so that the first stays.
      for (const item of this.items.toReversed()) firsts.set(comparable(item[key]), item);
      this.#firsts.set(key, firsts);
      index = firsts;
    }
    return index.get(idKey(value)) ?? null;
  }

  where(key: keyof T, value: string): readonly T[] {
    let index = this.#groups.get(key);
    if (index === undefined) {
      index = Map.groupBy(this.items, (item) => comparable(item[key]));
      this.#groups.set(key, index);
    }
    return index.get(idKey(value)) ?? [];
  }

  answer({ key, value, all }: Question<T>): readonly T[] {
    if (all) return this.where(key, value);
    const first = this.find(key, value);
    return first === null ? [] : [first];
  }
}
