import { ambient } from './ambient.ts';

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

/** Where the feed of a store stands. Cursors have no order that can be seen: all that is known of a place is who has been there. */
interface Stand {
  /** How many items the store held at this place; undefined where the feed has begun with an empty store. */
  readonly count: number | undefined;
  /** The last place in the store that this feed has been at itself: one that has loaded nothing is behind nobody. */
  readonly place?: string | undefined;
  /** A place that another tab has stored, and since when it stands. */
  readonly other?: { readonly place: string; readonly since: number };
}

/** What a gap counts for: nobody who has not met it comes near to that by counting events. */
const GAP = 1e9;
/** A tab that lives stores a bookmark each 48 s: past this, and where one of ours came before, the other is gone. In milliseconds. */
const GONE_MS = 30_000;

const weightOf = (item: unknown): number => (isGap(item) ? GAP : 1);

/**
 * What a store holds once an item has been added, and where the feed that adds it stands then. What it held stays where another
 * tab has been quicker, so that nothing moves back.
 *
 * @param item undefined for a place alone: all up to there has been saved
 */
function added<Event>(
  saved: Counted<Event> | undefined | null,
  item: Event | Gap<Event> | undefined,
  cursor: string,
  kept: number,
  stand: Stand,
): readonly [Counted<Event>, Stand] {
  const { events: before = [], count: now = 0 } = saved ?? {};
  const { count = 0, place, other } = stand;
  let next = item;
  if (saved) {
    const isEvent = item !== undefined && !isGap(item);
    const at = isEvent ? before.map(cursorOf).lastIndexOf(cursor) : -1;
    const isLast = saved.cursor === cursor;
    if (at >= 0 || (isLast && item === undefined)) {
      // It is stored already, which tells where that is, whatever another tab has met in between.
      const behind = isLast ? 0 : before.slice(at + 1).reduce((sum, one) => sum + weightOf(one), 0);
      return [saved, { count: Math.max(count, now - behind), place: isLast ? cursor : place }];
    }
    const isBehind = stand.count === undefined || now > count;
    const isElsewhere = place !== undefined && saved.cursor !== place;
    if (isBehind || (isElsewhere && !isEvent)) {
      const since = other?.place === saved.cursor ? other.since : ambient.now();
      const isGone = item === undefined && ambient.now() - since > GONE_MS;
      if (!isGone || (isBehind && now - count < GAP / 2)) {
        const reached = item === undefined ? count : count + weightOf(item);
        return [saved, { count: reached, place, other: { place: saved.cursor, since } }];
      }
      // What came since the other tab has met its gap is not in the list.
      if (isBehind) next = { gap: true, reason: 'EVENTS_GAP', cursor };
    }
  }
  const total = next === undefined ? now : now + weightOf(next);
  return [
    { cursor, events: listed(before, next, kept), count: total },
    { count: total, place: cursor },
  ];
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
export function countedStore<Event>(
  load: () => Promise<Counted<Event> | undefined>,
  change: (change: (saved: Counted<Event> | undefined) => Counted<Event>) => Promise<void>,
  kept: number = KEPT,
): Store<Event> {
  let stand: Stand = { count: Number.POSITIVE_INFINITY };
  return {
    async load() {
      const saved = await load();
      stand = { count: saved && (saved.count ?? 0), place: saved?.cursor };
      return saved && { cursor: saved.cursor, events: saved.events };
    },
    async save(item, cursor) {
      let before = stand;
      try {
        await change((saved) => {
          before = stand;
          const [next, reached] = added(saved, item, cursor, kept, stand);
          stand = reached;
          return next;
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
function alone(storage: KeyValues, key: string, work: (isShared: boolean) => Promise<void>): Promise<void> {
  const ours = turns.get(storage) ?? new Map<string, Promise<unknown>>();
  turns.set(storage, ours);
  const { document, navigator } = globalThis as {
    document?: unknown;
    navigator?: { readonly locks?: Locks };
  };
  const locks = navigator?.locks;
  const mine = (ours.get(key) ?? Promise.resolve()).then(() =>
    locks === undefined ? work(document !== undefined) : locks.request(`pasarela ${key}`, () => work(false)),
  );
  ours.set(
    key,
    mine.catch(() => undefined),
  );
  return mine;
}

/** Reads and writes one value of a key-value storage. */
export function slot<Value>(storage: KeyValues, key: string) {
  // Nobody else writes under this key.
  const parsed = (text: string | null) => (text === null ? undefined : (JSON.parse(text) as Value));
  /** Reads, and writes what `change` makes of that unless it is undefined: at once, where the storage answers at once. */
  const write = async (change: (value: Value | undefined) => Value | undefined): Promise<void> => {
    const text = storage.getItem(key);
    const value = change(parsed(typeof text === 'string' || text === null ? text : await text));
    if (value !== undefined) await storage.setItem(key, JSON.stringify(value));
  };
  return {
    read: async () => parsed(await storage.getItem(key)),
    write,
    /** Nobody writes while `work` runs; unless `isShared` says that another tab may. */
    alone: (work: (isShared: boolean) => Promise<void>): Promise<void> => alone(storage, key, work),
  };
}

/** Keeps a feed as one value of a storage: `keyValueStore(localStorage, 'money-in')`, or React Native's AsyncStorage. */
export function keyValueStore<Event>(storage: KeyValues, key: string, kept?: number): Store<Event> {
  const { read, write, alone: alike } = slot<Counted<Event>>(storage, key);
  return countedStore(read, (change) => alike(() => write(change)), kept);
}
