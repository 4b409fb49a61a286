import { setTimeout as pause } from 'node:timers/promises';
import type { Place } from '../cursor.ts';
import type { Entry } from '../entry.ts';
import { EventsGapError, SlowConsumerError, StoreUnavailableError } from '../errors.ts';
import type { FollowOptions, StoredEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Feed } from './feed.ts';
import { QUEUE_LIMIT } from './ring.ts';

/** Between attempts to read a log that is away, in milliseconds. */
const RETRY_MS = 200;

/**
 * One reader of a feed. It reads history page by page, only when asked for more, until the feed's recent past reaches
 * back to where it stands; from there it is live. Its queue is bounded either way.
 */
export class Follower implements AsyncIterableIterator<StoredEvent, undefined> {
  readonly #feed: Feed;
  readonly #metrics: EventMetrics;
  readonly #signal: AbortSignal;
  readonly #readers: () => number;
  /** In milliseconds since 1970. */
  readonly #since = Date.now();
  readonly #onAbort = (): void => this.#close();
  /** That of the last entry queued; set by `open`. */
  #position = '';
  #queue: Entry[] = [];
  #queued = 0;
  #live = false;
  #closed = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(feed: Feed, metrics: EventMetrics, options: Pick<FollowOptions, 'signal' | 'readers'>) {
    const { signal, readers = () => 1 } = options;
    this.#feed = feed;
    this.#metrics = metrics;
    this.#signal = signal;
    this.#readers = readers;
    feed.enter(this);
    if (signal.aborted) this.#close();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Attaches, and proves that `after` can be gone on from. Throws what `EventLog.follow` throws. */
  async open(after: Place | undefined): Promise<void> {
    try {
      let tail = await this.#feed.attach();
      const isOfAnotherLife = (): boolean => after !== undefined && after.epoch !== tail.epoch;
      // The log may have started over, and only the process that made the cursor has noticed.
      if (isOfAnotherLife()) tail = await this.#feed.lookAgain();
      if (isOfAnotherLife()) throw await this.#feed.gap();
      this.#position = after?.position ?? tail.position;
      if (!this.#closed) await this.#advance();
    } catch (error) {
      throw this.#end(error);
    }
  }

  /** Goes live, or queues the next page of history. */
  async #advance(): Promise<void> {
    const missed = this.#feed.join(this, this.#position);
    if (missed !== undefined) {
      this.#live = missed.all;
      for (const entry of missed.entries) this.#enqueue(entry);
      return;
    }
    const { entries } = await this.#feed.history(this.#position);
    for (const entry of entries) this.#enqueue(entry);
    // The feed has not heard yet of what the log already holds.
    if (entries.length === 0) await this.#feed.settle();
  }

  /** Once opened, a follower outlives an outage wherever it stands, in the midst of history too. */
  async #advancePatiently(): Promise<void> {
    try {
      await this.#advance();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      await pause(RETRY_MS, undefined, { ref: false });
    }
  }

  hasRoomFor(entries: readonly Entry[]): boolean {
    const size = entries.reduce((sum, entry) => sum + entry.size, this.#queued);
    return this.#queue.length + entries.length <= QUEUE_LIMIT.entries && size <= QUEUE_LIMIT.size;
  }

  /** Takes a live entry, the one after the last. */
  push(entry: Entry): void {
    this.#enqueue(entry);
    if (this.#queue.length > QUEUE_LIMIT.entries || this.#queued > QUEUE_LIMIT.size) {
      this.#metrics.slowConsumerDisconnect();
      this.#drop();
      this.fail(new SlowConsumerError());
    }
  }

  /** Is no longer live, and goes on from the log after what is queued. */
  fallBack(): void {
    this.#live = false;
    this.#wake?.();
  }

  /** Ends with an error, after what is queued. */
  fail(error: Error): void {
    this.#failure = error;
    this.#feed.leave(this);
    this.#wake?.();
  }

  next(): Promise<IteratorResult<StoredEvent, undefined>> {
    // Calls that overlap are answered in their order.
    const turn = this.#turn.then(() => this.#next());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async return(): Promise<IteratorResult<StoredEvent, undefined>> {
    this.#close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }

  async #next(): Promise<IteratorResult<StoredEvent, undefined>> {
    try {
      while (!this.#closed) {
        const entry = this.#queue.shift();
        if (entry !== undefined) return this.#deliver(entry);
        if (this.#failure !== undefined) throw this.#failure;
        if (this.#live) await this.#somethingNew();
        else await this.#untilClosed(this.#advancePatiently());
      }
    } catch (error) {
      throw this.#end(error);
    }
    return { done: true, value: undefined };
  }

  #deliver(entry: Entry): IteratorResult<StoredEvent, undefined> {
    this.#queued -= entry.size;
    const { event } = entry;
    const readers = this.#readers();
    if (readers > 0) {
      const arrived = Date.parse(event.receivedAt);
      this.#metrics.delivered(event.type, readers);
      // The age of history says nothing of how fast events travel.
      if (arrived >= this.#since) this.#metrics.lag(Date.now() - arrived);
    }
    return { done: false, value: event };
  }

  #enqueue(entry: Entry): void {
    if (this.#closed) return;
    this.#queue.push(entry);
    this.#queued += entry.size;
    this.#position = entry.position;
    this.#wake?.();
  }

  #somethingNew(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** A read of the log may take long, or for ever; the end of the iteration does not wait for it. */
  #untilClosed(work: Promise<void>): Promise<void> {
    return Promise.race([work, this.#somethingNew()]);
  }

  #end(error: unknown): unknown {
    if (error instanceof EventsGapError) this.#metrics.gap();
    this.#close();
    return error;
  }

  #drop(): void {
    this.#queue = [];
    this.#queued = 0;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#drop();
    this.#feed.leave(this);
    this.#wake?.();
  }
}
