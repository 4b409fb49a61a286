import type { Entry } from '../entry.ts';

/** A follower or a watch: a feed hands it the entries of its topics. */
export interface FeedSubscriber {
  /** The topics that it waits for; undefined for every entry. */
  readonly topics: Iterable<string> | undefined;
  /** How many entries wait in its queue, where it has one. */
  readonly waiting?: number;
  /** Takes a live entry. It may wait for `flow` before it hands the entry on. */
  push(entry: Entry): void;
  /** Hands on what it was pushed. Called once an entry has been pushed to all its subscribers. */
  flow?(): void;
  /** Ends it with an error. */
  fail(error: Error): void;
  /** True if it has room for these entries. A subscriber without a queue always has. */
  hasRoomFor?(entries: readonly Entry[]): boolean;
  /** No more entries are pushed to it. It must read on from the log after a position, once `flow` is called. */
  fallBack?(position: string): void;
}

/** The subscribers of each topic. An entry costs as much as it has topics and readers, however many subscribers there are. */
export class TopicIndex {
  readonly #everything = new Set<FeedSubscriber>();
  /** Most topics have one subscriber, which is stored without a set. */
  readonly #byTopic = new Map<string, FeedSubscriber | Set<FeedSubscriber>>();
  readonly #subscribers = new Set<FeedSubscriber>();

  get size(): number {
    return this.#subscribers.size;
  }

  get subscribers(): Iterable<FeedSubscriber> {
    return this.#subscribers;
  }

  add(subscriber: FeedSubscriber): void {
    this.#subscribers.add(subscriber);
    if (subscriber.topics === undefined) this.#everything.add(subscriber);
    else this.addTopics(subscriber, subscriber.topics);
  }

  /** Has a subscriber wait for more topics. */
  addTopics(subscriber: FeedSubscriber, topics: Iterable<string>): void {
    for (const topic of topics) {
      const waiting = this.#byTopic.get(topic);
      if (waiting === undefined || waiting === subscriber) this.#byTopic.set(topic, subscriber);
      else if (waiting instanceof Set) waiting.add(subscriber);
      else this.#byTopic.set(topic, new Set([waiting, subscriber]));
    }
  }

  delete(subscriber: FeedSubscriber): boolean {
    if (!this.#subscribers.delete(subscriber)) return false;
    this.#everything.delete(subscriber);
    for (const topic of subscriber.topics ?? []) {
      const waiting = this.#byTopic.get(topic);
      if (waiting === subscriber) {
        this.#byTopic.delete(topic);
      } else if (waiting instanceof Set) {
        waiting.delete(subscriber);
        if (waiting.size === 0) this.#byTopic.delete(topic);
      }
    }
    return true;
  }

  clear(): void {
    this.#subscribers.clear();
    this.#everything.clear();
    this.#byTopic.clear();
  }

  /** Returns the subscribers of any of the topics, each once. */
  subscribersTo(topics: readonly string[]): Iterable<FeedSubscriber> {
    const subscribers = new Set<FeedSubscriber>(this.#everything);
    for (const topic of topics) {
      const waiting = this.#byTopic.get(topic);
      if (waiting instanceof Set) for (const subscriber of waiting) subscribers.add(subscriber);
      else if (waiting !== undefined) subscribers.add(waiting);
    }
    return subscribers;
  }
}
