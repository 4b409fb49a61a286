import { idKey } from '../call/path.ts';
import type { Listing, Question } from './listing.ts';
import { asError, type ListSource, type ListWindow } from './loader.ts';
import { MAX_PAGE } from './page-cover.ts';
import type { ListReader } from './reader.ts';
import { isWholeList, type ListSlice } from './slice.ts';

/** Up to this many items are read one by one, more of them through the list. */
const FEW = 2;

/** Items that windows have shown, by id. Looking up one of them costs no call. */
export class ShownItems<T extends { readonly id: string }> {
  /** Windows in which no item has been looked up yet. */
  readonly #fresh: (readonly T[])[] = [];
  readonly #byId = new Map<string, T>();

  add(items: readonly T[]): void {
    this.#fresh.push(items);
  }

  get(id: string): T | undefined {
    for (const item of this.#fresh.splice(0).flat())
      if (!this.#byId.has(idKey(item.id))) this.#byId.set(idKey(item.id), item);
    return this.#byId.get(idKey(id));
  }
}

/**
 * A list whose items the service also gives one by one. It is therefore neither read whole nor indexed. Look-ups are by id
 * alone.
 */
export class SingleReads<T extends { readonly id: string }> implements ListSource<T> {
  readonly listing: Listing<T> | undefined = undefined;
  readonly #reader: ListReader<T>;
  readonly #readOne: (id: string) => Promise<T | null>;
  readonly #shown: ShownItems<T>;
  readonly #pages = new Map<number, Promise<ListSlice<T>>>();

  /** @param readOne resolves with null for an id of which the caller has no item. */
  constructor(reader: ListReader<T>, readOne: (id: string) => Promise<T | null>, shown: ShownItems<T>) {
    this.#reader = reader;
    this.#readOne = readOne;
    this.#shown = shown;
  }

  async begin(): Promise<void> {}

  async window(offset: number, limit: number): Promise<ListWindow<T>> {
    const { items, total } = await this.#reader.window(offset, limit);
    this.#shown.add(items);
    return { items, total };
  }

  async answer(questions: readonly Question<T>[]): Promise<readonly (readonly T[] | Error)[]> {
    /** By what the ids are compared by. */
    const found = new Map<string, T | null | Error>();
    for (const { value } of questions) {
      const shown = this.#shown.get(value);
      if (shown !== undefined) found.set(idKey(value), shown);
    }
    const ids = questions.map(({ value }) => value).filter((id) => !found.has(idKey(id)));
    const left = ids.length > FEW ? await this.#findInList(ids, found) : ids;
    await Promise.all(left.map(async (id) => found.set(idKey(id), await this.#readOne(id).catch(asError))));
    return questions.map(({ value }) => {
      const item = found.get(idKey(value)) ?? null;
      if (item instanceof Error) return item;
      return item === null ? [] : [item];
    });
  }

  /**
   * Reads the first page of the list, and each next one while no more pages than ids are left. @returns the ids that are cheaper to
   * read one by one.
   */
  async #findInList(
    ids: readonly string[],
    found: Map<string, T | null | Error>,
  ): Promise<readonly string[]> {
    let left = ids;
    try {
      for (let page = 0; ; page += 1) {
        const slice = await this.#page(page);
        for (const item of slice.items) if (!found.has(idKey(item.id))) found.set(idKey(item.id), item);
        left = left.filter((id) => !found.has(idKey(id)));
        const pagesLeft = Math.ceil(slice.total / slice.size) - page - 1;
        if (left.length === 0 || isWholeList(slice) || pagesLeft <= 0) return [];
        if (pagesLeft > left.length) return left;
      }
    } catch (error) {
      for (const id of left) found.set(idKey(id), asError(error));
      return [];
    }
  }

  #page(index: number): Promise<ListSlice<T>> {
    const page = this.#pages.get(index) ?? this.#reader.page(index, MAX_PAGE);
    this.#pages.set(index, page);
    return page;
  }
}
