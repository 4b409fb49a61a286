import type { Query, Rest } from '../call/rest.ts';
import type { ClientLists } from './client-lists.ts';
import { toldOfPart } from './envelope.ts';
import { Listing } from './listing.ts';
import {
  filterKey,
  ListLoader,
  type ListSource,
  type ListWindow,
  type Loader,
  type NoFilter,
} from './loader.ts';
import type { ListPlaces } from './places.ts';
import { type ListDefinition, ListReader } from './reader.ts';
import { type Sought, search } from './search.ts';
import { isWholeList } from './slice.ts';
import { WholeList } from './whole-list.ts';

/**
 * The part of a list that belongs to one customer. A narrowed caller's look-ups know nothing else of the list, so items of
 * others are never asked for, and refusing them takes no time.
 */
interface Owned<T> {
  /** Names the field that holds the owner's id. */
  readonly key: keyof T & string;
  readonly customerId: string;
  /** True if an item is in the caller's scope. */
  readonly isSeen: (item: T) => boolean;
}

interface PlacedLoaderOptions<T> {
  readonly lists: ClientLists;
  /** The part that the caller is narrowed to; undefined for all of the list. */
  readonly owned?: Owned<T> | undefined;
  /** Called with the ids of each batch of look-ups by id, so that what belongs to those items can be read beside them. */
  readonly onIds?: ((ids: readonly string[]) => void) | undefined;
}

/** Makes the loader, for one operation, of a list that may be too large to be read whole. */
export function createPlacedLoader<T extends object, Filter extends Query = NoFilter>(
  rest: Rest,
  list: ListDefinition<T>,
  { lists, owned, ...options }: PlacedLoaderOptions<T>,
): Loader<T, Filter> {
  return new ListLoader((filter) => {
    const reader = new ListReader(rest, list, lists.paging(list), filter);
    const places = lists.of(rest.clientId, list, filterKey(filter));
    const placed = new PlacedList(reader, places, options);
    return owned === undefined ? placed : placed.ownedBy(owned);
  });
}

/**
 * A list that is read whole if it comes in one answer. Of any other list it reads the pages that a window or a look-up needs:
 * the index of places (places.ts) knows where an item stands, and the item is read from there, under the caller's own
 * credential.
 */
class PlacedList<T extends object> implements ListSource<T> {
  readonly #reader: ListReader<T>;
  readonly #places: ListPlaces<T>;
  #whole: Promise<Listing<T> | undefined> | undefined;
  #arriving: Promise<Listing<T> | undefined> | undefined;
  readonly #onIds: ((ids: readonly string[]) => void) | undefined;
  listing: Listing<T> | undefined;

  constructor(
    reader: ListReader<T>,
    places: ListPlaces<T>,
    { onIds }: Pick<PlacedLoaderOptions<T>, 'onIds'>,
  ) {
    this.#reader = reader;
    this.#places = places;
    this.#onIds = onIds;
  }

  /** Returns the whole list; undefined if it does not come in one answer. Then the index of places has been made. */
  begin(): Promise<Listing<T> | undefined> {
    this.#arriving ??= this.#readOnce().then(async (whole) => {
      if (whole === undefined) await this.#places.index(this.#reader);
      return whole;
    });
    return this.#arriving;
  }

  async answer(questions: readonly Sought<T>[]): Promise<readonly (readonly T[])[]> {
    // Before the index is made: what its walk reads from now on answers the questions.
    const since = this.#places.moment();
    const whole = await this.begin();
    if (whole !== undefined) {
      return questions.map((question) =>
        question.matches === undefined ? whole.answer(question) : whole.items.filter(question.matches),
      );
    }
    const [id] = this.#reader.list.keys;
    this.#onIds?.(questions.filter(({ key }) => key === id).map(({ value }) => value));
    return search(this.#reader, this.#places, questions, since);
  }

  async window(offset: number, limit: number): Promise<ListWindow<T>> {
    if (this.#whole !== undefined || this.#places.comesWhole === true) {
      const whole = await this.#readOnce();
      if (whole !== undefined) {
        return { items: whole.items.slice(offset, offset + limit), total: whole.items.length };
      }
    }
    const { version } = this.#places;
    const { items, total } = await this.#reader.window(offset, limit);
    if (this.#reader.hasComeWhole) this.#places.comesWhole = true;
    this.#places.noteTotal(total, version);
    return { items, total };
  }

  /** Returns the part of the list that belongs to one customer, as a list that is read whole. */
  ownedBy({ key, customerId, isSeen }: Owned<T>): ListSource<T> {
    const sought: Sought<T> = { key, value: customerId, all: true, matches: isSeen };
    return new WholeList(async () => {
      const [items = []] = await this.answer([sought]).catch((error: unknown) => {
        throw toldOfPart(error);
      });
      return new Listing(items);
    });
  }

  #readOnce(): Promise<Listing<T> | undefined> {
    this.#whole ??= this.#readWhole().then((items) => {
      if (items !== undefined) this.listing = new Listing(items);
      return this.listing;
    });
    return this.#whole;
  }

  async #readWhole(): Promise<readonly T[] | undefined> {
    const { paging } = this.#reader;
    const places = this.#places;
    if (places.known !== undefined && places.comesWhole !== true) return undefined;
    if (places.comesWhole !== false || paging.firstPage === undefined) {
      const first = await this.#reader.first();
      places.comesWhole = isWholeList(first);
      if (places.comesWhole) return first.items;
      if (first.total > paging.largest) return undefined;
    }
    // The list may still fit into one page of the largest size.
    const page = await this.#reader.page(0, paging.largest);
    return isWholeList(page) ? page.items : undefined;
  }
}
