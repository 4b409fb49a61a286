import { ambient } from './ambient.ts';
import { refused } from './source.ts';
import { tabTurns } from './turns.ts';

/** A place in the feed at which events are missing, or may be. The list before it may be incomplete. */
export interface Gap<Event = unknown> {
  readonly gap: true;
  /**
   * `EVENTS_GAP`: the log no longer holds all events since the last one, or is another one. `CURSOR_INVALID`: the place is none of this log and
   * caller; a caller narrowed to a customer gets it who comes back to another log.
   * `FIRST_START`: this device has seen nothing yet; reported only if `getState` is given.
   */
  readonly reason: 'EVENTS_GAP' | 'CURSOR_INVALID' | 'FIRST_START';
  /** The cursor from which the feed goes on. Where a stored list has the gap before what `getState` has loaded, a text that is no cursor. */
  readonly cursor: string;
  /** The list that `getState` has loaded, oldest first. */
  readonly events?: readonly Event[];
}

/** Tells a gap from an event. */
export const isGap = <Event>(item: Event | Gap<Event>): item is Gap<Event> =>
  (item as Partial<Gap> | undefined | null)?.gap === true;

/** What a store holds. */
export interface Saved<Event> {
  /** The place in the log up to which `events` reach. */
  readonly cursor: string;
  /** Oldest first. A store of your own may leave it out if the app reads its list elsewhere. */
  readonly events?: readonly (Event | Gap<Event>)[] | undefined;
  /** When the list was begun, in milliseconds since 1970. It tells it from one that was removed. Lists of version 0.2.0 have none. */
  readonly begun?: number | undefined;
}

/**
 * Keeps the place of a feed. `save` writes event and cursor together, as one value or in one transaction. Then the app may
 * end at any moment.
 */
export interface Store<Event> {
  load(): Saved<Event> | undefined | null | Promise<Saved<Event> | undefined | null>;
  /**
   * If it throws {@link Refused} with the code `STORE_REMOVED`, the feed ends. After any other error it is called again.
   *
   * @param event undefined if the feed begins without one, and for a bookmark. After a gap it may be one that was saved before.
   */
  save(event: Event | Gap<Event> | undefined, cursor: string): void | Promise<void>;
}

/** How many events the stores of this package keep if nothing else is set. */
const KEPT = 200;

/**
 * What the feed of a store knows of it. Cursors have no visible order, so all that is known of a place is which feeds have
 * reached it.
 */
interface Stand {
  /** When the list was begun. */
  begun?: number | undefined;
  /** The cursor of the last stored item that this feed itself has reached. */
  last?: string | undefined;
  /** The last stored place that it has reached itself. */
  place: string;
  /** The last place that it has reached itself. The store may have refused it, and taken it from another tab since. */
  reached: string;
  /** What the store held when our last bookmark was refused. If it is still there at the next one, that tab is gone. */
  other?: string | undefined;
}

/** What a store holds before anything is saved. */
const NOTHING: Saved<never> = { cursor: '', begun: 0 };

const standAt = ({ cursor, events, begun }: Saved<unknown>): Stand => ({
  begun,
  last: events?.map(cursorOf).at(-1),
  place: cursor,
  reached: cursor,
});

const REMOVED = 'The list was removed: follow again.';

/**
 * Returns the content of a store after an item has been added. If another tab has been quicker, the content stays, so that no
 * place moves back. Throws if the list was removed: one that this feed began would lack what was in it, and nobody would know.
 *
 * @param item undefined for a bookmark: all events up to there have been saved
 * @param stand what the feed that adds it knows. Where the content stays, it learns by that.
 */
function added<Event>(
  saved: Saved<Event>,
  item: Event | Gap<Event> | undefined,
  cursor: string,
  kept: number,
  stand: Stand,
): Saved<Event> {
  const { events = [], cursor: place, begun } = saved;
  if (stand.reached && (begun ?? stand.begun) !== stand.begun) throw refused(REMOVED, 'STORE_REMOVED');
  const stored = events.map(cursorOf);
  const last = stored.at(-1);
  const isBookmark = item === undefined;
  const isOfGap = isGap(item);
  const isEvent = !isBookmark && !isOfGap;
  let next = item;
  const at = stored.lastIndexOf(cursor);
  const isAt = place === stand.reached || (place === cursor && !isOfGap);
  if (isAt) stand.place = place;
  stand.reached = cursor;
  stand.begun = begun;
  if (isEvent && at >= 0) {
    // It is stored already, so this tab has come as far in the list, also past a gap that another tab has stored.
    if (at > stored.lastIndexOf(stand.last ?? '')) stand.last = cursor;
    return saved;
  }
  if (isBookmark && isAt) stand.last = last;
  // A bookmark and a gap are stored only by a tab that has reached the stored place. An event needs less: if the list still ends
  // where this tab last saw it, no other tab has stored an event, so this one is the next.
  const isBehind = last !== stand.last;
  if ((!isOfGap && isBehind) || (!isEvent && place !== stand.place)) {
    const isLeft = isBookmark && stand.other === place;
    stand.other = isBookmark ? place : undefined;
    if (!isLeft) return saved;
    // What this tab has handed out since it fell behind is not in the list.
    if (isBehind) next = { gap: true, reason: 'EVENTS_GAP', cursor };
  }
  return { cursor, events: listed(events, next, kept), begun: place ? begun : ambient.now() };
}

/**
 * Returns a list with an item at its end. A gap after a gap is the same gap. A list that was loaded for a gap takes the place of
 * the one before, and has the gap at its beginning: an app that ends before it is told of the gap finds it there.
 */
export function listed<Event>(
  before: readonly (Event | Gap<Event>)[],
  item: Event | Gap<Event> | undefined,
  kept: number,
): readonly (Event | Gap<Event>)[] {
  if (item === undefined) return before;
  if (!isGap(item)) return [...before, item].slice(-kept);
  const { events, ...gap } = item;
  if (!events) return [...(isGap(before.at(-1)) ? before.slice(0, -1) : before), item].slice(-kept);
  if (gap.reason === 'FIRST_START') return events.slice(-kept);
  // Rows go by their cursors, and the list's last event may have the one of the gap.
  if (events[0]) gap.cursor = `before ${gap.cursor}`;
  return [gap, ...events.slice(1 - kept || Infinity)];
}

/** Returns the cursor of an event. */
export const cursorOf = (event: unknown): string => (event as { readonly cursor: string }).cursor;

/**
 * Makes a store that several tabs or processes may write, over any storage that changes one value in one step.
 *
 * @param change replaces the stored value by the result of the function that it gets, while no other writes. It may call that
 * function once.
 */
export function sharedStore<Event>(
  load: () => Promise<Saved<Event> | undefined | null>,
  change: (change: (saved: Saved<Event> | undefined | null) => Saved<Event>) => Promise<unknown>,
  kept: number = KEPT,
): Store<Event> {
  let stand: Stand | undefined;
  return {
    async load() {
      const saved = await load();
      stand = standAt(saved ?? NOTHING);
      return saved;
    },
    async save(item, cursor) {
      let before = stand;
      try {
        await change((given) => {
          const saved = given ?? NOTHING;
          before = stand;
          stand = { ...(stand ?? standAt(saved)) };
          const now = added(saved, item, cursor, kept, stand);
          if (now !== saved) stand = standAt(now);
          return now;
        });
      } catch (cause) {
        stand = before;
        throw cause;
      }
    },
  };
}

/** Makes a store that keeps a feed as long as the app runs. */
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

/** The methods that `localStorage`, React Native's AsyncStorage and many others share. */
export interface KeyValues {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): unknown;
}

/** Reads one value of a key-value storage, and changes it while no other tab does. */
export function slot<Value>(storage: KeyValues, key: string) {
  const read = () => storage.getItem(key);
  const alone = tabTurns(storage, `pasarela ${key}`, read);
  // Only this function writes under this key.
  const load = async () => JSON.parse((await read()) ?? 'null') as Value | null;
  return {
    load,
    /** Writes the result of a function that gets the value, unless that is undefined. */
    change: (next: (value: Value | null) => Value | undefined): Promise<void> =>
      alone(async () => {
        const value = next(await load());
        if (value !== undefined) await storage.setItem(key, JSON.stringify(value));
      }),
  };
}

/**
 * Makes a store that keeps a feed as one value of a storage: `keyValueStore(localStorage, 'money-in')`, or React Native's
 * AsyncStorage. All tabs have to share it, so it takes no `sessionStorage`: each `save` would wait for what another tab has written.
 */
export function keyValueStore<Event>(storage: KeyValues, key: string, kept?: number): Store<Event> {
  const { load, change } = slot<Saved<Event>>(storage, key);
  return sharedStore(load, change, kept);
}
