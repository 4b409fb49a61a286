import type { Entry } from '../entry.ts';
import type { EventTopics, TopicAsker } from '../topics.ts';
import { QUEUE_LIMIT } from './ring.ts';
import { type FeedSubscriber, TopicIndex } from './topic-index.ts';

interface WaitingEntry {
  readonly entry: Entry;
  readonly asked: ReturnType<TopicAsker>;
}

/** Where a subscriber joined while entries waited; it has already seen those. */
interface JoinPoint {
  /** How many entries had been pushed by then. */
  readonly count: number;
  /** The position of the last one. */
  readonly position: string;
}

/**
 * Entries on their way to subscribers whose topics need a REST call. Every entry goes through in the log's order: those after
 * an entry that is being asked about wait for it. One call serves all subscribers.
 */
export class LookupQueue {
  readonly #topics: EventTopics;
  readonly #ask: TopicAsker;
  readonly #index = new TopicIndex();
  readonly #joined = new Map<FeedSubscriber, JoinPoint>();
  /** The REST calls for all of them are under way. Each waits here until those before it have been answered. */
  readonly #waiting: WaitingEntry[] = [];
  #waitingSize = 0;
  /** Counts up when the answer under way is no longer wanted. */
  #round = 0;
  /** How many entries have been pushed. */
  #count = 0;

  constructor(topics: EventTopics, ask: TopicAsker) {
    this.#topics = topics;
    this.#ask = ask;
  }

  /** How many entries wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Adds a subscriber that has seen every entry up to a position. */
  add(subscriber: FeedSubscriber, position: string): void {
    this.#index.add(subscriber);
    if (this.#waiting.length > 0) this.#joined.set(subscriber, { count: this.#count, position });
  }

  delete(subscriber: FeedSubscriber): void {
    this.#index.delete(subscriber);
    this.#joined.delete(subscriber);
  }

  /** Lets an entry through, once those before it have gone through. */
  push(entry: Entry): void {
    if (this.#index.size === 0) return;
    const asked = this.#ask(entry.event);
    // It may fail before it is awaited. Until then the failure must not count as unhandled.
    asked?.catch(() => undefined);
    this.#waiting.push({ entry, asked });
    this.#waitingSize += entry.size;
    this.#count += 1;
    if (this.#waiting.length > QUEUE_LIMIT.entries || this.#waitingSize > QUEUE_LIMIT.size) this.#fallBack();
    else if (this.#waiting.length === 1) this.#pass();
  }

  /**
   * Takes out subscribers that have no room for entries that are about to come after a position. They read on from the log
   * once `flow` is called. Returns them.
   */
  makeRoom(entries: readonly Entry[], position: string): readonly FeedSubscriber[] {
    const seen = this.#waiting[0]?.entry.prev ?? position;
    const coming = [...this.#waiting.map(({ entry }) => entry), ...entries];
    const full = [...this.#index.subscribers].filter(
      (subscriber) => subscriber.hasRoomFor?.(coming) === false,
    );
    for (const subscriber of full) {
      const from = this.#seenBy(subscriber, seen);
      this.delete(subscriber);
      subscriber.fallBack?.(from);
    }
    return full;
  }

  /** Ends every subscriber. */
  fail(error: Error): void {
    const subscribers = [...this.#index.subscribers];
    this.#reset();
    for (const subscriber of subscribers) subscriber.fail(error);
  }

  /** Pushes entries until one needs a REST call, and goes on when that is answered. */
  #pass(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined) break;
      const { entry, asked } = first;
      if (asked !== undefined) {
        const round = this.#round;
        asked.then(
          (topics) => {
            if (round !== this.#round) return;
            this.#route(entry, topics);
            this.#pass();
          },
          (error: unknown) => {
            if (round === this.#round) this.fail(error instanceof Error ? error : new Error(String(error)));
          },
        );
        return;
      }
      this.#route(entry, []);
    }
    this.#joined.clear();
  }

  #route(entry: Entry, asked: readonly string[]): void {
    const topics = [...this.#topics.of(entry.event), ...asked];
    const subscribers = [...this.#index.subscribersTo(topics)].filter(
      (subscriber) => !this.#hasSeenFirst(subscriber),
    );
    this.#waiting.shift();
    this.#waitingSize -= entry.size;
    for (const subscriber of subscribers) subscriber.push(entry);
    // Only once all of them have the entry: two subscribers at the same position have then been pushed the same.
    for (const subscriber of subscribers) subscriber.flow?.();
  }

  /**
   * Returns the position up to which a subscriber has been pushed everything.
   *
   * @param tail the position of the newest entry
   */
  positionOf(subscriber: FeedSubscriber, tail: string): string {
    return this.#seenBy(subscriber, this.#waiting[0]?.entry.prev ?? tail);
  }

  /** True if a subscriber joined after the first waiting entry came. */
  #hasSeenFirst(subscriber: FeedSubscriber): boolean {
    const joined = this.#joined.get(subscriber);
    return joined !== undefined && joined.count > this.#count - this.#waiting.length;
  }

  /**
   * Returns the position up to which a subscriber has seen everything. It may have joined later than the others, which are at
   * `others`.
   */
  #seenBy(subscriber: FeedSubscriber, others: string): string {
    return (this.#hasSeenFirst(subscriber) ? this.#joined.get(subscriber)?.position : undefined) ?? others;
  }

  /** More entries wait than a follower's queue may hold, so every subscriber reads on from the log by itself. */
  #fallBack(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const behind = [...this.#index.subscribers].map(
      (subscriber) => [subscriber, this.#seenBy(subscriber, first.entry.prev)] as const,
    );
    this.#reset();
    for (const [subscriber, position] of behind) subscriber.fallBack?.(position);
    for (const [subscriber] of behind) subscriber.flow?.();
  }

  #reset(): void {
    this.#round += 1;
    this.#index.clear();
    this.#joined.clear();
    this.#waiting.length = 0;
    this.#waitingSize = 0;
  }
}
