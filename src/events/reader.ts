import { isUnbroken } from './chain.ts';
import { decodeCursor, encodeCursor, type Place } from './cursor.ts';
import type { Entry, Slice } from './entry.ts';
import { gapError } from './live/feed.ts';
import { Hub } from './live/hub.ts';
import type { EventLog, EventPage, EventStream, EventWatch, FollowOptions, Watcher } from './log.ts';
import type { EventMetrics } from './metrics.ts';
import type { Source } from './source.ts';
import { type EventTopics, typeTopics } from './topics.ts';

/** The reading half of an event log, the same over every store: cursors, the chain, and the live followers. */
export class LogReader
  implements Pick<EventLog, 'readAfter' | 'readBefore' | 'head' | 'sealKey' | 'follow' | 'watch'>
{
  readonly #source: Source;
  readonly #metrics: EventMetrics;
  readonly #hub: Hub;

  constructor(source: Source, metrics: EventMetrics, topics: EventTopics = typeTopics) {
    this.#source = source;
    this.#metrics = metrics;
    this.#hub = new Hub(source, metrics, topics);
  }

  async readAfter(clientId: string, cursor: string | null, limit: number): Promise<EventPage> {
    const after = this.#place(clientId, cursor);
    const slice = await this.#source.read(clientId, after?.position ?? null, limit);
    if (!this.#isOfThisLife(after, slice) || !isUnbroken(after?.position ?? null, slice)) {
      throw await this.#gap(clientId);
    }
    return page(slice.entries, slice.hasMore);
  }

  async readBefore(clientId: string, cursor: string | null, limit: number): Promise<EventPage> {
    const before = this.#place(clientId, cursor);
    // The event at the cursor is read as well: it proves that the one before it is the one before it.
    const extra = before === undefined ? 0 : 1;
    const slice = await this.#source.readBack(clientId, before?.position ?? null, limit + extra);
    if (!this.#isOfThisLife(before, slice)) throw await this.#gap(clientId);
    if (before?.position === slice.epoch) return page([], false);
    const end = slice.entries.at(-1)?.position;
    const chained = isUnbroken(null, { ...slice, hasMore: true });
    if (!chained || (before === undefined ? (end ?? slice.epoch) !== slice.head : end !== before.position)) {
      throw await this.#gap(clientId);
    }
    return page(slice.entries.slice(0, slice.entries.length - extra), slice.hasMore);
  }

  async head(clientId: string): Promise<string> {
    return encodeCursor(clientId, await this.#source.head(clientId));
  }

  sealKey(clientId: string): Promise<Buffer> {
    return this.#source.sealKey(clientId);
  }

  async follow(clientId: string, options: FollowOptions = {}): Promise<EventStream> {
    return this.#hub.follow(clientId, this.#place(clientId, options.after ?? null), options);
  }

  watch(clientId: string, topics: readonly string[], watcher: Watcher): Promise<EventWatch> {
    return this.#hub.watch(clientId, topics, watcher);
  }

  stop(): Promise<void> {
    return this.#hub.stop();
  }

  #place(clientId: string, cursor: string | null): Place | undefined {
    if (cursor === null) return undefined;
    return decodeCursor(clientId, cursor, (text) => this.#source.isPosition(text));
  }

  /** A cursor of another life than the one that was just read names events that were lost with that life. */
  #isOfThisLife(place: Place | undefined, slice: Slice): boolean {
    return place === undefined || place.epoch === slice.epoch;
  }

  async #gap(clientId: string): Promise<Error> {
    this.#metrics.gap();
    return gapError(clientId, await this.#source.bounds(clientId));
  }
}

function page(entries: readonly Entry[], hasMore: boolean): EventPage {
  return { events: entries.map((entry) => entry.event), hasMore };
}
