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

/** What a store holds once an item has been added. An event that it holds already, saved by another tab, is not added twice. */
export function added<Event>(
  saved: Saved<Event> | undefined | null,
  item: Event | Gap<Event> | undefined,
  cursor: string,
  kept: number = KEPT,
): Saved<Event> {
  const before = saved?.events ?? [];
  if (item === undefined) return { cursor, events: before };
  if (isGap(item) && item.events !== undefined) return { cursor, events: item.events.slice(-kept) };
  const isKnown = before.some((event) => (event as { readonly cursor?: string }).cursor === cursor);
  return { cursor, events: isKnown && !isGap(item) ? before : [...before, item].slice(-kept) };
}

/** Keeps a feed for as long as the app runs. */
export function memoryStore<Event>(kept?: number): Store<Event> {
  let saved: Saved<Event> | undefined;
  return {
    load: () => saved,
    save(item, cursor) {
      saved = added(saved, item, cursor, kept);
    },
  };
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
  const { read, change } = slot<Saved<Event>>(storage, key);
  return {
    load: read,
    save: (item, cursor) => change((saved) => added(saved, item, cursor, kept)),
  };
}
