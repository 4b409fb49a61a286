import { stagger } from '../../common/stagger.ts';
import type { ReadFrom } from '../cursor.ts';
import { DrainingError } from '../errors.ts';
import type { FollowOptions, Watcher } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Source } from '../source.ts';
import type { EventTopics } from '../topics.ts';
import { Feed } from './feed.ts';
import { FeedWatch } from './feed-watch.ts';
import { Follower } from './follower.ts';
import type { FeedSubscriber } from './topic-index.ts';

/** All followers of the process. There is one feed for each client that has a follower or a watch. */
export class Hub {
  readonly #source: Source;
  readonly #metrics: EventMetrics;
  readonly #topics: EventTopics;
  readonly #feeds = new Map<string, Feed>();
  /** The followers and watches that have their place in the log: each is handed what comes from now on. */
  readonly #placed = new Set<FeedSubscriber>();
  #stopped = false;

  constructor(source: Source, metrics: EventMetrics, topics: EventTopics) {
    this.#source = source;
    this.#metrics = metrics;
    this.#topics = topics;
    metrics.watchFeeds(() => this.#waiting());
  }

  /** Resolves once attached. Throws what `EventLog.follow` throws. */
  async follow(
    clientId: string,
    after: ReadFrom | undefined,
    options: Omit<FollowOptions, 'after'>,
  ): Promise<Follower> {
    if (this.#stopped) throw new DrainingError();
    const feed = this.#feed(clientId);
    const follower = new Follower(feed, options);
    await follower.open(after);
    this.#place(feed, follower);
    return follower;
  }

  /** Resolves once attached. Throws what `EventLog.watch` throws. */
  async watch(clientId: string, topics: readonly string[], watcher: Watcher): Promise<FeedWatch> {
    if (this.#stopped) throw new DrainingError();
    const feed = this.#feed(clientId);
    const watch = new FeedWatch(feed, topics, watcher);
    await watch.open();
    this.#place(feed, watch);
    return watch;
  }

  /** Counts a subscriber that has its place, unless it has been ended meanwhile. Before, an event might come too early for it. */
  #place(feed: Feed, subscriber: FeedSubscriber): void {
    if (!feed.subscribers.has(subscriber)) return;
    this.#placed.add(subscriber);
    this.#metrics.subscribers(this.#placed.size);
  }

  /** Ends the followers one after another within `withinMs` milliseconds. Resolves once the last one has ended. */
  async stop(withinMs: number): Promise<void> {
    this.#stopped = true;
    const followers = [...this.#feeds.values()].flatMap((feed) => [...feed.subscribers]);
    await stagger(followers, (follower) => follower.fail(new DrainingError()), withinMs);
  }

  /** How many entries wait: in feeds that read the log or ask whose an entry is, and for each follower. */
  #waiting(): number {
    let count = 0;
    for (const feed of this.#feeds.values()) {
      count += feed.waiting;
      for (const subscriber of feed.subscribers) count += subscriber.waiting ?? 0;
    }
    return count;
  }

  #feed(clientId: string): Feed {
    const known = this.#feeds.get(clientId);
    if (known !== undefined) return known;
    const feed = new Feed(clientId, this.#source, this.#topics, {
      left: (subscriber) => {
        if (this.#placed.delete(subscriber)) this.#metrics.subscribers(this.#placed.size);
      },
      idle: () => {
        this.#feeds.delete(clientId);
        this.#source.detach(clientId);
      },
    });
    this.#feeds.set(clientId, feed);
    return feed;
  }
}
