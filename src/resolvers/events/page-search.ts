import type { MaybePromise } from '../../common/maybe-promise.ts';
import { EventsGapError } from '../../events/errors.ts';
import type { EventPage, EventSearch, StoredEvent } from '../../events/log.ts';
import type { EventReads, LogScan } from '../../events/sealed-reads.ts';
import type { Budget } from '../../operation/budget.ts';
import type { Identity } from '../../operation/identity.ts';
import { LogReadingError } from '../errors.ts';
import { decodeEvent, type Event } from './event.ts';

/** Events read from the log at a time, and at most for one page: a filter that rarely matches must not read it all. */
const BATCH = 200;
const MAX_SCANNED = 5_000;
/** Receipts whose owners are asked for at a time. */
const ASKED_AT_ONCE = 8;

/** What is looked for. */
export interface Wanted {
  readonly isBack: boolean;
  readonly size: number;
  /** The cursor to begin at; null for the end of the log at which the direction begins. */
  readonly from: string | null;
  /** What the log's index is asked for. */
  readonly search: EventSearch | undefined;
  /** Whether some events may not match. */
  readonly isFiltered: boolean;
  readonly matches: (event: Event) => MaybePromise<boolean>;
}

/** An event of a batch, undefined where this version does not know its type, and whether it is wanted. */
interface Asked {
  readonly event: Event | undefined;
  readonly cursor: string;
  /** The error where the operation may have no more owners asked for. */
  readonly verdict: MaybePromise<boolean | LogReadingError>;
}

/** What was found. */
export interface Found {
  /** In the order in which they were come upon. */
  readonly events: readonly Event[];
  /** Whether there is more in the direction of reading. */
  readonly goesOn: boolean;
  /** Where to read on from: the last event found, or where reading ended. */
  readonly end: string | null;
}

/** What of an operation's context a search needs. */
export interface SearchContext {
  readonly identity: { readonly caller: Pick<Identity['caller'], 'clientId' | 'customerId'> };
  readonly budget: Pick<Budget, 'log'>;
  readonly reads: { readonly events: EventReads };
}

/**
 * Reads the log for one page. A caller who may see every event of the client gets what was found within the bounds of a page and
 * of the operation, with a cursor to read on from. A caller narrowed to a customer never learns where reading ended, as that would
 * tell how many events of other customers there are, and when they came. For such a caller the gateway reads until the page is
 * full or the log ends; if a bound comes first, it answers an error. Where the bound comes while the gateway looks for what follows
 * a full page, the page may go on.
 */
export class PageSearch {
  readonly #wanted: Wanted;
  readonly #context: SearchContext;
  readonly #isNarrowed: boolean;
  readonly #found: Event[] = [];
  #scanned = 0;
  #position: string | null = null;
  /** The bound that came; undefined where it is that of time, or none. */
  #bound: LogReadingError | undefined;

  constructor(wanted: Wanted, context: SearchContext) {
    this.#wanted = wanted;
    this.#context = context;
    this.#isNarrowed = context.identity.caller.customerId !== undefined;
  }

  /** @throws LogReadingError where the operation may read no more, and there is nothing to show for it. */
  async run(): Promise<Found> {
    const { events } = this.#context.reads;
    const { caller } = this.#context.identity;
    const reading = this.#context.budget.log;
    const { isBack, size, from, search } = this.#wanted;
    // By name a narrowed caller's own events are found without those of others.
    if (this.#isNarrowed && search?.name === undefined && !reading.beginWholeRead()) {
      throw new LogReadingError('too many of its fields read the whole event log');
    }
    const sealed = events.scan?.(caller.clientId);
    const scan: LogScan = sealed === undefined ? unsealed(events) : await reading.timed(sealed);
    const start = from === null ? null : await scan.open(from);
    this.#position = start;
    for (;;) {
      let page: EventPage | undefined;
      try {
        page = await this.#readBatch(scan);
      } catch (error) {
        if (!(error instanceof EventsGapError) || this.#position === start) throw error;
        // Events next to the last batch have been trimmed. Back, the log ends there; onwards it may still go on from the start.
        if (isBack && error.gap.reason === 'trimmed') return this.#ended(scan, false);
        this.#found.length = 0;
        this.#position = start;
        continue;
      }
      if (page === undefined) return this.#stopped(scan);
      if ((await this.#look(page.events)) === 'stopped') return this.#stopped(scan);
      if (this.#found.length > size) return this.#ended(scan, true);
      if (!page.hasMore) return this.#ended(scan, false);
    }
  }

  /** The next batch; undefined where no more may be read. */
  async #readBatch(scan: LogScan): Promise<EventPage | undefined> {
    const { caller } = this.#context.identity;
    const reading = this.#context.budget.log;
    const { isBack, isFiltered, size, search } = this.#wanted;
    if (reading.isOver) return undefined;
    // A search finds mostly wanted events, so it asks for few: a hundred look-ups at once spend little of the budget.
    const isMostlyWanted = isFiltered ? search !== undefined && this.#scanned === 0 : !this.#isNarrowed;
    const wanted = isMostlyWanted ? Math.min(BATCH, size + 1) : BATCH;
    const limit = this.#isNarrowed ? wanted : reading.take(Math.min(wanted, MAX_SCANNED - this.#scanned));
    if (limit === 0) return undefined;
    await reading.turn();
    const read = isBack ? scan.readBefore : scan.readAfter;
    const page = await reading.timed(read(caller.clientId, this.#position, limit, search));
    // A search that shows fewer events, and may show more, has passed over others.
    const scanned = page.hasMore ? limit : page.events.length;
    this.#scanned += scanned;
    if (!this.#isNarrowed) reading.putBack(limit - scanned);
    return isBack ? { ...page, events: page.events.toReversed() } : page;
  }

  /** Looks through a batch until one event more is found than the page holds. Returns whether a bound came first. */
  async #look(batch: readonly StoredEvent[]): Promise<'stopped' | 'done'> {
    const { matches, size } = this.#wanted;
    const reading = this.#context.budget.log;
    for (let next = 0; next < batch.length && this.#found.length <= size; ) {
      const asked: Asked[] = [];
      let waiting = 0;
      for (; next < batch.length && waiting < ASKED_AT_ONCE; next += 1) {
        const stored = batch[next];
        if (stored === undefined) break;
        const event = decodeEvent(stored);
        const verdict = event !== undefined && matches(event);
        const isKnown = typeof verdict === 'boolean';
        asked.push({ event, cursor: stored.cursor, verdict: isKnown ? verdict : verdict.catch(boundOf) });
        if (!isKnown) waiting += 1;
      }
      const verdicts = Promise.all(asked.map(({ verdict }) => verdict));
      const known = waiting === 0 ? await verdicts : await reading.inTime(verdicts);
      if (known === undefined) return 'stopped';
      for (const [index, { event, cursor }] of asked.entries()) {
        if (this.#found.length > size) break;
        const verdict = known[index];
        if (verdict instanceof LogReadingError) {
          this.#bound = verdict;
          return 'stopped';
        }
        if (event !== undefined && verdict === true) this.#found.push(event);
        this.#position = cursor;
      }
    }
    return 'done';
  }

  /** The page is full, or the log has ended. */
  #ended(scan: LogScan, goesOn: boolean): Found {
    const events = this.#found
      .slice(0, this.#wanted.size)
      .map((event) => ({ ...event, cursor: scan.seal(event.cursor) }));
    return { events, goesOn, end: events.at(-1)?.cursor ?? null };
  }

  /**
   * No more may be read. What has been looked through need not be again: the page ends where reading ended. A full page of a narrowed
   * caller ends with its last event, as any other.
   */
  #stopped(scan: LogScan): Found {
    this.#context.budget.log.signal.throwIfAborted();
    const ended = this.#ended(scan, true);
    if (this.#isNarrowed && ended.events.length === this.#wanted.size) return ended;
    if (this.#isNarrowed || this.#position === this.#wanted.from) {
      throw this.#bound ?? new LogReadingError('reading the event log takes longer than it may');
    }
    return { ...ended, end: this.#position };
  }
}

/** Returns the error of a bound as what is known of an event: those before it may fill the page. */
function boundOf(error: unknown): LogReadingError {
  if (error instanceof LogReadingError) return error;
  throw error;
}

/** Scans a log whose cursors are given out as they are. */
const unsealed = (events: EventReads): LogScan => ({
  readAfter: (...how) => events.readAfter(...how),
  readBefore: (...how) => events.readBefore(...how),
  open: (cursor) => cursor,
  seal: (cursor) => cursor,
});
