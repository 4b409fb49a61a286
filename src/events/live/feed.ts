import { clock, type Timer } from '../../common/clock.ts';
import { SingleFlight } from '../../common/single-flight.ts';
import { isOfLife, isUnbroken } from '../chain.ts';
import { encodeCursor, type LogPosition } from '../cursor.ts';
import type { Entry, Slice } from '../entry.ts';
import { type EventsGapError, StoreUnavailableError } from '../errors.ts';
import { gapError, readWhole } from '../gap.ts';
import type { Listener, Source } from '../source.ts';
import type { EventTopics, TopicAsker } from '../topics.ts';
import { Backlog } from './backlog.ts';
import { LookupQueue } from './lookup-queue.ts';
import { AT_ONCE, type Missed, Ring } from './ring.ts';
import { type FeedSubscriber, TopicIndex } from './topic-index.ts';

const PAGE = 64;
/** Pause between attempts to read the log after a resync, in milliseconds. */
const RETRY_MS = 200;

/** Told when a subscriber has left, and when the last one has. */
interface FeedObserver {
  left(subscriber: FeedSubscriber): void;
  idle(): void;
}

/**
 * One client's live events in this process, shared by all its followers. Its tail moves only along the `prev` chain. If an
 * entry does not follow from the tail, the feed reads the log; what the log lacks too is a gap. It pushes an entry to the
 * subscribers of its topics.
 */
export class Feed implements Listener {
  readonly clientId: string;
  readonly #source: Source;
  readonly #observer: FeedObserver;
  readonly #topics: EventTopics;
  readonly #live = new TopicIndex();
  /** The live subscribers whose topics need a REST call. */
  readonly #lookups: LookupQueue;
  readonly #subscribers = new Set<FeedSubscriber>();
  readonly #recent = new Ring();
  readonly #reads = new SingleFlight<Slice | undefined>();
  #tail: LogPosition | undefined;
  #attached: Promise<void> | undefined;
  #reading: Promise<void> | undefined;
  /** Entries that arrived while the log was being read. */
  readonly #pending = new Backlog();
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

  /** How many entries wait before its subscribers are pushed them. */
  get waiting(): number {
    return this.#pending.count + this.#lookups.waiting;
  }

  enter(subscriber: FeedSubscriber): void {
    this.#subscribers.add(subscriber);
  }

  leave(subscriber: FeedSubscriber): void {
    this.#live.delete(subscriber);
    this.#lookups.delete(subscriber);
    if (!this.#subscribers.delete(subscriber)) return;
    this.#observer.left(subscriber);
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
   * Returns the recent entries after a position; undefined if they do not reach back that far, or are of another life of the log.
   * A follower that gets all of them is live from now on: nothing comes between, because nothing here awaits.
   */
  join(follower: FeedSubscriber, at: LogPosition): Missed | undefined {
    const missed = this.#missedSince(at);
    if (missed?.isComplete === true) this.#live.add(follower);
    return missed;
  }

  /**
   * The same for a follower whose topics need a REST call. It becomes live only if it missed nothing, because an entry that
   * it missed may need a call first.
   */
  joinLookups(follower: FeedSubscriber, at: LogPosition): Missed | undefined {
    const missed = this.#missedSince(at);
    if (missed === undefined || missed.entries.length > 0) return missed && { ...missed, isComplete: false };
    this.#lookups.add(follower, at.position);
    return missed;
  }

  #missedSince({ epoch, position }: LogPosition): Missed | undefined {
    if (this.#tail?.epoch !== epoch) return undefined;
    return this.#tail.position === position
      ? { entries: [], isComplete: true }
      : this.#recent.since(position, AT_ONCE);
  }

  /** True if an entry of history has any of the topics, or if `topics` is undefined. */
  concerns(topics: ReadonlySet<string> | undefined, { event }: Entry): boolean {
    return topics === undefined || this.#topics.of(event).some((topic) => topics.has(topic));
  }

  /** Returns the function by which one reader asks for topics that events do not name. */
  asker(): TopicAsker {
    return this.#topics.asker(this.clientId);
  }

  /** Pushes each new entry of its topics to a subscriber from now on. Returns the position of the newest entry before. */
  watch(subscriber: FeedSubscriber): string {
    const { position } = this.#knownTail();
    this.#live.add(subscriber);
    return position;
  }

  /** Has a subscriber wait for more topics from now on. */
  addTopics(subscriber: FeedSubscriber, topics: readonly string[]): void {
    this.#live.addTopics(subscriber, topics);
  }

  /** Returns the recent entries after a position that have any of the topics, or undefined if they do not reach back. */
  recent(position: string, topics: ReadonlySet<string>): readonly Entry[] | undefined {
    if (this.#tail?.position === position) return [];
    return this.#recent.since(position)?.entries.filter((entry) => this.concerns(topics, entry));
  }

  /** Returns a page of history without gaps, from the oldest event unless told. Followers that resume from one position share a read. */
  async history(at: LogPosition | undefined): Promise<Slice> {
    const slice = await this.#reads.run(`${at?.epoch} ${at?.position}`, () => this.#read(at));
    if (slice === undefined) throw await this.gap(at);
    return slice;
  }

  receive(entry: Entry): void {
    if (this.#tail !== undefined && this.#reading === undefined) {
      if (!this.#step(entry)) this.resync();
    } else if (!this.#pending.add(entry)) {
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
        for (const entry of this.#pending.takeAll()) {
          if (!this.#step(entry)) this.#readAgain = true;
        }
      } while (this.#readAgain);
    } finally {
      // Runs in the same turn in which `pending` was found empty. An entry that is received later is stepped on to, and does
      // not stay there.
      this.#reading = undefined;
    }
  }

  async #catchUp(tail: LogPosition): Promise<void> {
    const slice = await this.#read(tail);
    if (slice === undefined) return this.#startOver(tail);
    const full = this.#makeRoom(slice.entries, tail.position);
    for (const entry of slice.entries) this.#accept(entry);
    // Only now: any earlier they would be live again at once, and would be pushed entries that they have no room for.
    for (const subscriber of full) subscriber.flow?.();
    if (slice.hasMore) {
      this.#readAgain = true;
      await clock.immediate();
    }
  }

  /**
   * Takes out subscribers without room for entries that piled up during an outage. They read on from the log, at their own
   * pace, once `flow` is called. Returns them.
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

  /** Moves the tail to an entry that follows from it. Returns true also for an entry that has been here before. */
  #step(entry: Entry): boolean {
    const isNext = entry.epoch === this.#tail?.epoch && entry.prev === this.#tail.position;
    if (!isNext) return this.#recent.holds(entry);
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
    // Only once all of them have the entry: two subscribers at the same position have then been pushed the same.
    for (const subscriber of subscribers) subscriber.flow?.();
  }

  /** Returns the position up to which a live follower has been pushed every entry of its topics. */
  positionOf(follower: FeedSubscriber, needsLookup: boolean): string | undefined {
    const position = this.#tail?.position;
    return needsLookup && position !== undefined ? this.#lookups.positionOf(follower, position) : position;
  }

  /** The cursor of a position in the present life of the log. */
  cursorOf(position: string): string | undefined {
    return this.#tail && encodeCursor(this.clientId, { epoch: this.#tail.epoch, position });
  }

  /** Returns a page of the log after a position; undefined if the log lacks what follows it, or has begun anew. */
  #read(at: LogPosition | undefined): Promise<Slice | undefined> {
    const after = at?.position ?? null;
    return readWhole(
      this.#source,
      this.clientId,
      () => this.#source.read(this.clientId, after, PAGE),
      (slice) => isOfLife(at, slice) && isUnbroken(after, slice),
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
