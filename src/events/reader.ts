import { clock } from '../common/clock.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import { SingleFlight } from '../common/single-flight.ts';
import { holdsNewest, isOfLife, isUnbroken } from './chain.ts';
import { begunAt, decodeCursor, encodeCursor, type LogPosition, type ReadFrom } from './cursor.ts';
import type { Entry, Slice } from './entry.ts';
import { CursorInvalidError, type LogBounds } from './errors.ts';
import { gapError, readFromOldest, readWhole, startsAgain } from './gap.ts';
import { Hub } from './live/hub.ts';
import type {
  EventLog,
  EventPage,
  EventSearch,
  EventStream,
  EventWatch,
  FollowOptions,
  Watcher,
} from './log.ts';
import type { EventMetrics } from './metrics.ts';
import type { SearchFrom } from './search.ts';
import type { Source } from './source.ts';
import { type EventTopics, typeTopics } from './topics.ts';

/** How long a search waits for an index that lacks events, in milliseconds, before it reads the log. */
const PATIENCE_MS = 100;

/** The reading half of an event log, the same over every store: cursors, the chain, and the live followers. */
export class LogReader
  implements
    Pick<
      EventLog,
      | 'readAfter'
      | 'readBefore'
      | 'wholeSince'
      | 'givenUpTo'
      | 'head'
      | 'bounds'
      | 'sealKey'
      | 'follow'
      | 'watch'
    >
{
  readonly #source: Source;
  readonly #hub: Hub;
  /** By client: its index is being completed. */
  readonly #indexing = new SingleFlight<void>();
  #stopped = false;

  constructor(source: Source, metrics: EventMetrics, topics: EventTopics = typeTopics) {
    this.#source = source;
    this.#hub = new Hub(source, metrics, topics);
  }

  async readAfter(
    clientId: string,
    cursor: string | null,
    limit: number,
    search?: EventSearch,
  ): Promise<EventPage> {
    const from = await this.#decode(clientId, cursor);
    const read = () => this.#pageAfter(clientId, from, limit, search);
    return from?.isOldest === true
      ? readFromOldest(read, () => this.#pageAfter(clientId, { ...from, isOldest: false }, 1))
      : read();
  }

  async #pageAfter(
    clientId: string,
    from: ReadFrom | undefined,
    limit: number,
    search?: EventSearch,
  ): Promise<EventPage> {
    const after = from?.isOldest === true ? undefined : from;
    if (search !== undefined) {
      const found = await this.#find(clientId, after, 'on', limit, search);
      if (found !== undefined) return found;
    }
    const position = after?.position ?? null;
    const slice = await this.#readWhole(
      clientId,
      after,
      () => this.#source.read(clientId, position, limit),
      // Who begins at the oldest event has been told of what is lost.
      (read) => isUnbroken(position, read) && (from !== undefined || holdsNewest(read)),
    );
    return page(slice.entries, slice.hasMore);
  }

  async readBefore(
    clientId: string,
    cursor: string | null,
    limit: number,
    search?: EventSearch,
  ): Promise<EventPage> {
    const from = await this.#decode(clientId, cursor);
    // Nothing stands before the oldest event, as nothing stands before the position with which a log begins.
    const before = from?.isOldest === true ? { ...from, position: from.epoch } : from;
    if (search !== undefined) {
      const found = await this.#find(clientId, before, 'back', limit, search);
      if (found !== undefined) return found;
    }
    // The event at the cursor is read too: it names the one before it, which shows that none is missing between them.
    const extra = before === undefined ? 0 : 1;
    const slice = await this.#readWhole(
      clientId,
      before,
      () => this.#source.readBack(clientId, before?.position ?? null, limit + extra),
      (read) => endsAt(before, read),
    );
    if (before?.position === slice.epoch) return page([], false);
    return page(slice.entries.slice(0, slice.entries.length - extra), slice.hasMore);
  }

  async wholeSince(clientId: string): Promise<number | null> {
    const reach = await this.#source.reach(clientId);
    if (reach === undefined) return null;
    const { epoch, first, goneUpTo = -1 } = reach;
    // An event that waited in a spool may have come before this life of the log. Others of its time were lost with the life before.
    return Math.max(begunAt(epoch), Date.parse(first.event.receivedAt) || 0, goneUpTo + 1);
  }

  async givenUpTo(clientId: string): Promise<number | null> {
    return (await this.#source.reach(clientId))?.goneUpTo ?? null;
  }

  async head(clientId: string): Promise<string> {
    return encodeCursor(clientId, await this.#source.head(clientId));
  }

  async bounds(clientId: string): Promise<LogBounds> {
    return startsAgain(clientId, await this.#source.head(clientId));
  }

  sealKey(clientId: string): Promise<Buffer> {
    return this.#source.sealKey(clientId);
  }

  async follow(clientId: string, options: FollowOptions = {}): Promise<EventStream> {
    return this.#hub.follow(clientId, await this.#decode(clientId, options.after ?? null), options);
  }

  watch(clientId: string, topics: readonly string[], watcher: Watcher): Promise<EventWatch> {
    return this.#hub.watch(clientId, topics, watcher);
  }

  stop(withinMs = 0): Promise<void> {
    this.#stopped = true;
    return this.#hub.stop(withinMs);
  }

  /**
   * Completes a client's index in the background, step by step. It enters events that appends have left for a later step, and
   * events that another version has appended. Never rejects: if the index cannot be written now, a later append or search
   * tries again.
   */
  protected completeIndex(clientId: string): Promise<void> {
    return this.#indexing.run(clientId, () => this.#complete(clientId).catch(() => undefined));
  }

  async #complete(clientId: string): Promise<void> {
    while (!this.#stopped && !(await this.#source.catchUp(clientId)));
  }

  /**
   * Searches by the index. Returns undefined if the index lacks events or the position, so that the caller reads the log
   * instead.
   */
  async #find(
    clientId: string,
    at: LogPosition | undefined,
    direction: SearchFrom['direction'],
    limit: number,
    search: EventSearch,
  ): Promise<EventPage | undefined> {
    const from = { position: at?.position ?? null, direction, limit };
    let found = await this.#source.find(clientId, from, search);
    if (found === undefined) {
      await Promise.race([this.completeIndex(clientId), clock.sleep(PATIENCE_MS, { ref: false })]);
      found = await this.#source.find(clientId, from, search);
    }
    // If the index lacks the position, the log itself decides whether there is a gap, because the log is read twice before
    // one is told.
    if (found?.isHeld !== true || (at !== undefined && at.epoch !== found.epoch)) return undefined;
    return page(found.entries, found.hasMore);
  }

  #decode(clientId: string, cursor: string | null): MaybePromise<ReadFrom | undefined> {
    if (cursor === null) return undefined;
    try {
      return decodeCursor(clientId, cursor, (text) => this.#source.isPosition(text));
    } catch {
      // Without them a reader would go on from the end of the log, and miss what the log still holds.
      return this.bounds(clientId).then((bounds) => Promise.reject(new CursorInvalidError(bounds)));
    }
  }

  /** @throws {EventsGapError} if the log lacks what the reader asks for */
  async #readWhole(
    clientId: string,
    at: LogPosition | undefined,
    read: () => Promise<Slice>,
    isWhole: (slice: Slice) => boolean,
  ): Promise<Slice> {
    const both = (slice: Slice): boolean => isOfLife(at, slice) && isWhole(slice);
    const slice = await readWhole(this.#source, clientId, read, both);
    if (slice !== undefined) return slice;
    throw gapError(this.#source, clientId, at, await this.#source.bounds(clientId));
  }
}

/** True if a slice that was read backwards has no gap, and ends with the event at a position, or with the newest. */
function endsAt(at: LogPosition | undefined, slice: Slice): boolean {
  if (at?.position === slice.epoch) return true;
  const end = slice.entries.at(-1)?.position;
  if (!isUnbroken(null, { ...slice, hasMore: true })) return false;
  return at === undefined ? (end ?? slice.epoch) === slice.head : end === at.position;
}

function page(entries: readonly Entry[], hasMore: boolean): EventPage {
  return { events: entries.map((entry) => entry.event), hasMore };
}
