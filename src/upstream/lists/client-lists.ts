import { LRUCache } from 'lru-cache';
import { ListPlaces, type PlacesOptions } from './places.ts';
import { initialPaging, type ListDefinition, type Paging } from './reader.ts';

/** Items whose places are kept in memory, of all clients' lists together; about 110 bytes each. */
const MAX_ITEMS = 5_000_000;
/** How long an index is kept that nobody asks for, in milliseconds. */
const IDLE_MS = 1_800_000;
/** How often the clock is read that this is measured by; otherwise it would be with every look-up. */
const CLOCK_MS = 1_000;

/** What the process knows of the lists of all clients. */
export interface ClientLists {
  /**
   * What is known of one list of one client.
   *
   * @param part the filter that selects part of the list, as one text; empty for all of it.
   */
  of<T extends object>(clientId: string, list: ListDefinition<T>, part: string): ListPlaces<T>;
  /** What the answers to every caller have shown of the paging of a list. */
  paging(list: Pick<ListDefinition<object>, 'route' | 'isPagingDocumented'>): Paging;
  /** Somebody has changed a client's lists, or may have. */
  markChanged(clientId: string): void;
  /**
   * An event names an item of a client's list: where the index does not have it, the list has changed.
   *
   * @param key one that the list is looked up by.
   */
  noteItem(clientId: string, route: string, key: string, value: string): void;
}

/** One for each process. */
export function createClientLists(options: PlacesOptions): ClientLists {
  const pagings = new Map<string, Paging>();
  const known = new LRUCache<string, ListPlaces<object>>({
    maxSize: MAX_ITEMS,
    sizeCalculation: (places) => Math.min(MAX_ITEMS, 1 + (places.known?.size ?? 0)),
    ttl: IDLE_MS,
    ttlResolution: CLOCK_MS,
    updateAgeOnGet: true,
  });
  const keyOf = (clientId: string, route: string, part = '') => `${clientId.toLowerCase()} ${route} ${part}`;

  return {
    paging(list) {
      const paging = pagings.get(list.route) ?? initialPaging(list);
      pagings.set(list.route, paging);
      return paging;
    },
    of<T extends object>(clientId: string, list: ListDefinition<T>, part: string): ListPlaces<T> {
      const key = keyOf(clientId, list.route, part);
      // One definition stands for each route, so that what is found under it is of its type.
      const found = known.get(key) as ListPlaces<T> | undefined;
      if (found !== undefined) return found;
      const keep = () => {
        // Where the cache holds the value already, setting it would leave its size as it was before the walk.
        known.delete(key);
        known.set(key, places as unknown as ListPlaces<object>);
      };
      const places = new ListPlaces<T>({ ...options, onWalked: keep });
      keep();
      return places;
    },
    markChanged(clientId) {
      const prefix = `${clientId.toLowerCase()} `;
      for (const [key, places] of known.entries()) if (key.startsWith(prefix)) places.markChanged();
    },
    noteItem(clientId, route, key, value) {
      const places = known.peek(keyOf(clientId, route));
      if (places?.known?.places(key, value).length === 0) places.markChanged();
    },
  };
}
