import type { Logger } from '../../common/logger.ts';
import { Lru } from '../../common/lru.ts';
import { SharedWork } from '../call/shared-work.ts';
import { changesTooFast } from './envelope.ts';
import { compareEnds, readEnds } from './list-ends.ts';
import { NamedItems } from './named-items.ts';
import type { PlaceIndex } from './place-index.ts';
import type { ListReader } from './reader.ts';
import { type Walked, walkList } from './walk.ts';
import { type WalkObserver, WalkReport } from './walk-report.ts';

/** How long one walk may take, in milliseconds. */
const WALK_TIMEOUT_MS = 900_000;
/**
 * The first and the last page may confirm an index for max(12 × `LISTS_MAX_AGE`, 10 × the walk's duration): so a list of a million
 * items is not walked all the time.
 */
const CONFIRMED_AGES = 12;
const CONFIRMED_WALKS = 10;
/** The part of that time after which a walk begins in the background, before a caller has to wait for it. */
const RENEW_AFTER = 0.5;
/** How often an operation tries to have a complete index. */
const TRIES = 4;
/** Identities at the service for which an index is known to be complete. */
const MAX_IDENTITIES = 1_000;

/** What is known of changes at a moment: only reads that began later show whether there were more. */
export interface Moment {
  /** In milliseconds of the monotonic clock. */
  readonly at: number;
  /** How many changes of the list had been told of. */
  readonly changes: number;
  /** How many answers had shown another total than the index. */
  readonly differences: number;
  /** True if a read that begins then may not show a change of the client yet. */
  readonly mayMiss: boolean;
}

export interface PlacesOptions {
  /** How long what is known of a list is believed, in milliseconds (`LISTS_MAX_AGE`). */
  readonly maxAgeMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly onWalked?: WalkObserver;
}

interface ListPlacesOptions extends PlacesOptions {
  /** Called when the index is new, or has grown: an answer from before shows other places. */
  readonly onChanged: () => void;
  /** @returns {@link Moment.mayMiss} of now. */
  readonly mayMiss: (now: number) => boolean;
}

/**
 * Knows where the items of one client's list stand, for all callers of that client. It answers two questions. Where was an
 * item last seen? That counts only once the item has been read there. Are the known items all that there are? That is
 * believed for `LISTS_MAX_AGE`; after that the list's two ends confirm it, or a walk over the whole list makes the index
 * again. It is believed no longer once an answer shows another total, or a change is reported. What was read while the service
 * may not have shown a change yet is believed only for the questions that had been asked before.
 *
 * The service does not say whether all tokens of a client see the same (docs/assumptions.md, "what a token sees"). So where an
 * item was seen serves every caller of the client. That the list is whole serves only those whom the service takes for one with the caller who
 * found it out.
 */
export class ListPlaces<T extends object> {
  readonly #options: ListPlacesOptions;
  #walked: Walked | undefined;
  /** The walk under way, and the comparisons of the ends under way, by identity. */
  #walk: SharedWork<void> | undefined;
  readonly #confirmations = new Map<string, SharedWork<boolean>>();
  #walkMs = 0;
  #walkedAt = Number.NEGATIVE_INFINITY;
  /** By identity: the moment as of which the index was known to hold all items. */
  #complete = new Lru<Moment>(MAX_IDENTITIES);
  /** Counts the changes that were told. */
  #changes = 0;
  /** Counts the answers whose total was not that of the index. */
  #differences = 0;
  readonly #named = new NamedItems();
  /** True if the ends have agreed with the index so far. */
  #isConfirmable = false;
  /** Counts the changes to the index. */
  #version = 0;
  /**
   * True if the last answer to a call without parameters was the whole list, false if it was the first page; undefined before
   * the first such answer.
   */
  comesWhole: boolean | undefined;

  constructor(options: ListPlacesOptions) {
    this.#options = options;
  }

  /** The index as it is; undefined before the first walk. */
  get known(): PlaceIndex | undefined {
    return this.#walked?.index;
  }

  get version(): number {
    return this.#version;
  }

  /** Returns the size of the pages from which look-ups are read. */
  pageSize({ paging }: ListReader<T>): number {
    return this.#walked?.size ?? paging.largest;
  }

  /** Returns the moment of a question that is asked now. */
  moment(): Moment {
    const at = this.#options.now();
    const mayMiss = this.#options.mayMiss(at);
    return { at, changes: this.#changes, differences: this.#differences, mayMiss };
  }

  /** Notes that the list has changed, or may have: the index may lack items. */
  markChanged(): void {
    this.#changes += 1;
  }

  /**
   * Notes that an event names an item. If the index lacks it, the list has changed; so it may have while the first walk is under
   * way.
   */
  noteItem(key: string, value: string): void {
    if (this.#walked !== undefined && this.#walked.index.places(key, value).length > 0) return;
    if (this.#named.note(key, value, this.#options.now())) this.markChanged();
  }

  /**
   * Compares the total of an answer with the index.
   *
   * @param version of the index when the answer was asked for. If the index has changed since, the answer may be the older of the
   * two, and shows nothing.
   */
  noteTotal(total: number, version: number): void {
    if (this.#walked === undefined || this.#walked.index.size === total || version !== this.#version) return;
    this.#differences += 1;
  }

  /** True if the index was known to hold all items at `since` or later, or is still believed to. */
  #isComplete({ rest }: ListReader<T>, since: Moment): boolean {
    const complete = this.#complete.get(rest.identity);
    if (complete === undefined) return false;
    const isAsOf = ({ changes, differences }: Moment) =>
      complete.changes >= changes && complete.differences >= differences;
    if (complete.at >= since.at && isAsOf(since)) return true;
    const now = this.moment();
    return now.at - complete.at <= this.#options.maxAgeMs && isAsOf(now) && !complete.mayMiss;
  }

  /** Returns the index, however old; makes it if there is none. */
  async index(reader: ListReader<T>): Promise<PlaceIndex> {
    for (;;) {
      if (this.#walked !== undefined) return this.#walked.index;
      await this.walk(reader);
    }
  }

  /**
   * Makes sure that the index holds all items.
   *
   * @param since when the question was asked.
   * @throws UpstreamError if the list cannot be read, or not within the time of the operation.
   */
  async ensureComplete(reader: ListReader<T>, since: Moment): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (this.#isComplete(reader, since)) {
        const age = this.#options.now() - this.#walkedAt;
        if (this.#confirmableMs > 0 && age > RENEW_AFTER * this.#confirmableMs) this.#beginWalk(reader);
        return;
      }
      if (!(await this.confirm(reader))) await this.walk(reader);
    }
    if (!this.#isComplete(reader, since)) throw changesTooFast(reader.route);
  }

  /** Waits for a new index, from the walk under way or from one that begins now. */
  async walk(reader: ListReader<T>): Promise<void> {
    const others = this.#walk;
    if (others === undefined) {
      await reader.rest.within(this.#beginWalk(reader), stillReading(reader));
      return;
    }
    // If another caller's walk fails, this caller walks itself, unless another has begun already.
    await reader.rest.within(others, stillReading(reader)).catch((error: unknown) => {
      if (this.#walk === others) throw error;
    });
  }

  /** Returns the walk under way, or begins one. It goes on when nobody waits for it any more. */
  #beginWalk(reader: ListReader<T>): SharedWork<void> {
    if (this.#walk !== undefined) return this.#walk;
    const walk = new SharedWork<void>();
    const end = (): void => {
      this.#walk = undefined;
    };
    this.#walk = walk;
    walk.result.then(end, end);
    reader.rest.keep(walk, WALK_TIMEOUT_MS);
    walk.begin((party) => this.#go(reader.over(reader.rest.sharedBy(party, false))));
    return walk;
  }

  async #go(reader: ListReader<T>): Promise<void> {
    const { now, logger, onWalked } = this.#options;
    const { clientId } = reader.rest;
    const report = new WalkReport({ route: reader.route, clientId, now, logger, onWalked });
    const start = now();
    let lastReads = this.moment();
    const walking = walkList(reader, {
      onLastReads: () => {
        lastReads = this.moment();
      },
      onProgress: (seen, total) => report.progress(seen, total),
    });
    const walked = await walking.catch((error: unknown) => {
      report.failed(error);
      throw error;
    });
    this.#walkedAt = now();
    this.#walkMs = this.#walkedAt - start;
    this.#walked = walked;
    this.#complete = new Lru(MAX_IDENTITIES);
    this.#change(reader, lastReads);
    this.#isConfirmable = true;
    report.read(walked.index.size);
  }

  /**
   * Notes that the index is another from now on, and holds all items as of `moment`. Totals that differed from the index before
   * show nothing of it.
   */
  #change({ rest }: ListReader<T>, moment: Moment): void {
    this.#version += 1;
    this.#complete.set(rest.identity, { ...moment, differences: this.#differences });
    this.#options.onChanged();
  }

  /** How long after its walk an index may be confirmed, in milliseconds. */
  get #confirmableMs(): number {
    const { maxAgeMs } = this.#options;
    return maxAgeMs === 0 ? 0 : Math.max(CONFIRMED_AGES * maxAgeMs, CONFIRMED_WALKS * this.#walkMs);
  }

  /**
   * Finds out from the list's two ends whether the index still holds all items; false also where it is too old for that. All who wait
   * under one identity share one comparison.
   */
  async confirm(reader: ListReader<T>): Promise<boolean> {
    const { identity } = reader.rest;
    const others = this.#confirmations.get(identity);
    if (others?.isGone === false) {
      // If another caller's comparison fails, this caller makes its own, unless it has left or has no time.
      const confirmed = await reader.rest.within(others, stillReading(reader)).catch((error: unknown) => {
        if (this.#confirmations.get(identity) === others) throw error;
      });
      return confirmed ?? this.confirm(reader);
    }
    const walked = this.#walked;
    if (walked === undefined || !this.#isConfirmable) return false;
    if (this.#options.now() - this.#walkedAt > this.#confirmableMs) return false;
    const confirmation = new SharedWork<boolean>();
    const end = (): void => {
      if (this.#confirmations.get(identity) === confirmation) this.#confirmations.delete(identity);
    };
    this.#confirmations.set(identity, confirmation);
    confirmation.result.then(end, end);
    const confirmed = reader.rest.within(confirmation, stillReading(reader));
    confirmation.begin((party) => this.#compare(reader.over(reader.rest.sharedBy(party, true)), walked));
    return confirmed;
  }

  async #compare(reader: ListReader<T>, walked: Walked): Promise<boolean> {
    const { index, size } = walked;
    const started = this.moment();
    const slices = await readEnds(reader, index, size);
    if (this.#walked !== walked) return true;
    const verdict = compareEnds(reader, index, size, slices);
    this.#isConfirmable = verdict !== 'changed';
    if (verdict === 'as known') this.#complete.set(reader.rest.identity, started);
    else if (verdict === 'grown') this.#change(reader, started);
    // What one identity sees shows that the index does not hold: nobody believes it any more.
    else this.#complete = new Lru(MAX_IDENTITIES);
    return this.#isConfirmable;
  }
}

const stillReading = ({ route }: { readonly route: string }): string =>
  `The service's list GET ${route} is still being read; ask again in a while.`;
