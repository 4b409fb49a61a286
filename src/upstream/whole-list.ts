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
  /** All items whose key is `value`, in the order of the list; like `find` in all else. */
  where(key: keyof T & string, value: string): MaybePromise<readonly T[]>;
}

/** Wraps the one read of a list. A failed read fails every look-up of the operation alike. */
export function createWholeList<T>(read: () => Promise<readonly T[]>): WholeList<T> {
  let pending: Promise<readonly T[]> | undefined;
  let arrived: readonly T[] | undefined;

  const all = (): Promise<readonly T[]> => {
    pending ??= read().then((items) => {
      arrived = items;
      return items;
    });
    return pending;
  };
  const lookUp = <R>(answer: (items: readonly T[]) => R): MaybePromise<R> =>
    arrived === undefined ? all().then(answer) : answer(arrived);

  return {
    all,
    find: (key, value) => lookUp((items) => indexOf(items, 'one', key, byKey).get(value) ?? null),
    where: (key, value) => lookUp((items) => indexOf(items, 'many', key, groupedByKey).get(value) ?? []),
  };
}

/** A list outlives an operation where it is cached, and its indexes with it. */
const indexes = new WeakMap<readonly unknown[], Map<string, ReadonlyMap<unknown, unknown>>>();

const byKey = <T>(items: readonly T[], key: keyof T): ReadonlyMap<unknown, T> =>
  new Map(items.map((item) => [item[key], item]));

const groupedByKey = <T>(items: readonly T[], key: keyof T): ReadonlyMap<unknown, readonly T[]> =>
  Map.groupBy(items, (item) => item[key]);

function indexOf<T, V>(
  items: readonly T[],
  kind: 'one' | 'many',
  key: keyof T & string,
  build: (items: readonly T[], key: keyof T) => ReadonlyMap<unknown, V>,
): ReadonlyMap<unknown, V> {
  let known = indexes.get(items);
  if (known === undefined) {
    known = new Map();
    indexes.set(items, known);
  }
  const name = `${kind} ${key}`;
  let index = known.get(name);
  if (index === undefined) {
    index = build(items, key);
    known.set(name, index);
  }
  // What is kept under these items and this name has been built as this very kind.
  return index as ReadonlyMap<unknown, V>;
}
