import type { EventOf, Feed, FollowOptions, Status } from './feed.ts';
import { follow } from './follow.ts';
import type { Source, TypedDocument } from './source.ts';
import { type Gap, isGap, type Store } from './stores.ts';

/** A feed as a screen shows it. */
export interface FeedState<Event> {
  /** What the store held, and what has come since. Newest first. */
  readonly items: readonly (Event | Gap<Event>)[];
  readonly status: Status;
  readonly missing: number;
  /** The last gap that was met since the feed began. */
  readonly gap: Gap<Event> | undefined;
  /** Why the feed is offline or has ended. */
  readonly problem: unknown;
}

export type ShowOptions<Event, Variables> = FollowOptions<Event, Variables> & {
  /** Of other variables, another one: it is where the list begins. A memory without one. */
  readonly store?: Store<Event>;
  /** What to show until the store has been read, newest first: what a server has rendered. */
  readonly initialItems?: readonly (Event | Gap<Event>)[];
  /** How many items to hold; default 200, as many as the stores keep. */
  readonly limit?: number;
};

/** What a screen shows before its feed has begun. */
export const startState = <Event>(items: FeedState<Event>['items'] = []): FeedState<Event> => ({
  items,
  status: 'offline',
  missing: 0,
  gap: undefined,
  problem: undefined,
});

/** How a state follows from the one before. */
export type Change<Event> = (change: (before: FeedState<Event>) => FeedState<Event>) => void;

/** Follows, and tells how each state of the screen follows from the one before. @returns ends that. */
export function showFeed<
  Data extends { [Key in keyof Data]: { readonly cursor: string } | string | null | undefined },
  Variables,
>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: ShowOptions<EventOf<Data>, Variables> & { readonly store: Store<EventOf<Data>> },
  change: Change<EventOf<Data>>,
): () => void {
  const { store, initialItems, limit = 200 } = options;
  let isShown = true;
  const set = (next: (before: FeedState<EventOf<Data>>) => Partial<FeedState<EventOf<Data>>>) => {
    if (!isShown) return;
    change((before) => {
      const state = { ...before, ...next(before) };
      return state.items.length > limit ? { ...state, items: state.items.slice(0, limit) } : state;
    });
  };
  set(() => startState(initialItems));
  // What the list begins with and where the feed goes on are one reading: another tab may save at any time.
  const once = readingOnce(store, (events) => set(() => (events ? { items: [...events].reverse() } : {})));
  const feed = follow(source, document, { ...options, store: once });
  feed.onChange(() => {
    const { status, missing, problem } = feed;
    set(() => ({ status, missing, problem }));
  });
  void run(feed, set);
  return () => {
    set(() => ({ status: 'offline', missing: 0 }));
    isShown = false;
    feed.close();
  };
}

function readingOnce<Event>(
  store: Store<Event>,
  loaded: (events: readonly (Event | Gap<Event>)[] | undefined) => void,
): Store<Event> {
  let isFirst = true;
  return {
    async load() {
      const saved = await store.load();
      if (isFirst) loaded(saved?.events);
      isFirst = false;
      return saved;
    },
    save: (item, cursor) => store.save(item, cursor),
  };
}

async function run<Event>(
  feed: Feed<Event>,
  set: (next: (before: FeedState<Event>) => Partial<FeedState<Event>>) => void,
): Promise<void> {
  try {
    for await (const item of feed) {
      set(({ items, gap }) => {
        if (!isGap(item)) return { items: [item, ...items] };
        // A gap that follows a gap is the same one.
        const before = isGap(items[0]) ? items.slice(1) : items;
        if (item.events === undefined) return { items: [item, ...before], gap: item };
        return { items: [...item.events].reverse(), gap: item.reason === 'FIRST_START' ? gap : item };
      });
    }
  } catch (problem) {
    set(() => ({ problem }));
  }
}
