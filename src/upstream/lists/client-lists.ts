import { LRUCache } from 'lru-cache';
import { type ListDefinition, type Paging, unknownPaging } from './paging.ts';
import { ListPlaces, type PlacesOptions } from './places.ts';

/** Items whose places are kept in memory, of all clients' lists together; some hundred bytes each. */
const MAX_ITEMS = 5_000_000;
/** What nobody has asked for this long is let go of, in milliseconds. */
const IDLE_MS = 1_800_000;
/** How often the clock is read that this is measured by; otherwise it would be with every look-up. */
const CLOCK_MS = 1_000;

/** What the process knows of the lists of all clients. */
export interface ClientLists {
  /** What is known of one list of one client. */
  of<T extends object>(clientId: string, list: ListDefinition<T>): ListPlaces<T>;
  /** What has been learned of the paging of a route, from the answers to every caller. */
  paging(route: string): Paging;
  /** Something has changed a client's lists, or may have. */
  doubt(clientId: string): void;
  /**
   * Something speaks of an item of a client's list: where the list does not have it, the list has changed.
   *
   * @param key one that the list is looked up by.
   */
  announce(clientId: string, route: string, key: string, value: string): void;
}

/** One for each process. */
export function createClientLists(options: PlacesOptions): ClientLists {
  const pagings = new Map<string, Paging>();
  const known = new LRUCache<string, ListPlaces<object>>({
    maxSize: MAX_ITEMS,
    sizeCalculation: (places) => Math.min(MAX_ITEMS, 1 + (places.index?.size ?? 0)),
    ttl: IDLE_MS,
    ttlResolution: CLOCK_MS,
    updateAgeOnGet: true,
  });
  const keyOf = (clientId: string, route: string) => `${clientId.toLowerCase()} ${route}`;

  const paging = (route: string): Paging => {
    let learned = pagings.get(route);
    if (learned === undefined) {
      learned = unknownPaging();
      pagings.set(route, learned);
    }
    return learned;
  };

  return {
    paging,
    of<T extends object>(clientId: string, list: ListDefinition<T>): ListPlaces<T> {
      const key = keyOf(clientId, list.route);
      // One definition stands for each route, so that what is found under it is of its type.
      const found = known.get(key) as ListPlaces<T> | undefined;
      if (found !== undefined) return found;
      const places = new ListPlaces(list, paging(list.route), {
        ...options,
        onWalked: () => known.set(key, places as unknown as ListPlaces<object>),
      });
      known.set(key, places as unknown as ListPlaces<object>);
      return places;
    },
    doubt(clientId) {
      const prefix = `${clientId.toLowerCase()} `;
      for (const [key, places] of known.entries()) if (key.startsWith(prefix)) places.doubt();
    },
    announce(clientId, route, key, value) {
      const places = known.peek(keyOf(clientId, route));
      if (places?.index?.places(key, value).length === 0) places.doubt();
    },
  };
}
