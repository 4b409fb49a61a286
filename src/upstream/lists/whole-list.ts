import { clock } from '../../common/clock.ts';
import type { Rest } from '../call/rest.ts';
import { Listing, type Question } from './listing.ts';
import { ListLoader, type ListSource, type ListWindow } from './loader.ts';
import { Paging } from './paging.ts';
import { type ListDefinition, ListReader } from './reader.ts';

/** A list that is read whole, at most once. If the read fails, every look-up of the operation fails. */
export class WholeList<T> implements ListSource<T> {
  readonly #read: () => Promise<Listing<T>>;
  #arriving: Promise<Listing<T>> | undefined;
  listing: Listing<T> | undefined;

  constructor(read: () => Promise<Listing<T>>) {
    this.#read = read;
  }

  begin(): Promise<Listing<T>> {
    this.#arriving ??= this.#read().then((listing) => {
      this.listing = listing;
      return listing;
    });
    return this.#arriving;
  }

  async answer(questions: readonly Question<T>[]): Promise<readonly (readonly T[])[]> {
    const listing = await this.begin();
    return questions.map((question) => listing.answer(question));
  }

  async window(offset: number, limit: number): Promise<ListWindow<T>> {
    const { items } = await this.begin();
    return { items: items.slice(offset, offset + limit), total: items.length };
  }
}

/** The loader, for one operation, of a list that is always read whole. */
export class WholeLoader<T> extends ListLoader<T> {
  constructor(read: () => Promise<Listing<T>>) {
    super(() => new WholeList(read));
  }

  async all(): Promise<readonly T[]> {
    return (await this.window(0, Number.POSITIVE_INFINITY)).items;
  }
}

/** Returns a list without items. */
export const emptyList = <T>(): ListSource<T> => new WholeList<T>(async () => new Listing<T>([]));

/** Reads all items of a list that is always read whole: of each id the first, and each `UnreadableItem`. */
export const readWholeList = <T extends object>(rest: Rest, list: ListDefinition<T>): Promise<readonly T[]> =>
  new ListReader(rest, list, new Paging(list, () => clock.monotonic())).whole();
