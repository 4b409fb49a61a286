import { clock, type Timer } from '../../common/clock.ts';
import { SingleFlight } from '../../common/single-flight.ts';
import { isUnbroken } from '../chain.ts';
import { encodeCursor, type LogPosition } from '../cursor.ts';
import type { Entry, Slice } from '../entry.ts';
import { type EventsGapError, StoreUnavailableError } from '../errors.ts';
import { gapError, readWhole } from '../gap.ts';
import type { Listener, Source } from '../source.ts';
import type { EventTopics, TopicAsker } from '../topics.ts';
import { LookupQueue } from './lookup-queue.ts';
import { AT_ONCE, type Missed, QUEUE_LIMIT, Ring } from './ring.ts';
import { type FeedSubscriber, TopicIndex } from './topic-index.ts';

const PAGE = 64;
/** Between attempts to settle a resync, in milliseconds. */
const RETRY_MS = 200;

/** Told how the number of subscribers changes, and when the last one has left. */
interface FeedObserver {
  sized(change: 1 | -1): void;
  idle(): void;
}

/**
 * One client's live events in this process, shared by all its followers. Its tail moves only along the `prev` chain:
 * whatever does not follow from it is settled by reading the log, and what the log cannot supply is a gap. An entry is
 * pushed to those who wait for its topics; a gap is told to everybody.
 */
export class Feed implements Listener {
  readonly clientId: string;
  readonly #source: Source;
  readonly #observer: FeedObserver;
  readonly #topics: EventTopics;
  readonly #live = new TopicIndex();
  /** The live ones that wait for topics which have to be asked for. */
  readonly #lookups: LookupQueue;
  readonly #subscribers = new Set<FeedSubscriber>();
  readonly #recent = new Ring();
  readonly #reads = new SingleFlight<Slice | undefined>();
  #tail: LogPosition | undefined;
  #attached: Promise<void> | undefined;
  #reading: Promise<void> | undefined;
  /** Entries that arrived while the log was being read. */
  #pending: Entry[] = [];
  #readAgain = false;
  #retry: Timer | undefined;

  constructor(clientId: string, source: Source, topics: EventTopics, observer: FeedObserver) {
    this.clientId = clientId;
    this.#source = source;
    this.#topics = topics;
    this.#observer = observer;
    this.#lookups = new LookupQueue(topics, this.asker());
  }

  get subscribers(): ReadonlySet<FeedSubscriber> {
    return this.#subscribers;
  }

  enter(subscriber: FeedSubscriber): void {
    this.#subscribers.add(subscriber);
    this.#observer.sized(1);
  }

  leave(subscriber: FeedSubscriber): void {
    this.#live.delete(subscriber);
    this.#lookups.delete(subscriber);
    if (!this.#subscribers.delete(subscriber)) return;
    this.#observer.sized(-1);
    if (this.#subscribers.size > 0) return;
    clock.clearTimeout(this.#retry);
    this.#observer.idle();
  }

  /** Resolves with the tail once entries are received. Throws `StoreUnavailableError`. */
  async attach(): Promise<LogPosition> {
    this.#attached ??= this.#source.attach(this.clientId, this);
    try {
      await this.#attached;
    } catch (error) {
      this.#attached = undefined;
      throw error;
    }
    if (this.#tail === undefined) await this.reachHead();
    return this.#knownTail();
  }

  /** Resolves with the tail as the log has it now. Throws `StoreUnavailableError`. */
  async lookAgain(): Promise<LogPosition> {
    await this.#source.confirm(this.clientId);
    this.#readAgain = true;
    await this.reachHead();
    return this.#knownTail();
  }

  #knownTail(): LogPosition {
    if (this.#tail === undefined) throw new StoreUnavailableError('The event log could not be read.');
    return this.#tail;
  }

  /**
   * What comes after a position; where that is all there is, each new entry of the follower's topics is pushed from now on,
   * and nothing can come between, because nothing here waits. Undefined when the recent past does not reach back that far.
   */
  join(follower: FeedSubscriber, position: string): Missed | undefined {
    const missed = this.#missedSince(position);
    if (missed?.isComplete === true) this.#live.add(follower);
    return missed;
  }

  /**
   * The same for a follower of topics that have to be asked for. It is live only where it has missed nothing: what it has
   * missed may have to be asked about first.
   */
  joinLookups(follower: FeedSubscriber, position: string): Missed | undefined {
    const missed = this.#missedSince(position);
    if (missed === undefined || missed.entries.length > 0) return missed && { ...missed, isComplete: false };
    this.#lookups.add(follower, position);
    return missed;
  }

  #missedSince(position: string): Missed | undefined {
    if (this.#tail === undefined) return undefined;
    return this.#tail.position === position
      ? { entries: [], isComplete: true }
      : this.#recent.since(position, AT_ONCE);
  }

  /** Whether an entry of history is of any of the topics; of undefined every entry is. */
  concerns(topics: ReadonlySet<string> | undefined, { event }: Entry): boolean {
    return topics === undefined || this.#topics.of(event).some((topic) => topics.has(topic));
  }

  /** Makes what one reader of history asks with for topics that events do not name. */
  asker(): TopicAsker {
    return this.#topics.asker(this.clientId);
  }

  /** Pushes each new entry of its topics to a subscriber from now on. Returns the position after which it does. */
  watch(subscriber: FeedSubscriber): string | undefined {
    if (this.#tail === undefined) return undefined;
    this.#live.add(subscriber);
    return this.#tail.position;
  }

  /** Has a subscriber wait for more topics from now on. */
  addTopics(subscriber: FeedSubscriber, topics: readonly string[]): void {
    this.#live.addTopics(subscriber, topics);
  }

  /** What has come since a position, and is of any of the topics; undefined where the recent past does not reach back. */
  recent(position: string, topics: ReadonlySet<string>): readonly Entry[] | undefined {
    if (this.#tail?.position === position) return [];
    return this.#recent
      .since(position)
      ?.entries.filter(({ event }) => this.#topics.of(event).some((topic) => topics.has(topic)));
  }

  /** A checked page of history. Followers that resume from the same position share one read. */
  async history(position: string): Promise<Slice> {
    const slice = await this.#reads.run(position, () => this.#read(position));
    if (slice === undefined) throw await this.gap(this.#tail && { ...this.#tail, position });
    return slice;
  }

  receive(entry: Entry): void {
    if (this.#tail !== undefined && this.#reading === undefined) {
      if (!this.#step(entry)) this.resync();
    } else if (this.#pending.length < QUEUE_LIMIT.entries) {
      this.#pending.push(entry);
    } else {
      this.#readAgain = true;
    }
  }

  resync(): void {
    this.#readAgain = true;
    this.reachHead().catch(() => {
      // The log cannot be read now, and nothing tells when it can be again: the connection that reads is not the one that
      // is subscribed. The feed asks again until it has read the log.
      clock.clearTimeout(this.#retry);
      if (this.#subscribers.size > 0) this.#retry = clock.setTimeout(() => this.resync(), RETRY_MS).unref();
    });
  }

  /** Reads the log until the tail is its head. Throws `StoreUnavailableError`. */
  reachHead(): Promise<void> {
    this.#reading ??= this.#readToHead();
    return this.#reading;
  }

  async #readToHead(): Promise<void> {
    try {
      do {
        this.#readAgain = false;
        if (this.#tail === undefined) this.#tail = await this.#source.head(this.clientId);
        else await this.#catchUp(this.#tail);
        for (const entry of this.#pending.splice(0)) {
          if (!this.#step(entry)) this.#readAgain = true;
        }
      } while (this.#readAgain);
    } finally {
      // In the same breath in which nothing was pending: what is received after that is stepped on to, not left lying.
      this.#reading = undefined;
    }
  }

  async #catchUp(tail: LogPosition): Promise<void> {
    const slice = await this.#read(tail.position);
    if (slice === undefined) return this.#startOver(tail);
    const full = this.#makeRoom(slice.entries, tail.position);
    for (const entry of slice.entries) this.#accept(entry);
    // Before, they would have been live again at once, and pushed what they have no room for.
    for (const subscriber of full) subscriber.flow?.();
    if (slice.hasMore) {
      this.#readAgain = true;
      await clock.immediate();
    }
  }

  /**
   * What piled up during an outage is no fault of the reader: who has no room goes on from the log, at its own pace. Returns
   * those, who begin to read once they `flow`.
   */
  #makeRoom(entries: readonly Entry[], position: string): readonly FeedSubscriber[] {
    const coming = new Map<FeedSubscriber, Entry[]>();
    for (const entry of entries) {
      for (const subscriber of this.#live.subscribersTo(this.#topics.of(entry.event))) {
        const own = coming.get(subscriber);
        if (own === undefined) coming.set(subscriber, [entry]);
        else own.push(entry);
      }
    }
    const full = [...coming].flatMap(([subscriber, own]) =>
      subscriber.hasRoomFor?.(own) === false ? [subscriber] : [],
    );
    for (const subscriber of full) {
      this.#live.delete(subscriber);
      subscriber.fallBack?.(position);
    }
    return [...full, ...this.#lookups.makeRoom(entries, position)];
  }

  /** Moves on to an entry that follows from the tail. True also for one that has been here before. */
  #step(entry: Entry): boolean {
    if (entry.prev !== this.#tail?.position) return this.#recent.holds(entry);
    this.#accept(entry);
    return true;
  }

  #accept(entry: Entry): void {
    if (this.#tail === undefined) return;
    this.#tail = { epoch: this.#tail.epoch, position: entry.position };
    this.#recent.push(entry);
    const subscribers = this.#live.subscribersTo(this.#topics.of(entry.event));
    for (const subscriber of subscribers) subscriber.push(entry);
    this.#lookups.push(entry);
    // All of them have it: two that stand at the same position have been pushed the same.
    for (const subscriber of subscribers) subscriber.flow?.();
  }

  /** The position up to which a live follower has been pushed all that is of its topics. */
  positionOf(follower: FeedSubscriber, needsLookup: boolean): string | undefined {
    const position = this.#tail?.position;
    return needsLookup && position !== undefined ? this.#lookups.positionOf(follower, position) : position;
  }

  /** The cursor of a position in the present life of the log. */
  cursorOf(position: string): string | undefined {
    return this.#tail && encodeCursor(this.clientId, { epoch: this.#tail.epoch, position });
  }

  /** A page of the log after a position; undefined where the log has not what follows it. */
  #read(position: string): Promise<Slice | undefined> {
    return readWhole(
      this.#source,
      this.clientId,
      () => this.#source.read(this.clientId, position, PAGE),
      (slice) => isUnbroken(position, slice),
    );
  }

  async #startOver(tail: LogPosition): Promise<void> {
    const bounds = await this.#source.bounds(this.clientId);
    const error = gapError(this.#source, this.clientId, tail, bounds);
    for (const subscriber of [...this.#live.subscribers]) subscriber.fail(error);
    this.#live.clear();
    this.#lookups.fail(error);
    this.#recent.clear();
    this.#tail = bounds.head;
  }

  async gap(at: LogPosition | undefined): Promise<EventsGapError> {
    return gapError(this.#source, this.clientId, at, await this.#source.bounds(this.clientId));
  }
}
