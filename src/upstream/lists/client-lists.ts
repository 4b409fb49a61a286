import { LRUCache } from 'lru-cache';
import { LateChanges } from '../call/late-changes.ts';
import { Paging, type Totals } from './paging.ts';
import { ListPlaces, type PlacesOptions } from './places.ts';
import type { ListDefinition } from './reader.ts';

/** Items whose places are kept in memory, of the lists of all clients together. One takes about 110 bytes. */
const MAX_ITEMS = 5_000_000;
/** How long an index that nobody asks for is kept, in milliseconds; its memory is free once another is read. */
const IDLE_MS = 1_800_000;
/** How often the clock for that is read, in milliseconds. Otherwise it would be read with every look-up. */
const CLOCK_MS = 1_000;

/** Keeps what the process knows of the lists of all clients. */
export interface ClientLists {
  /**
   * Returns what is known of one list of one client.
   *
   * @param part the filter that selects part of the list, as one text; empty for all of it.
   */
  of<T extends object>(clientId: string, list: ListDefinition<T>, part: string): ListPlaces<T>;
  /** Returns what the answers to all callers have shown of the paging of a list. */
  paging(list: Pick<ListDefinition<object>, 'route' | 'isPagingDocumented'>): Paging;
  /** Marks a client's lists as changed, because somebody has changed them or may have. */
  markChanged(clientId: string): void;
  /**
   * Notes that an event names an item of a client's list. If the index lacks the item, the list has changed.
   *
   * @param key one of the keys by which the list is looked up.
   */
  noteItem(clientId: string, route: string, key: string, value: string): void;
}

export interface ClientListsOptions extends PlacesOptions {
  /**
   * Called when answers from before do not go with what a client's lists show now: the index of one is new or has grown, or an
   * answer shows another total than the one before.
   */
  readonly onOutdated: (clientId: string) => void;
}

/** Makes the lists of a process, which has one of these. */
export function createClientLists({ onOutdated, ...options }: ClientListsOptions): ClientLists {
  const pagings = new Map<string, Paging>();
  const known = new LRUCache<string, ListPlaces<object>>({
    maxSize: MAX_ITEMS,
    sizeCalculation: (places) => Math.min(MAX_ITEMS, 1 + (places.known?.size ?? 0)),
    ttl: IDLE_MS,
    ttlResolution: CLOCK_MS,
    updateAgeOnGet: true,
  });
  const changes = new LateChanges();
  const keyOf = (clientId: string, route: string, part = '') => `${clientId.toLowerCase()} ${route} ${part}`;

  return {
    paging(list) {
      const { route } = list;
      const tell = (clientId: string, totals: Totals): void => {
        options.logger.debug({ route, clientId, ...totals }, 'A list shows another total than before');
        onOutdated(clientId);
      };
      const paging = pagings.get(route) ?? new Paging(list, options.now, tell);
      pagings.set(route, paging);
      return paging;
    },
    of<T extends object>(clientId: string, list: ListDefinition<T>, part: string): ListPlaces<T> {
      const key = keyOf(clientId, list.route, part);
      // Each route has one definition, so the value found under it has its type.
      const found = known.get(key) as ListPlaces<T> | undefined;
      if (found !== undefined) return found;
      const keep = () => {
        // Deleted first: setting a value that the cache holds already would leave its size as it was before the walk.
        known.delete(key);
        known.set(key, places as unknown as ListPlaces<object>);
      };
      const onChanged = () => {
        // By itself the cache drops an idle list only as somebody asks for that one.
        known.purgeStale();
        keep();
        onOutdated(clientId);
      };
      const places = new ListPlaces<T>({
        ...options,
        onChanged,
        mayMiss: (now) => changes.mayMiss(clientId.toLowerCase(), now),
      });
      keep();
      return places;
    },
    markChanged(clientId) {
      changes.note(clientId.toLowerCase(), options.now());
      const prefix = `${clientId.toLowerCase()} `;
      for (const [key, places] of known.entries()) if (key.startsWith(prefix)) places.markChanged();
    },
    noteItem(clientId, route, key, value) {
      known.peek(keyOf(clientId, route))?.noteItem(key, value);
    },
  };
}
