import { clock } from '../../common/clock.ts';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import type { LogPosition, ReadFrom } from '../cursor.ts';
import type { Entry, Slice } from '../entry.ts';
import { SlowConsumerError, StoreUnavailableError } from '../errors.ts';
import { readFromOldest } from '../gap.ts';
import type { FollowOptions, StoredEvent } from '../log.ts';
import type { TopicAsker } from '../topics.ts';
import type { Feed } from './feed.ts';
import { QUEUE_LIMIT } from './ring.ts';
import type { FeedSubscriber } from './topic-index.ts';

/** Pause between attempts to read a log that is away, in milliseconds. */
const RETRY_MS = 200;

/**
 * One reader of a feed. It reads history page by page, while its queue has room, until it reaches the recent entries of the
 * feed. From there on it is live. Its queue is bounded in both states.
 */
export class Follower extends PushStream<StoredEvent> implements FeedSubscriber {
  readonly topics: ReadonlySet<string> | undefined;
  readonly #feed: Feed;
  /** Set if some of its topics need a REST call. */
  readonly #ask: TopicAsker | undefined;
  /** Up to where it has read history; set by `open`. Unused while it is live. */
  #position = '';
  /** Names the life of the log that the position is of. */
  #epoch = '';
  #queue: Entry[] = [];
  #queued = 0;
  #live = false;
  #closed = false;
  #failure: Error | undefined;
  #sink: Sink<StoredEvent> | undefined;
  /** True while the sink takes a result, or the log is read for it. */
  #busy = false;

  constructor(feed: Feed, { topics, needsLookup = false }: Omit<FollowOptions, 'after'>) {
    super();
    this.#feed = feed;
    this.topics = topics === undefined ? undefined : new Set(topics);
    this.#ask = needsLookup ? feed.asker() : undefined;
    feed.enter(this);
  }

  /** Attaches to the feed, and checks that the log still holds `after`. Throws what `EventLog.follow` throws. */
  async open(after: ReadFrom | undefined): Promise<void> {
    try {
      let tail = await this.#feed.attach();
      const isOfAnotherLife = (): boolean => after !== undefined && after.epoch !== tail.epoch;
      // The log may have begun a new life that this process has not noticed yet, and another process has made the cursor.
      if (isOfAnotherLife()) tail = await this.#feed.lookAgain();
      if (isOfAnotherLife()) throw await this.#feed.gap(after);
      this.#epoch = tail.epoch;
      this.#position = after?.position ?? tail.position;
      await (after?.isOldest === true ? this.#beginAtOldest() : this.#advance());
    } catch (error) {
      throw this.#close(error);
    }
  }

  override connect(sink: Sink<StoredEvent>): void {
    this.#sink = sink;
    this.#pump();
  }

  override stop(): void {
    this.#sink = undefined;
    this.#close();
  }

  override caughtUpTo(): string | undefined {
    const rests = this.#live && !this.#busy && this.#queue.length === 0;
    if (!rests || this.#failure !== undefined || this.#closed) return undefined;
    return this.#feed.positionOf(this, this.#ask !== undefined);
  }

  override bookmark(): string | undefined {
    const position = this.caughtUpTo();
    return position === undefined ? undefined : this.#feed.cursorOf(position);
  }

  get waiting(): number {
    return this.#queue.length;
  }

  hasRoomFor(entries: readonly Entry[]): boolean {
    const size = entries.reduce((sum, entry) => sum + entry.size, this.#queued);
    return this.#queue.length + entries.length <= QUEUE_LIMIT.entries && size <= QUEUE_LIMIT.size;
  }

  /** Takes a live entry. */
  push(entry: Entry): void {
    this.#enqueue(entry);
  }

  flow(): void {
    this.#pump();
    if (this.#queue.length > QUEUE_LIMIT.entries || this.#queued > QUEUE_LIMIT.size) {
      this.#drop();
      this.fail(new SlowConsumerError(this.#feed.clientId));
      // A reader that does not read would otherwise not learn of it.
      if (this.#sink !== undefined) this.#end(this.#failure);
    }
  }

  fallBack(position: string): void {
    this.#live = false;
    this.#position = position;
  }

  /** Ends with an error, after what is queued. */
  fail(error: Error): void {
    this.#failure = error;
    this.#feed.leave(this);
    this.#pump();
  }

  /** Hands the queue to the sink. Once that is empty, reads on if it is not live. */
  #pump(): void {
    while (!this.#closed && !this.#busy && this.#sink !== undefined) {
      const entry = this.#queue.shift();
      if (entry !== undefined) {
        this.#queued -= entry.size;
        this.#busy = true;
        const taken = this.#take(entry);
        if (taken instanceof Promise) this.#wait(taken);
        else this.#busy = false;
      } else if (this.#failure !== undefined) {
        this.#end(this.#failure);
      } else if (this.#live) {
        this.#sink.rests?.();
        return;
      } else {
        this.#wait(this.#advancePatiently());
      }
    }
  }

  #wait(work: Promise<void>): void {
    this.#busy = true;
    work.then(
      () => {
        this.#busy = false;
        this.#pump();
      },
      (error: unknown) => this.#end(error),
    );
  }

  /** Queues the oldest page of history. Its position is the one up to which the reader has been told of all that is missing. */
  async #beginAtOldest(): Promise<void> {
    const { entries } = await readFromOldest(
      () => this.#feed.history(undefined),
      () => this.#history(),
    );
    this.#queueHistory(entries);
  }

  /** Goes live, or queues the next page of history. */
  async #advance(): Promise<void> {
    const missed =
      this.#ask === undefined ? this.#feed.join(this, this.#at) : this.#feed.joinLookups(this, this.#at);
    if (missed?.isComplete === true) {
      // Entries that are pushed from now on are queued after these.
      this.#live = true;
      for (const entry of missed.entries) if (this.#feed.concerns(this.topics, entry)) this.#enqueue(entry);
      return;
    }
    const { entries } = missed ?? (await this.#history());
    this.#queueHistory(entries);
    // The log already holds entries that the feed has not received.
    if (entries.length === 0) await this.#feed.reachHead();
  }

  #history(): Promise<Slice> {
    return this.#feed.history(this.#at);
  }

  get #at(): LogPosition {
    return { epoch: this.#epoch, position: this.#position };
  }

  #queueHistory(entries: readonly Entry[]): void {
    for (const entry of entries) {
      // A REST call takes time, so it is made for one entry after the other, as they are taken.
      if (this.#ask !== undefined || this.#feed.concerns(this.topics, entry)) this.#enqueue(entry);
      this.#position = entry.position;
    }
  }

  /** Hands an entry on if it has one of the topics. A live entry has: the feed has checked. */
  #take(entry: Entry): void | Promise<void> {
    if (this.#live || this.#ask === undefined || this.#feed.concerns(this.topics, entry)) {
      return this.#sink?.take(entry.event);
    }
    return this.#ask(entry.event)?.then((asked) =>
      asked.some((topic) => this.topics?.has(topic)) ? this.#sink?.take(entry.event) : undefined,
    );
  }

  /** Reads on, and retries while the log is away: once opened, a follower outlives an outage wherever it stands. */
  async #advancePatiently(): Promise<void> {
    try {
      await this.#advance();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      await clock.sleep(RETRY_MS, { ref: false });
    }
  }

  #enqueue(entry: Entry): void {
    if (this.#closed) return;
    this.#queue.push(entry);
    this.#queued += entry.size;
  }

  #drop(): void {
    this.#queue = [];
    this.#queued = 0;
  }

  #end(error: unknown): void {
    const sink = this.#sink;
    this.#sink = undefined;
    if (this.#closed) return;
    sink?.finish(this.#close(error));
  }

  #close(error?: unknown): unknown {
    if (this.#closed) return error;
    this.#closed = true;
    this.#drop();
    this.#feed.leave(this);
    return error;
  }
}
