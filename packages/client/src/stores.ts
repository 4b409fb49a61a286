import { inTurn, type Locks, tabTurns } from './turns.ts';

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
  (item as Partial<Gap> | undefined | null)?.gap === true;

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

/** Where the feed of a store stands. Cursors have no order that can be seen: all that is known of a place is who has been there. */
interface Stand {
  /** The cursor of the last stored item that this feed has been at itself. */
  last?: string | undefined;
  /** The last stored place that it has been at itself. */
  place?: string | undefined;
  /** The place of another tab that stood there when this feed had its last bookmark. */
  other?: string | undefined;
}

const standAt = (saved: Saved<unknown> | undefined): Stand => ({
  last: saved?.events?.map(cursorOf).at(-1),
  place: saved?.cursor,
  other: undefined,
});

/**
 * What a store holds once an item has been added. What it held stays where another tab has been quicker, so that nothing moves
 * back.
 *
 * @param item undefined for a bookmark: all up to there has been saved
 * @param stand where the feed stands that adds it, and, once this returns, where it stands then
 */
function added<Event>(
  saved: Saved<Event> | undefined | null,
  item: Event | Gap<Event> | undefined,
  cursor: string,
  kept: number,
  stand: Stand,
): Saved<Event> {
  const { events = [], cursor: place } = saved ?? {};
  const stored = events.map(cursorOf);
  const last = stored.at(-1);
  const isBookmark = item === undefined;
  const isEvent = !isBookmark && !isGap(item);
  let next = item;
  if (saved) {
    const isAt = place === cursor;
    const at = stored.lastIndexOf(cursor);
    if (isAt && !isGap(item)) stand.place = cursor;
    if (isEvent && at >= 0) {
      // It is stored already, which tells where that is, whatever another tab has met in between.
      if (at > stored.lastIndexOf(stand.last ?? '')) stand.last = cursor;
      return saved;
    }
    if (isBookmark && isAt) stand.last = last;
    const isBehind = last !== stand.last;
    // An event is behind every bookmark that is stored behind the same last item.
    if ((!isGap(item) && isBehind) || (!isEvent && place !== stand.place)) {
      // A tab that lives would have stored another place since our last bookmark: where none is, it has gone.
      const isLeft = isBookmark && stand.other === place;
      stand.other = isBookmark ? place : undefined;
      if (!isLeft) return saved;
      // What came since it has met its gap is not in the list.
      if (isBehind) next = { gap: true, reason: 'EVENTS_GAP', cursor };
    }
  }
  const now = { cursor, events: listed(events, next, kept) };
  Object.assign(stand, standAt(now));
  return now;
}

/** A list with an item at its end. A gap that follows a gap is the same one. */
function listed<Event>(
  before: readonly (Event | Gap<Event>)[],
  item: Event | Gap<Event> | undefined,
  kept: number,
): readonly (Event | Gap<Event>)[] {
  if (item === undefined) return before;
  if (!isGap(item)) return [...before, item].slice(-kept);
  return (item.events ?? [...(isGap(before.at(-1)) ? before.slice(0, -1) : before), item]).slice(-kept);
}

/** The place of an event in the log. */
export const cursorOf = (event: unknown): string => (event as { readonly cursor: string }).cursor;

/**
 * A store of your own that several tabs or processes write, over anything that changes one value in one step.
 *
 * @param change puts what it is given for what is stored in its place, while nobody else writes. It may call that once.
 */
export function sharedStore<Event>(
  load: () => Promise<Saved<Event> | undefined>,
  change: (change: (saved: Saved<Event> | undefined) => Saved<Event>) => Promise<unknown>,
  kept: number = KEPT,
): Store<Event> {
  let stand: Stand | undefined;
  return {
    async load() {
      const saved = await load();
      stand = standAt(saved);
      return saved;
    },
    async save(item, cursor) {
      let before = stand;
      try {
        await change((saved) => {
          before = stand && { ...stand };
          stand ??= standAt(saved);
          return added(saved, item, cursor, kept, stand);
        });
      } catch (cause) {
        stand = before;
        throw cause;
      }
    },
  };
}

/** Keeps a feed for as long as the app runs. */
export function memoryStore<Event>(kept?: number): Store<Event> {
  let saved: Saved<Event> | undefined;
  return sharedStore(
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

/** Reads and writes one value of a key-value storage. */
export function slot<Value>(storage: KeyValues, key: string) {
  const read = () => storage.getItem(key);
  let inTabs: ReturnType<typeof tabTurns> | undefined;
  // Nobody else writes under this key.
  const parsed = (text: string | null) => (text === null ? undefined : (JSON.parse(text) as Value));
  /** Reads, and writes what `change` makes of that unless it is undefined: at once, where the storage answers at once. */
  const write = async (change: (value: Value | undefined) => Value | undefined): Promise<void> => {
    const text = read();
    const value = change(parsed(typeof text === 'string' || text === null ? text : await text));
    if (value !== undefined) await storage.setItem(key, JSON.stringify(value));
  };
  return {
    read: async () => parsed(await read()),
    write,
    /**
     * Does one thing at a time: in all tabs where there are Web Locks, otherwise in this process.
     *
     * @param work told whether another tab may do the same at that time
     */
    alone(work: (isShared: boolean) => Promise<void>): Promise<void> {
      const { document, navigator } = globalThis as {
        document?: unknown;
        navigator?: { readonly locks?: Locks };
      };
      const locks = navigator?.locks;
      const name = `pasarela ${key}`;
      if (locks !== undefined) {
        inTabs ??= document ? tabTurns(locks, name, read) : (step) => locks.request(name, step);
      }
      return inTurn(storage, key, () =>
        inTabs === undefined ? work(document !== undefined) : inTabs(() => work(false)),
      );
    },
  };
}

/** Keeps a feed as one value of a storage: `keyValueStore(localStorage, 'money-in')`, or React Native's AsyncStorage. */
export function keyValueStore<Event>(storage: KeyValues, key: string, kept?: number): Store<Event> {
  const { read, write, alone } = slot<Saved<Event>>(storage, key);
  return sharedStore(read, (change) => alone(() => write(change)), kept);
}
