import type { Entry } from '../entry.ts';
import type { EventWatch, StoredEvent, Watcher } from '../log.ts';
import type { Feed } from './feed.ts';
import type { FeedSubscriber } from './topic-index.ts';

/**
 * Gives a watcher the events of its topics as they come, and none from before. It has no queue: the watcher takes each event
 * at once.
 */
export class FeedWatch implements FeedSubscriber, EventWatch {
  readonly #feed: Feed;
  readonly #watcher: Watcher;
  #topics: readonly string[];
  #since = '';
  #ended = false;

  constructor(feed: Feed, topics: readonly string[], watcher: Watcher) {
    this.#feed = feed;
    this.#topics = topics;
    this.#watcher = watcher;
    feed.enter(this);
  }

  get topics(): readonly string[] {
    return this.#topics;
  }

  /** Attaches to the feed. Throws what `EventLog.watch` throws. */
  async open(): Promise<void> {
    try {
      await this.#feed.attach();
      this.#since = this.#feed.watch(this);
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  add(topics: readonly string[]): readonly StoredEvent[] | undefined {
    if (this.#ended) return [];
    this.#topics = [...this.#topics, ...topics];
    this.#feed.addTopics(this, topics);
    return this.#feed.recent(this.#since, new Set(this.#topics))?.map(({ event }) => event);
  }

  stop(): void {
    this.#ended = true;
    this.#feed.leave(this);
  }

  push(entry: Entry): void {
    if (!this.#ended) this.#watcher.event(entry.event);
  }

  fail(error: Error): void {
    if (this.#ended) return;
    this.stop();
    this.#watcher.end(error);
  }
}
