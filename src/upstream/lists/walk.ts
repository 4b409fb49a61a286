import { clock } from '../../common/clock.ts';
import { UpstreamError } from '../call/errors.ts';
import { MOST_PAUSE_MS } from '../call/retry.ts';
import { invalidList } from './envelope.ts';
import { isLost } from './page-range.ts';
import { PlaceIndex } from './place-index.ts';
import type { ListReader } from './reader.ts';
import { isWholeList, type ListSlice } from './slice.ts';

/** Pages that a walk asks for at once. */
const PARALLEL_PAGES = 8;
/** How often a walk goes through the list, at most, until every item has been seen. */
const MAX_PASSES = 4;
/** Pages that are read again after a pass, to find out if the list has changed meanwhile. */
const SAMPLES = 32;
/** Pages at each end of the list in which a walk looks for items that have moved past it. */
const CHASED_PAGES = 10;
/** How often a page that does not come is asked for, and the wait before the second time, in milliseconds. */
const PAGE_TRIES = 4;
const PAGE_DELAY_MS = 500;

/** The result of a walk. */
export interface Walked {
  /** Every item of the list, as it was when the last reads began. */
  readonly index: PlaceIndex;
  /** The size of the pages in which the list came. */
  readonly size: number;
}

export interface WalkOptions {
  /** Called when the last reads begin: the index may lack a change that is made after that. */
  readonly onLastReads: () => void;
  /** Called with the number of items seen so far, and of all. */
  readonly onProgress: (seen: number, total: number) => void;
}

/** The service changed its pages during the walk, or the list lost one, so that the positions seen are of no use. */
class RepagedError extends Error {}

/**
 * Goes through a list page by page, and keeps where each item stands: keys and places, not the items. If the list changes
 * meanwhile, the walk goes on until it has seen as many items as the service says that there are. An item that moved is then
 * found; one that came or went may be in the index or not.
 *
 * Counts alone do not show that one item has gone and another has come between two reads. So a pass is checked by reading up
 * to 32 of its pages again. That is all of a small list; in a large one such a change can go unnoticed.
 *
 * @param reader of calls that outlive the operation that asks; their deadline is the walk's.
 * @throws UpstreamError `UPSTREAM_INVALID` when the list never shows as many items as it says that there are.
 */
export async function walkList<T extends object>(
  reader: ListReader<T>,
  options: WalkOptions,
): Promise<Walked> {
  let seen: PlaceIndex | undefined;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const before = seen?.size;
    const going = new Pass(reader, options, seen);
    try {
      if (await going.run()) return { index: going.index, size: going.size };
      if (going.isStuck(before)) {
        throw invalidList(
          reader.route,
          `holds ${going.total} items, of which its pages showed ${going.index.size}`,
        );
      }
      seen = going.isReusable ? going.index : undefined;
    } catch (error) {
      if (!(error instanceof RepagedError)) throw error;
      seen = undefined;
    }
  }
  throw invalidList(reader.route, 'changes faster than it can be read');
}

/** One pass through the list. */
class Pass<T extends object> {
  index: PlaceIndex;
  size = 0;
  /** The total in the latest answer. */
  total = 0;
  readonly #reader: ListReader<T>;
  readonly #options: WalkOptions;
  readonly #before: PlaceIndex | undefined;
  /** The largest total of all answers. */
  #largestTotal = 0;
  #hasShrunk = false;
  #seen = 0;

  /** @param before the index of an earlier pass, if all of its items are still in the list. */
  constructor(reader: ListReader<T>, options: WalkOptions, before: PlaceIndex | undefined) {
    this.#reader = reader;
    this.#options = options;
    this.#before = before;
    this.index = before ?? new PlaceIndex(reader.list.keys, 0);
  }

  /** True if all items that were seen are still there, as far as the totals show. */
  get isReusable(): boolean {
    return !this.#hasShrunk && this.index.size <= this.total;
  }

  /** True if another pass would see nothing more. */
  isStuck(before: number | undefined): boolean {
    return this.isReusable && before === this.index.size;
  }

  /** @returns true if all items are in the index. */
  async run(): Promise<boolean> {
    this.#options.onLastReads();
    const { paging } = this.#reader;
    if (paging.isFirstDue) {
      const first = await this.#retried(() => this.#reader.first());
      if (isWholeList(first)) return this.#takeWhole(first);
    }
    const head = await this.#read(0, paging.largest);
    if (isWholeList(head)) return this.#takeWhole(head);
    this.size = head.size;
    if (this.#before === undefined) this.index = new PlaceIndex(this.#reader.list.keys, head.total);
    this.#take(head);
    await this.#readOn();
    this.#options.onLastReads();
    await this.#readAgain(this.#samples());
    if (this.index.size < this.total) await this.#chase();
    return !this.#hasShrunk && this.index.size === this.total;
  }

  #takeWhole(slice: ListSlice<T>): true {
    this.index = new PlaceIndex(this.#reader.list.keys, slice.total);
    this.size = slice.size;
    this.#take(slice);
    return true;
  }

  /** Reads from the second page to the last. The number of the last page may change meanwhile. */
  async #readOn(): Promise<void> {
    let next = 1;
    let isOver = false;
    const worker = async (): Promise<void> => {
      while (!isOver && next < this.#pages) {
        const page = next;
        next += 1;
        try {
          this.#take(await this.#readPage(page));
        } catch (error) {
          // The pass is given up: the other workers leave their seats to the next one.
          isOver = true;
          throw error;
        }
      }
    };
    // If the list has grown after the last worker ended, it has one more page.
    while (next < this.#pages) await Promise.all(Array.from({ length: PARALLEL_PAGES }, worker));
  }

  /** Returns the numbers of the first page, the last one, and some in between. */
  #samples(): Set<number> {
    const last = this.#pages - 1;
    return new Set(Array.from({ length: SAMPLES }, (_, index) => Math.round((index * last) / (SAMPLES - 1))));
  }

  async #readAgain(pages: Iterable<number>): Promise<void> {
    await Promise.all(Array.from(pages, async (page) => this.#take(await this.#readPage(page))));
  }

  /** Reads pages at both ends, because items that are new or have just changed often stand there. */
  async #chase(): Promise<void> {
    for (let page = 0; page < Math.min(CHASED_PAGES, this.#pages); page += 1) {
      await this.#readAgain(new Set([page, this.#pages - 1 - page]));
      if (this.index.size >= this.total) return;
    }
  }

  get #pages(): number {
    return Math.ceil(this.total / this.size);
  }

  async #readPage(page: number): Promise<ListSlice<T>> {
    const slice = await this.#read(page, this.size).catch(async (error: unknown) => {
      const first = { page: this.#read.bind(this) };
      throw (await isLost(first, page, this.size, error)) ? new RepagedError() : error;
    });
    if (isWholeList(slice) || slice.size !== this.size) throw new RepagedError();
    return slice;
  }

  #read(page: number, size: number, isFresh = false): Promise<ListSlice<T>> {
    return this.#retried(() => this.#reader.page(page, size, isFresh));
  }

  async #retried(read: () => Promise<ListSlice<T>>): Promise<ListSlice<T>> {
    for (let tries = 1; ; tries += 1) {
      const largest = this.#largestTotal;
      try {
        const slice = await read();
        // A read that began before another answer came may show an older total.
        if (slice.total < largest) this.#hasShrunk = true;
        return slice;
      } catch (error) {
        if (tries === PAGE_TRIES || !isPassing(error)) throw error;
        const pause = Math.max(error.retryAfterMs ?? 0, PAGE_DELAY_MS * tries);
        // All who need the list would wait for this walk meanwhile. Instead, the walk ends: its beginner gets the service's error, and each
        // other one walks anew or joins a newer walk.
        if (pause > MOST_PAUSE_MS) throw error;
        await clock.sleep(pause);
      }
    }
  }

  #take({ start, items, total }: ListSlice<T>): void {
    this.total = total;
    this.#largestTotal = Math.max(this.#largestTotal, total);
    for (const [at, item] of items.entries()) this.index.add(start + at, item as Record<string, unknown>);
    this.#seen += items.length;
    this.#options.onProgress(Math.min(this.#seen, total), total);
  }
}

const PASSING: ReadonlySet<string> = new Set([
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
]);

const isPassing = (error: unknown): error is UpstreamError =>
  error instanceof UpstreamError && PASSING.has(error.code);
