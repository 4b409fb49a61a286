import type { Query, Rest } from '../call/rest.ts';
import { type Envelope, invalidList, isFull, itemOf, type ListPage, pageIn } from './envelope.ts';
import { filterKey } from './loader.ts';
import { isLost, readRange } from './page-range.ts';
import type { Paging } from './paging.ts';
import { isWholeList, type ListSlice } from './slice.ts';

/** The definition of a noun's list. */
export interface ListDefinition<T> {
  readonly route: string;
  readonly envelope: Envelope;
  /** Names of the fields by which the index of places finds items, the id first. */
  readonly keys: readonly (keyof T & string)[];
  /** Returns the item with its type. @throws UpstreamError `UPSTREAM_INVALID` for an item without an id. */
  readonly identify: (item: unknown) => T;
  /** True if the service documents the paging, which counts pages from 1. Otherwise the answers show how it counts. */
  readonly isPagingDocumented?: true;
  /** True if an id may stand twice on a page: the first counts. Otherwise such a list is invalid. */
  readonly mayRepeatIds?: true;
}

/** A window that ends at or before this position is mostly in the answer to a call without parameters. */
const USUAL_PAGE = 50;
/** How often pages of a window are read, in all, that do not fit together as the list has changed from one to the next. */
const TRIES = 4;
/** Pages of a list that are asked for at once when it is read whole. */
const PARALLEL_PAGES = 4;

/**
 * Reads one list, or the part that a query selects, under one caller's credential. It keeps nothing but what it learns of the
 * paging. Where answers contradict each other, it reads again before it gives part of a list as the whole. Every read throws UpstreamError.
 */
export class ListReader<T extends object> {
  readonly rest: Rest;
  readonly list: ListDefinition<T>;
  readonly paging: Paging;
  /** True if the whole list answered the latest call without parameters. */
  hasComeWhole = false;
  readonly #query: Query;

  /** @param query parameters that every call carries, such as `customer_id`. */
  constructor(rest: Rest, list: ListDefinition<T>, paging: Paging, query: Query = {}) {
    this.rest = rest;
    this.list = list;
    this.paging = paging;
    this.#query = query;
  }

  /** Returns a reader of the same list over other calls. */
  over(rest: Rest): ListReader<T> {
    return new ListReader(rest, this.list, this.paging, this.#query);
  }

  get route(): string {
    return this.list.route;
  }

  /** Returns the id of an item. `identify` has checked that it is a string. */
  idOf(item: T): string {
    return String(Reflect.get(item, this.list.keys[0] ?? ''));
  }

  /**
   * Reads the list without paging parameters. The service answers with the whole list, or with its first page, which shows
   * how it counts pages.
   *
   * @param isFresh true for no answer that was kept of an earlier operation.
   */
  async first(isFresh = false): Promise<ListSlice<T>> {
    return this.#ask({}, isFresh, (page) => {
      const slice = this.#slice(page, 0, true);
      this.hasComeWhole = isWholeList(slice);
      // The whole list shows nothing of how pages are counted.
      if (this.hasComeWhole) return slice;
      if (page.items.length === 0) throw this.#invalid(`holds ${page.total} items and shows none`);
      this.paging.learnFirst(page.page);
      return slice;
    });
  }

  /**
   * Reads one page.
   *
   * @param index number of the page, counted from 0.
   * @param isFresh true for no answer that was kept of an earlier operation.
   * @returns the page, or the whole list if the answer holds it. A page of another size than the one asked for starts where
   * its own size puts it.
   * @throws UpstreamError `UPSTREAM_INVALID` if the answer is another page, or is not as full as it must be.
   */
  async page(index: number, size: number, isFresh = false): Promise<ListSlice<T>> {
    const { pageParameter, sizeParameter } = this.list.envelope;
    const number = index + (this.paging.firstPage ?? 1);
    return this.#ask({ [pageParameter]: number, [sizeParameter]: size }, isFresh, (page) => {
      const slice = this.#pageOf(page, index, number);
      if (!isWholeList(slice)) this.paging.learnSize(size, page.size);
      return slice;
    });
  }

  /** Returns the page of this index, which was asked for by this number, or the whole list. */
  #pageOf(page: ListPage, index: number, number: number): ListSlice<T> {
    const start = index * page.size;
    // An answer with another page number, or with more items than its size, ignored paging: it may be the whole list.
    const ignoredPaging = page.page !== number || page.items.length > page.size;
    const slice = this.#slice(page, start, index === 0 || ignoredPaging);
    if (isWholeList(slice)) return slice;
    const { total, items } = page;
    if (page.page !== number) {
      throw this.#invalid(
        `holds ${total} items and did not move on when asked for page ${number}: it answered with page ${page.page}`,
      );
    }
    if (page.size === 0 || !isFull(page, start)) {
      throw this.#invalid(
        `holds ${total} items, and its page ${number} of ${page.size} shows ${items.length}`,
      );
    }
    return slice;
  }

  /**
   * Reads the one or two pages that hold the items from `offset` to `offset + length - 1`; more if the service gives smaller
   * pages. Those behind the end may be left out; where all are, there is one without items.
   *
   * @param isFresh true for no answers that were kept of earlier operations.
   */
  async range(offset: number, length: number, isFresh = false): Promise<readonly ListSlice<T>[]> {
    return readRange(this, offset, length, isFresh);
  }

  /**
   * Reads the items from `offset` to `offset + limit - 1`.
   *
   * @param limit from 1 to 100.
   * @throws UpstreamError `UPSTREAM_INVALID` if its pages contradict each other {@link TRIES} times.
   */
  async window(offset: number, limit: number): Promise<ListSlice<T>> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      // Of the pages that do not fit together one may be a kept answer, which the next try would get again.
      const slices = await this.#pagesOf(offset, limit, tries > 0);
      const joined = slices.find(isWholeList) ?? this.#join(slices);
      if (joined !== undefined && (joined.start <= offset || joined.items.length === 0)) {
        const from = offset - joined.start;
        const items = joined.items.slice(from, from + limit);
        if (items.length === Math.max(0, Math.min(limit, joined.total - offset))) {
          return { ...joined, start: offset, items };
        }
      }
    }
    throw this.#invalid('shows pages that do not fit together');
  }

  /**
   * Reads all items: of each id the first, and each `UnreadableItem`. Where an item leaves and another one comes at the end
   * between two pages, the totals agree, and an item may be missing.
   *
   * @throws UpstreamError `UPSTREAM_INVALID` if its pages contradict each other {@link TRIES} times.
   */
  async whole(): Promise<readonly T[]> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const items = await this.#allItems(tries > 0);
      if (items === undefined) continue;
      // No id stands twice: that was checked, unless ids may repeat.
      if (!this.list.mayRepeatIds) return items;
      const byId = new Map<string, T>();
      for (const item of items) if (!byId.has(this.idOf(item))) byId.set(this.idOf(item), item);
      return [...byId.values()];
    }
    throw this.#invalid('shows pages that do not fit together');
  }

  /**
   * Reads the pages one after another. Returns the items of all, or undefined if some have moved from one page to another, or a page
   * is there no longer.
   */
  async #allItems(isFresh: boolean): Promise<readonly T[] | undefined> {
    const first = await this.first(isFresh);
    if (isWholeList(first)) return first.items;
    // Pages of the largest size take the fewest calls. The service may give smaller ones, and says so.
    const head = await this.page(0, this.paging.largest, isFresh);
    const { size } = head;
    const items = [...head.items];
    let { total } = head;
    let next = 1;
    while (items.length < total) {
      const count = Math.min(PARALLEL_PAGES, Math.ceil(total / size) - next);
      const indexes = Array.from({ length: count }, (_, at) => next + at);
      next += count;
      const read = indexes.map((index) =>
        this.page(index, size, isFresh).catch(async (error: unknown) => {
          if (await isLost(this, index, size, error)) return undefined;
          throw error;
        }),
      );
      for (const slice of await Promise.all(read)) {
        if (slice === undefined) return undefined;
        if (isWholeList(slice)) return slice.items;
        // What comes at the end moves nothing. Where ids may repeat, nothing tells that from what comes before.
        const fits = this.list.mayRepeatIds ? slice.total === total : slice.total >= total;
        if (!fits || slice.start !== items.length) return undefined;
        total = slice.total;
        items.push(...slice.items);
      }
    }
    return this.list.mayRepeatIds || this.#countIds(items) === items.length ? items : undefined;
  }

  /** Reads the pages that hold a window, by the sizes that the service has given so far. */
  async #pagesOf(offset: number, limit: number, isFresh: boolean): Promise<readonly ListSlice<T>[]> {
    const end = offset + limit;
    const pages = (): Promise<readonly ListSlice<T>[]> => this.range(offset, limit, isFresh);
    if (!this.paging.isFirstDue) return pages();
    // Once it is known how pages are counted, a window needs no answer to this call.
    const asking = this.first(isFresh).catch((error: unknown) => {
      if (this.paging.firstPage === undefined) throw error;
      return undefined;
    });
    // While that call finds out how pages are counted, the others assume that they are counted as before, or from 1.
    const assumed = this.paging.firstPage ?? 1;
    const guessing = end <= USUAL_PAGE ? undefined : pages().catch((error: unknown) => error);
    const [first, guessed] = await Promise.all([asking, guessing]);
    if (first !== undefined && (isWholeList(first) || end <= first.items.length)) return [first];
    if (guessing === undefined || this.paging.firstPage !== assumed) return pages();
    if (!Array.isArray(guessed)) throw guessed;
    return guessed;
  }

  /**
   * Asks once, and reads the answer. One that does not fit is asked for once more, afresh: it may have been kept, and would come again
   * for as long as it is.
   */
  async #ask(
    parameters: Query,
    isFresh: boolean,
    read: (page: ListPage) => ListSlice<T>,
  ): Promise<ListSlice<T>> {
    const query = { ...this.#query, ...parameters };
    const readIn = (body: unknown): ListSlice<T> => {
      const page = pageIn(this.route, this.list.envelope, body);
      this.paging.noteTotal(this.rest.clientId, filterKey(this.#query), page.total);
      return read(page);
    };
    const body = await this.rest.get(this.route, { query, isFresh });
    try {
      return readIn(body);
    } catch (error) {
      if (isFresh) throw error;
    }
    return readIn(await this.rest.get(this.route, { query, isFresh: true }));
  }

  #slice(page: ListPage, start: number, mayBeWhole: boolean): ListSlice<T> {
    const isAll = mayBeWhole && page.items.length === page.total;
    const from = isAll ? 0 : start;
    const { identify, keys } = this.list;
    const items = page.items.map((item, at) => itemOf(identify, item, from + at, keys));
    this.#assertDistinct(items);
    // The whole list may have come in one answer, whatever size was asked for.
    const size = isAll ? Math.max(page.size, items.length) : page.size;
    return { start: from, items, total: page.total, size };
  }

  #assertDistinct(items: readonly T[]): void {
    if (this.list.mayRepeatIds) return;
    const distinct = this.#countIds(items);
    if (distinct === items.length) return;
    // If an item stands there twice, another one is missing.
    throw this.#invalid(`shows ${items.length} items on a page, of which ${distinct} differ`);
  }

  #countIds(items: readonly T[]): number {
    const [id] = this.list.keys;
    return id === undefined ? items.length : new Set(items.map((item) => item[id])).size;
  }

  /** Joins consecutive pages into one slice; undefined if they do not fit together. */
  #join(slices: readonly ListSlice<T>[]): ListSlice<T> | undefined {
    const [first] = slices;
    if (first === undefined || slices.length === 1) return first;
    const items: T[] = [];
    for (const { start, total, size, items: own } of slices) {
      if (total !== first.total || size !== first.size) return undefined;
      if (own.length > 0 && start !== first.start + items.length) return undefined;
      items.push(...own);
    }
    const fits = this.list.mayRepeatIds || this.#countIds(items) === items.length;
    return fits ? { ...first, items } : undefined;
  }

  #invalid(problem: string): Error {
    return invalidList(this.route, problem);
  }
}
