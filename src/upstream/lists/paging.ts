import type { Rest } from '../call/rest.ts';
import { type Envelope, invalidList, itemOf, type ListPage, readPage } from './list.ts';
import { coverWindow, MAX_PAGE } from './page-cover.ts';

/** A list of the client's that is read in pages: its route, its envelope, and what its items are looked up by. */
export interface ListDefinition<T> {
  readonly route: string;
  readonly envelope: Envelope;
  /** Names of the fields that items are looked up by, the id first. */
  readonly keys: readonly (keyof T & string)[];
  /** @throws UpstreamError `UPSTREAM_INVALID` for an item without an id. */
  readonly identify: (item: unknown) => T;
}

/**
 * What answers have shown of the paging of one route. The spec documents none for accounts and customers, so that nothing
 * is assumed: every answer is checked against what it says of itself, and corrects what is known here.
 */
export interface Paging {
  /** The number of the first page, as an answer to a call without parameters states it. */
  firstPage: number | undefined;
  /** The sizes that it gives: pages of other sizes were asked for, and came in the nearest of these. */
  smallest: number;
  largest: number;
}

export const unknownPaging = (): Paging => ({ firstPage: undefined, smallest: 1, largest: MAX_PAGE });

/** Learns from a page that has come in another size than asked for. */
function learnSize(paging: Paging, asked: number, size: number): void {
  if (size === asked) return;
  if (size < asked) {
    paging.largest = size;
    paging.smallest = Math.min(paging.smallest, size);
  } else {
    paging.smallest = size;
    paging.largest = Math.max(paging.largest, size);
  }
}

/** Part of a list, as one answer shows it. */
export interface Slice<T> {
  /** Position of its first item in the list, from 0. */
  readonly start: number;
  readonly items: readonly T[];
  /** How many items the service says that the list holds. */
  readonly total: number;
  /** How many items a page of this answer's size holds. */
  readonly size: number;
}

/** Whether a slice is all of the list. */
export const isWhole = <T>({ start, items, total }: Slice<T>): boolean =>
  start === 0 && items.length === total;

/** Whether a page holds as many items as one of its size must, given where it starts and the list's total. */
const isFull = ({ items, total, size }: ListPage, start: number): boolean =>
  items.length === Math.max(0, Math.min(size, total - start));

function toSlice<T>(list: ListDefinition<T>, page: ListPage, start: number, mayBeWhole: boolean): Slice<T> {
  const isAll = mayBeWhole && page.items.length === page.total;
  const first = isAll ? 0 : start;
  const items = page.items.map((item, at) => itemOf(list.identify, item, first + at, list.keys));
  const [id] = list.keys;
  const distinct = id === undefined ? items.length : new Set(items.map((item) => item[id])).size;
  if (distinct < items.length) {
    // What stands there twice stands in the place of another.
    throw invalidList(list.route, `shows ${items.length} items on a page, of which ${distinct} differ`);
  }
  if (isAll) {
    // All of it in one answer, whatever was asked for.
    return { start: first, items, total: page.total, size: Math.max(page.size, items.length) };
  }
  return { start, items, total: page.total, size: page.size };
}

/**
 * Reads the list without parameters, which is how the service shows it to those who know nothing of its paging: all of it,
 * or its first page, which then says how pages are counted.
 */
export async function readFirst<T>(rest: Rest, list: ListDefinition<T>, paging: Paging): Promise<Slice<T>> {
  const page = readPage(list.route, list.envelope, await rest.get(list.route));
  const slice = toSlice(list, page, 0, true);
  if (isWhole(slice)) return slice;
  if (page.items.length === 0) throw invalidList(list.route, `holds ${page.total} items and shows none`);
  paging.firstPage = page.page;
  return slice;
}

/**
 * Reads one page.
 *
 * @param index number of the page, counted from 0.
 * @returns the page, or all of the list where the answer holds all of it. A page of another size than the one asked for
 * starts where its own size puts it.
 * @throws UpstreamError `UPSTREAM_INVALID` when the answer is another page, or is not as full as it must be.
 */
export async function readSlice<T>(
  rest: Rest,
  list: ListDefinition<T>,
  paging: Paging,
  index: number,
  size: number,
): Promise<Slice<T>> {
  const { route, envelope } = list;
  const number = index + (paging.firstPage ?? 1);
  const query = { [envelope.pageParameter]: number, [envelope.sizeParameter]: size };
  const page = readPage(route, envelope, await rest.get(route, { query }));
  const start = index * page.size;
  // A page that says that it is not the first, and holds no more than a page may, is not all of the list.
  const isOther = page.page !== number || page.items.length > page.size;
  const slice = toSlice(list, page, start, index === 0 || isOther);
  if (isWhole(slice)) return slice;
  if (page.page !== number) {
    throw invalidList(
      route,
      `holds ${page.total} items and did not move on when asked for page ${number}: it answered with page ${page.page}`,
    );
  }
  if (page.size === 0 || !isFull(page, start)) {
    throw invalidList(
      route,
      `holds ${page.total} items, and its page ${number} of ${page.size} shows ${page.items.length}`,
    );
  }
  learnSize(paging, size, page.size);
  return slice;
}

/** What is shown without parameters often holds as many items: a window of these needs no second call as a rule. */
const USUAL_PAGE = 50;
/** How often pages are read again that do not fit together, as the list changed from one to the next. */
const TRIES = 4;

/**
 * Reads the items from `offset` to `offset + limit - 1`: one page where any size lines up with the window, else two, and
 * more only where the service keeps to small pages of its own.
 *
 * @param limit from 1 to 100.
 * @throws UpstreamError `UPSTREAM_INVALID` when its pages say different things of the list time and again.
 */
export async function readWindow<T>(
  rest: Rest,
  list: ListDefinition<T>,
  paging: Paging,
  offset: number,
  limit: number,
): Promise<Slice<T>> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const slices = await readCover(rest, list, paging, offset, limit);
    const whole = slices.find(isWhole);
    const joined = whole ?? join(slices, list.keys[0]);
    if (joined !== undefined && (joined.start <= offset || joined.items.length === 0)) {
      const from = offset - joined.start;
      const items = joined.items.slice(from, from + limit);
      if (items.length === Math.max(0, Math.min(limit, joined.total - offset))) {
        return { ...joined, start: offset, items };
      }
    }
  }
  throw invalidList(list.route, 'shows pages that do not fit together');
}

/** The pages that hold a window, of the largest size that the service has given so far. */
async function readCover<T>(
  rest: Rest,
  list: ListDefinition<T>,
  paging: Paging,
  offset: number,
  limit: number,
): Promise<readonly Slice<T>[]> {
  const { firstPage } = paging;
  const cover = coverWindow(offset, limit, paging);
  const read = () =>
    Promise.all(cover.pages.map((page) => readSlice(rest, list, paging, page - 1, cover.size)));
  if (firstPage !== undefined) return read();
  if (offset + limit <= USUAL_PAGE) {
    const first = await readFirst(rest, list, paging);
    return isWhole(first) || offset + limit <= first.items.length ? [first] : read();
  }
  // How pages are counted is found out beside the pages themselves: they are right where it turns out to be from 1.
  const [first, guessed] = await Promise.all([
    readFirst(rest, list, paging),
    read().catch((error: unknown) => error),
  ]);
  if (isWhole(first)) return [first];
  if (paging.firstPage !== 1) return read();
  if (!Array.isArray(guessed)) throw guessed;
  return guessed;
}

/** Pages that follow each other as one slice; undefined where they do not fit together. */
function join<T>(slices: readonly Slice<T>[], id: (keyof T & string) | undefined): Slice<T> | undefined {
  const [first] = slices;
  if (first === undefined || slices.length === 1) return first;
  const items: T[] = [];
  for (const { start, total, size, items: own } of slices) {
    if (total !== first.total || size !== first.size) return undefined;
    if (own.length > 0 && start !== first.start + items.length) return undefined;
    items.push(...own);
  }
  const distinct = id === undefined ? items.length : new Set(items.map((item) => item[id])).size;
  return distinct === items.length ? { ...first, items } : undefined;
}
