/** A place in the feed at which events are missing, or may be: what the list held before is not to be built upon. */
export interface Gap<Event = unknown> {
  readonly gap: true;
  /**
   * `EVENTS_GAP`: the log no longer holds everything since the last event. `CURSOR_INVALID`: the log is another one.
   * `FIRST_START`: this device has seen nothing yet; told only where `getState` is given.
   */
  readonly reason: 'EVENTS_GAP' | 'CURSOR_INVALID' | 'FIRST_START';
  /** Where the feed goes on. */
  readonly cursor: string;
  /** The list loaded afresh by `getState`, oldest first. */
  readonly events?: readonly Event[];
}

/** Tells a gap from an event. */
export const isGap = <Event>(item: Event | Gap<Event>): item is Gap<Event> =>
  typeof item === 'object' && item !== null && (item as Partial<Gap>).gap === true;

/** What a store holds. */
export interface Saved<Event> {
  /** The place in the log that `events` reach to. */
  readonly cursor: string;
  /** Oldest first. A store of your own may leave it out where the app reads its list elsewhere. */
  readonly events?: readonly (Event | Gap<Event>)[] | undefined;
}

/**
 * Where a feed keeps its place. `save` writes event and cursor together, as one value or in one transaction: then it does
 * not matter when the app ends.
 */
export interface Store<Event> {
  load(): Saved<Event> | undefined | null | Promise<Saved<Event> | undefined | null>;
  /** @param event undefined where the feed begins without one */
  save(event: Event | Gap<Event> | undefined, cursor: string): void | Promise<void>;
}

/** How many events the stores of this package keep, unless told otherwise. */
const KEPT = 200;

/** What a store of this package holds: besides, how many items it has been given in all, by which tabs tell who is behind. */
export interface Counted<Event> extends Saved<Event> {
  readonly count?: number;
}

/**
 * What a store holds once an item has been added; `saved` itself where another tab has been quicker, so that nothing moves back.
 *
 * @param count how many items the store held when the feed that adds this one stood where it stands; undefined where it has
 *   begun with an empty store
 */
function added<Event>(
  saved: Counted<Event> | undefined | null,
  item: Event | Gap<Event> | undefined,
  cursor: string,
  kept: number,
  count: number | undefined,
): Counted<Event> {
  const { events: before = [], count: now = 0 } = saved ?? {};
  if (
    saved &&
    (count === undefined ||
      now > count ||
      (item !== undefined && !isGap(item) && before.some((one) => cursorOf(one) === cursor)))
  )
    return saved;
  if (item === undefined) return { cursor, events: before, count: now };
  if (!isGap(item)) return { cursor, events: [...before, item].slice(-kept), count: now + 1 };
  // A tab that has not met the gap stands elsewhere in the log: it never counts so far.
  return { cursor, events: item.events?.slice(-kept) ?? joined(before, item, kept), count: now + GAP };
}

/** A list with a gap at its end. A gap that follows a gap is the same one. */
const joined = <Item>(before: readonly Item[], gap: Item, kept: number): readonly Item[] =>
  [...(isGap(before.at(-1)) ? before.slice(0, -1) : before), gap].slice(-kept);

const GAP = 1e9;

/** The place of an event in the log. */
export const cursorOf = (event: unknown): string => (event as { readonly cursor: string }).cursor;

/** A store over anything that changes one value in one step. */
export function countedStore<Event>(
  load: () => Promise<Counted<Event> | undefined>,
  change: (change: (saved: Counted<Event> | undefined) => Counted<Event>) => Promise<void>,
  kept: number = KEPT,
): Store<Event> {
  /** Where the feed of this store stands: one that has not loaded it is behind nobody. */
  let count: number | undefined = Number.POSITIVE_INFINITY;
  return {
    async load() {
      const saved = await load();
      count = saved && (saved.count ?? 0);
      return saved && { cursor: saved.cursor, events: saved.events };
    },
    async save(item, cursor) {
      let before = count;
      try {
        await change((saved) => {
          before = count;
          const next = added(saved, item, cursor, kept, count);
          count = (count ?? 0) + (item === undefined ? 0 : isGap(item) ? GAP : 1);
          return next;
        });
      } catch (cause) {
        count = before;
        throw cause;
      }
    },
  };
}

/** Keeps a feed for as long as the app runs. */
export function memoryStore<Event>(kept?: number): Store<Event> {
  let saved: Counted<Event> | undefined;
  return countedStore(
    async () => saved,
    async (change) => {
      saved = change(saved);
    },
    kept,
  );
}

/** What `localStorage`, React Native's AsyncStorage and many others have in common. */
export interface KeyValues {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): unknown;
}

/** What a page has of the Web Locks API, which its other tabs respect as well. */
interface Locks {
  request(name: string, work: () => Promise<void>): Promise<void>;
}

/** By storage and key: what this process writes there, one change after another. */
const turns = new WeakMap<KeyValues, Map<string, Promise<unknown>>>();

/** Does one thing at a time for each key of a storage: in all tabs where there are Web Locks, otherwise in this process. */
function alone(storage: KeyValues, key: string, work: () => Promise<void>): Promise<void> {
  const ours = turns.get(storage) ?? new Map<string, Promise<unknown>>();
  turns.set(storage, ours);
  const { locks } = (globalThis.navigator ?? {}) as { readonly locks?: Locks };
  const mine = (ours.get(key) ?? Promise.resolve()).then(() =>
    locks === undefined ? work() : locks.request(`pasarela ${key}`, work),
  );
  ours.set(
    key,
    mine.catch(() => undefined),
  );
  return mine;
}

/** Reads and writes one value of a key-value storage. */
export function slot<Value>(storage: KeyValues, key: string) {
  const read = async (): Promise<Value | undefined> => {
    const text = await storage.getItem(key);
    // Nobody else writes under this key.
    return text === null ? undefined : (JSON.parse(text) as Value);
  };
  return {
    read,
    /** Reads, and writes what `change` makes of that unless it is undefined; nobody writes in between. */
    change: (change: (value: Value | undefined) => Value | undefined): Promise<void> =>
      alone(storage, key, async () => {
        const value = change(await read());
        if (value !== undefined) await storage.setItem(key, JSON.stringify(value));
      }),
  };
}

/** Keeps a feed as one value of a storage: `keyValueStore(localStorage, 'money-in')`, or React Native's AsyncStorage. */
export function keyValueStore<Event>(storage: KeyValues, key: string, kept?: number): Store<Event> {
  const { read, change } = slot<Counted<Event>>(storage, key);
  return countedStore(read, change, kept);
}
