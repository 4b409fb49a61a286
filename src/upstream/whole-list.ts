export type MaybePromise<T> = T | Promise<T>;

/** A list that one operation reads at most once, whole, and looks things up in. */
export interface WholeList<T> {
  all(): Promise<readonly T[]>;
  /**
   * The item whose key is `value`, or null. Once the list has arrived the answer is no promise, so that a hundred rows
   * cost no hundred turns of the microtask queue.
   *
   * @param key names the field looked up by; each is indexed at its first use.
   */
  find(key: keyof T & string, value: string): MaybePromise<T | null>;
}

/** Wraps the one read of a list. A failed read fails every look-up of the operation alike. */
export function createWholeList<T>(read: () => Promise<readonly T[]>): WholeList<T> {
  let pending: Promise<readonly T[]> | undefined;
  let arrived: readonly T[] | undefined;
  const indexes = new Map<string, Map<unknown, T>>();

  const all = (): Promise<readonly T[]> => {
    pending ??= read().then((items) => {
      arrived = items;
      return items;
    });
    return pending;
  };

  const lookUp = (items: readonly T[], key: keyof T & string, value: string): T | null => {
    let index = indexes.get(key);
    if (index === undefined) {
      index = new Map(items.map((item) => [item[key], item]));
      indexes.set(key, index);
    }
    return index.get(value) ?? null;
  };

  return {
    all,
    find(key, value) {
      if (arrived !== undefined) return lookUp(arrived, key, value);
      return all().then((items) => lookUp(items, key, value));
    },
  };
}
