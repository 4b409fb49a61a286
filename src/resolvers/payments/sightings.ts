import { clock } from '../../common/clock.ts';
import { CursorInvalidError, EventsGapError } from '../../events/errors.ts';
import type { EventLog, EventPage, StoredEvent } from '../../events/log.ts';
import { isUuid } from '../../upstream/call/path.ts';
import { decodeEvent } from '../events/event.ts';
import { namedIds } from '../events/named-ids.ts';

/** A transaction, or what else has such an id, that events of the log name. */
export interface Sighting {
  /** In lower case. */
  readonly id: string;
  /** When the first event that names it was received, in ms since the epoch. */
  readonly at: number;
}

/** What the log is read by. */
export type SightedLog = Pick<EventLog, 'readAfter' | 'givenUpTo'>;

/** Events that one look reads, page by page; what is left is read by the next. */
const PAGE = 200;
const MOST_PAGES = 25;
/**
 * Ids that are kept of a client, the latest ones. Whoever remembers something of each id keeps as many: with fewer, each look
 * would read again what the look before it had read.
 */
export const MOST_IDS = 60_000;
/**
 * How long before a payment the log is read too, in ms. A movement that was named then is not the payment's, however often it is named
 * again: receipts come up to three hours later. One that was named earlier still, and is named again after the payment was sent, seems new here.
 * An event that tells hours later what has become of a movement can do so: `createdAt` then tells its age (`isEarly`, `isUndated`).
 */
const NAMED_AGAIN_MS = 4 * 3_600_000;
/** Looks that come sooner than this after another share what that has found, in ms. */
const FRESH_MS = 500;

/** The ids that may be those of a payment's transaction. A credit from outside is no payment's. */
function idsIn(stored: StoredEvent, clientId: string): readonly string[] {
  const event = decodeEvent(stored);
  if (event === undefined) return [];
  if (event.type === 'STATUS_UPDATE') return namedIds(event.payload).filter((id) => id !== clientId);
  const id =
    event.type === 'CEP' ? event.bodyId : event.subCategory === 'SPEI_CREDIT' ? null : event.transactionId;
  return id !== null && isUuid(id) ? [id.toLowerCase()] : [];
}

/**
 * The ids that the events of one client name since some moment. The log is read through once, and on from there with each look: looks for
 * many payments share it.
 */
export class Sightings {
  readonly #log: SightedLog;
  readonly #clientId: string;
  readonly #ids = new Map<string, { id: string; at: number }>();
  /** The latest of the ids that were dropped, as there were too many; in ms since the epoch. */
  #droppedUpTo = Number.NEGATIVE_INFINITY;
  /** Whether the log has been read to its end. */
  #isWhole = false;
  /** From when on the log held every event as it was begun to be read; what was given up since has been read. In ms since the epoch. */
  #wholeFrom = Number.NEGATIVE_INFINITY;
  /** When it was noticed last that the log had lost what it was to keep. */
  #lostAt = Number.NEGATIVE_INFINITY;
  #from = Number.POSITIVE_INFINITY;
  #cursor: string | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  constructor(log: SightedLog, clientId: string) {
    this.#log = log;
    this.#clientId = clientId;
  }

  /**
   * Those that were first named from this time on, in ms since the epoch, the earliest first; not those that the log shows as named in the
   * {@link NAMED_AGAIN_MS} before.
   *
   * @param now likewise
   * @returns `unread` while more of the log is to be read; `too-many` where ids of that time, or of what is read before it, were dropped;
   *   `given-up` where the log had given up events of that time, or lost them, before they were read. A log that has begun later and lost nothing is whole.
   * @throws what the log throws
   */
  async since(time: number, now: number): Promise<readonly Sighting[] | 'unread' | 'too-many' | 'given-up'> {
    // Nothing is begun anew for what the log does not hold: what was read of it stays known.
    if (time < this.#from && time < (await this.#reach())) return 'given-up';
    // Nobody begins anew while another reads on: what lies before that one's beginning would never be read. Asked again
    // each time, since of all who have waited another may be the first to go on.
    while (this.#looking !== undefined) await this.#looking;
    if (time < this.#from) {
      this.#from = time;
      this.#begin();
    }
    // The clock may have been set back since.
    if (Math.abs(now - this.#lookedAt) >= FRESH_MS) {
      this.#looking = this.#look(now).finally(() => {
        this.#looking = undefined;
      });
      await this.#looking;
    }
    if (time < this.#wholeFrom) return 'given-up';
    if (this.#droppedUpTo >= time - NAMED_AGAIN_MS) return 'too-many';
    if (!this.#isWhole) return 'unread';
    return [...this.#ids.values()].filter(({ at }) => at >= time).sort((one, other) => one.at - other.at);
  }

  #begin(): void {
    this.#cursor = null;
    this.#ids.clear();
    this.#droppedUpTo = Number.NEGATIVE_INFINITY;
    this.#isWhole = false;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  async #look(now: number): Promise<void> {
    this.#isWhole = false;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      if (page > 0) await clock.immediate();
      const { events, hasMore } = await this.#page(now);
      for (const stored of events) this.#note(stored);
      this.#cursor = events.at(-1)?.cursor ?? this.#cursor;
      this.#isWhole = !hasMore || events.length === 0;
      if (this.#isWhole) break;
    }
    this.#lookedAt = now;
  }

  /** If the log no longer holds the cursor's event, reading begins again at the oldest event that it holds. */
  async #page(now: number): Promise<EventPage> {
    if (this.#cursor === null) return this.#firstPage(now);
    try {
      return await this.#read(this.#cursor);
    } catch (error) {
      const isGap = error instanceof EventsGapError;
      if (!isGap && !(error instanceof CursorInvalidError)) throw error;
      // Of what was given up the log tells when it came; of what it has lost nobody does.
      if (!isGap || error.gap.reason !== 'trimmed') this.#lostAt = now;
      // The ids stay: they say of what is named again when it was named first.
      this.#cursor = null;
      return this.#firstPage(now);
    }
  }

  async #firstPage(now: number): Promise<EventPage> {
    const page = await this.#read(null).catch((error: unknown) => {
      // The log has had events, and holds none. They were lost before now: what is lost later shows after this cursor.
      if (!(error instanceof EventsGapError)) throw error;
      this.#lostAt = now;
      this.#cursor = error.oldest;
      return this.#read(error.oldest);
    });
    // Asked once it is read: what is given up from now on comes after it, and shows as a gap.
    this.#wholeFrom = await this.#reach();
    return page;
  }

  #read(cursor: string | null): Promise<EventPage> {
    return this.#log.readAfter(this.#clientId, cursor, PAGE, { receivedFrom: this.#from - NAMED_AGAIN_MS });
  }

  /** From when on the log holds every event, as far as anybody knows, in ms since the epoch. */
  async #reach(): Promise<number> {
    const gone = await this.#log.givenUpTo(this.#clientId);
    return Math.max(this.#lostAt, gone === null ? Number.NEGATIVE_INFINITY : gone + 1);
  }

  #note(stored: StoredEvent): void {
    const at = Date.parse(stored.receivedAt);
    for (const id of idsIn(stored, this.#clientId.toLowerCase())) {
      const known = this.#ids.get(id);
      if (known === undefined) this.#ids.set(id, { id, at });
      else known.at = Math.min(known.at, at);
    }
    for (const { id, at: droppedAt } of this.#ids.values()) {
      if (this.#ids.size <= MOST_IDS) break;
      this.#ids.delete(id);
      this.#droppedUpTo = Math.max(this.#droppedUpTo, droppedAt);
    }
  }
}
