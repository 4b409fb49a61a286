import type { Logger } from '../../common/logger.ts';
import { SingleFlight } from '../../common/single-flight.ts';
import { UpstreamError } from '../call/errors.ts';
import type { Rest } from '../call/rest.ts';
import { SharedWork } from '../call/shared-work.ts';
import { isWhole, type ListDefinition, type Paging, readSlice, type Slice } from './paging.ts';
import type { PlaceIndex } from './place-index.ts';
import { type Walked, walkList } from './walk.ts';

/** One of each is under way at a time. */
const WALK = 'walk';
const CONFIRMATION = 'confirmation';
/** How long one walk may take, in milliseconds. */
const WALK_TIMEOUT_MS = 900_000;
/** How often the log tells how far a walk is, in milliseconds. */
const PROGRESS_MS = 5_000;
/**
 * Two calls can confirm an index for as many times its age as this, and for as many times the walk's own duration, so that
 * a list of a million items is not walked all the time.
 */
const CONFIRMED_AGES = 12;
const CONFIRMED_WALKS = 10;
/** The part of that time after which the next index is made in the background, before anybody has to wait for it. */
const RENEW_AFTER = 0.5;
/** How often what is known of a list is made good within one operation. */
const TRIES = 4;

export interface PlacesOptions {
  /** How long what is known of a list is believed, in milliseconds (`LISTS_MAX_AGE`). */
  readonly maxAgeMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly logger: Logger;
}

interface ListPlacesOptions extends PlacesOptions {
  /** Told when there is a new index. */
  readonly onWalked: () => void;
}

/**
 * Where the items of one client's list stand, shared by all callers of that client. It answers two questions: where an item
 * was last seen, which is believed only once it has been read there; and whether the items known are all that there are,
 * which is believed for `LISTS_MAX_AGE`. After that two calls confirm it, or a walk over the whole list makes it new. It
 * ends at once when an answer shows another total, and when somebody says that the list has changed.
 */
export class ListPlaces<T extends object> {
  readonly #list: ListDefinition<T>;
  readonly #paging: Paging;
  readonly #options: ListPlacesOptions;
  #walked: Walked | undefined;
  readonly #walks = new SingleFlight<void, SharedWork<void>>();
  readonly #confirmations = new SingleFlight<boolean, SharedWork<boolean>>();
  #walkMs = 0;
  #walkedAt = Number.NEGATIVE_INFINITY;
  /** As of when the index was known to hold all items. */
  #confirmedAt = Number.NEGATIVE_INFINITY;
  /** Whether something has come up since that says that it does not. */
  #isDoubted = false;
  /** The same for the index that a walk is about to leave. */
  #isWalkDoubted = false;
  #confirmable = false;
  /** Grows with each change to the index. */
  #version = 0;
  /** How the list came last when it was asked for without parameters: whole, or its first page. */
  comesWhole: boolean | undefined;

  constructor(list: ListDefinition<T>, paging: Paging, options: ListPlacesOptions) {
    this.#list = list;
    this.#paging = paging;
    this.#options = options;
  }

  /** The index as it is; undefined before the first walk. */
  get index(): PlaceIndex | undefined {
    return this.#walked?.index;
  }

  get version(): number {
    return this.#version;
  }

  /** How large a page is in which look-ups are read. */
  get pageSize(): number {
    return this.#walked?.size ?? this.#paging.largest;
  }

  /** Something has changed the list, or may have: what is known of it is no longer all that there is. */
  doubt(): void {
    this.#isDoubted = true;
    this.#isWalkDoubted = true;
  }

  /** Takes note of the total that an answer has shown. */
  observe(total: number): void {
    // An answer that came before a walk was over says nothing of the index that the walk leaves.
    if (this.#walked !== undefined && this.#walked.index.size !== total) this.#isDoubted = true;
  }

  /** Whether the index was known to hold all items at `since`, or is to be believed now. */
  isComplete(since: number): boolean {
    if (this.#walked === undefined || this.#isDoubted) return false;
    return this.#confirmedAt >= since || this.#options.now() - this.#confirmedAt <= this.#options.maxAgeMs;
  }

  /** An index, of whatever age; makes the first one. */
  async places(rest: Rest): Promise<PlaceIndex> {
    for (;;) {
      if (this.#walked !== undefined) return this.#walked.index;
      await this.#join(rest);
    }
  }

  /**
   * Makes the index hold all items.
   *
   * @param since when the question was asked.
   * @throws UpstreamError when the list cannot be read, or not in the time of the operation.
   */
  async complete(rest: Rest, since: number): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (this.isComplete(since)) {
        this.#renewEarly(rest);
        return;
      }
      if (!(await this.#confirm(rest))) await this.#join(rest);
    }
    if (!this.isComplete(since)) {
      throw new UpstreamError(
        'UPSTREAM_UNAVAILABLE',
        `The service's list GET ${this.#list.route} changes faster than it can be read.`,
      );
    }
  }

  /** Waits for a new index: for the walk under way, or for one that begins now. */
  async renew(rest: Rest): Promise<void> {
    await this.#join(rest);
  }

  async #join(rest: Rest): Promise<void> {
    const others = this.#walks.underWay(WALK)?.details;
    if (others === undefined) {
      await rest.within(this.#begin(rest), this.#waiting);
      return;
    }
    // The failure of another caller's walk is not this caller's: it walks itself, unless somebody else already does.
    await rest.within(others, this.#waiting).catch((error: unknown) => {
      if (this.#walks.underWay(WALK)?.details === others) throw error;
    });
  }

  get #waiting(): string {
    return `The service's list GET ${this.#list.route} is still being read; ask again in a while.`;
  }

  /** The walk under way, or one that begins now. It goes on when nobody waits for it any more. */
  #begin(rest: Rest): SharedWork<void> {
    const others = this.#walks.underWay(WALK)?.details;
    if (others !== undefined) return others;
    const walk = new SharedWork<void>();
    this.#walks.begin(WALK, '', walk.result, walk);
    rest.keep(walk, WALK_TIMEOUT_MS);
    walk.begin((party) => this.#go(rest.sharedBy(party, false)));
    return walk;
  }

  async #go(rest: Rest): Promise<void> {
    const { now, logger } = this.#options;
    const { route } = this.#list;
    const start = now();
    let told = start;
    const walked = await walkList(rest, this.#list, this.#paging, {
      now,
      onLastReads: () => {
        this.#isWalkDoubted = false;
      },
      onProgress: (seen, total) => {
        if (now() - told < PROGRESS_MS) return;
        told = now();
        logger.info({ route, seen, total }, 'A list is being read');
      },
    });
    this.#walkedAt = now();
    this.#walkMs = this.#walkedAt - start;
    this.#walked = walked;
    this.#confirmedAt = walked.seenAt;
    this.#isDoubted = this.#isWalkDoubted;
    this.#confirmable = true;
    this.#version += 1;
    this.#options.onWalked();
    if (told > start) {
      logger.info(
        { route, items: walked.index.size, milliseconds: Math.round(this.#walkMs) },
        'A list has been read',
      );
    }
  }

  get #lifeMs(): number {
    const { maxAgeMs } = this.#options;
    return maxAgeMs === 0 ? 0 : Math.max(CONFIRMED_AGES * maxAgeMs, CONFIRMED_WALKS * this.#walkMs);
  }

  #renewEarly(rest: Rest): void {
    const age = this.#options.now() - this.#walkedAt;
    if (this.#lifeMs > 0 && age > RENEW_AFTER * this.#lifeMs) this.#begin(rest);
  }

  /** Finds out by its first and its last page whether the index still holds all items. One at a time, for all who wait. */
  async #confirm(rest: Rest): Promise<boolean> {
    const others = this.#confirmations.underWay(CONFIRMATION)?.details;
    if (others?.isGone === false) {
      // Another caller's failure is not this caller's, unless it has left, or has no time.
      const confirmed = await rest.within(others, this.#waiting).catch((error: unknown) => {
        if (this.#confirmations.underWay(CONFIRMATION)?.details === others) throw error;
      });
      return confirmed ?? this.#confirm(rest);
    }
    const walked = this.#walked;
    if (walked === undefined || !this.#confirmable) return false;
    if (this.#options.now() - this.#walkedAt > this.#lifeMs) return false;
    const confirmation = new SharedWork<boolean>();
    this.#confirmations.begin(CONFIRMATION, '', confirmation.result, confirmation);
    const confirmed = rest.within(confirmation, this.#waiting);
    confirmation.begin((party) => this.#compare(rest.sharedBy(party, true), walked));
    return confirmed;
  }

  async #compare(rest: Rest, walked: Walked): Promise<boolean> {
    const { index, size } = walked;
    const startedAt = this.#options.now();
    const lastPage = Math.max(0, Math.ceil(index.size / size) - 1);
    const read = (page: number) => readSlice(rest, this.#list, this.#paging, page, size);
    this.#isDoubted = false;
    let agrees = false;
    try {
      const [head, tail] = await Promise.all([read(0), lastPage === 0 ? undefined : read(lastPage)]);
      const slices = tail === undefined ? [head] : [head, tail];
      // What has come at the end may stand on a page of its own.
      const hasMore = Math.ceil(head.total / size) - 1 === lastPage + 1;
      if (hasMore) slices.push(await read(lastPage + 1));
      if (this.#walked !== walked) return true;
      agrees = this.#agrees(index, size, slices);
      this.#confirmable = agrees;
      if (agrees) this.#confirmedAt = startedAt;
      return agrees;
    } finally {
      if (!agrees && this.#walked === walked) this.#isDoubted = true;
    }
  }

  /** Compares two ends of the list with the index, and adds what has come at one of them. */
  #agrees(index: PlaceIndex, size: number, slices: readonly Slice<T>[]): boolean {
    const [head] = slices;
    if (head === undefined) return false;
    const isOdd = (slice: Slice<T>) => slice.total !== head.total || slice.size !== size || isWhole(slice);
    if (slices.some(isOdd)) return false;
    const grown = head.total - index.size;
    if (grown < 0 || grown > size) return false;
    if (grown === 0) return slices.every((slice) => this.#isAsKnown(index, slice, 0));
    if (this.#isAsKnown(index, head, 0)) return this.#growTail(index, slices, grown);
    return this.#growHead(index, head, grown);
  }

  /** Whether each item of a slice stands where the index has it, moved by `by` places. */
  #isAsKnown(index: PlaceIndex, { start, items }: Slice<T>, by: number): boolean {
    return items.every((item, at) => index.placeOf(this.#idOf(item)) === start + at - by);
  }

  #growTail(index: PlaceIndex, slices: readonly Slice<T>[], grown: number): boolean {
    const end = index.size;
    const part = (slice: Slice<T>, from: number, to: number): Slice<T> => ({
      ...slice,
      start: Math.max(slice.start, from),
      items: slice.items.filter((_, at) => slice.start + at >= from && slice.start + at < to),
    });
    const come = slices.map((slice) => part(slice, end, end + grown)).filter(({ items }) => items.length > 0);
    if (!slices.every((slice) => this.#isAsKnown(index, part(slice, 0, end), 0))) return false;
    // What did not fit on the pages that were read, a walk finds.
    if (come.reduce((sum, { items }) => sum + items.length, 0) !== grown) return false;
    return this.#addAll(
      index,
      come.flatMap(({ items }) => items),
      end,
    );
  }

  #growHead(index: PlaceIndex, head: Slice<T>, grown: number): boolean {
    const old = { ...head, start: head.start + grown, items: head.items.slice(grown) };
    if (old.items.length === 0 || !this.#isAsKnown(index, old, grown)) return false;
    const come = head.items.slice(0, grown);
    if (come.some((item) => index.placeOf(this.#idOf(item)) !== undefined)) return false;
    index.shift(grown);
    return this.#addAll(index, come, 0);
  }

  #addAll(index: PlaceIndex, items: readonly T[], start: number): boolean {
    if (items.some((item) => index.placeOf(this.#idOf(item)) !== undefined)) return false;
    for (const [at, item] of items.entries()) index.add(start + at, item as Record<string, unknown>);
    this.#version += 1;
    return true;
  }

  #idOf(item: T): string {
    // The id of a list's items is a string: `identified` has seen to it.
    return String(Reflect.get(item, this.#list.keys[0] ?? ''));
  }
}
