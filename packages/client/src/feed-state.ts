import type { EventOf, Feed, FollowOptions, Status } from './feed.ts';
import { follow } from './follow.ts';
import type { Source, TypedDocument } from './source.ts';
import { cursorOf, type Gap, isGap, listed, type Saved, type Store } from './stores.ts';

/** The state of a feed for a screen. */
export interface FeedState<Event> {
  /** The events of the store, and those that have come since, newest first. */
  readonly items: readonly (Event | Gap<Event>)[];
  /** `ended`: it has ended for good, and `problem` says why. `offline`: it tries again. */
  readonly status: Status | 'ended';
  readonly missing: number;
  /** The last gap since the feed began. */
  readonly gap: Gap<Event> | undefined;
  /** Why the feed is offline or has ended; or the error of the store, while events wait for it. */
  readonly problem: unknown;
}

export type ShowOptions<Event, Variables> = FollowOptions<Event, Variables> & {
  /** Where the list begins. Feeds with other variables need another store. Without one the list is kept in memory. */
  readonly store?: Store<Event>;
  /** Items to show until the store has been read, newest first, such as those that a server has rendered. */
  readonly initialItems?: readonly (Event | Gap<Event>)[];
  /** How many items to hold; default 200, as many as the stores keep. */
  readonly limit?: number;
};

/** Returns the state of a screen before its feed has begun. */
export const startState = <Event>(items: FeedState<Event>['items'] = []): FeedState<Event> => ({
  items,
  status: 'offline',
  missing: 0,
  gap: undefined,
  problem: undefined,
});

/** Applies a change to the state before. */
export type Change<Event> = (change: (before: FeedState<Event>) => FeedState<Event>) => void;

/** Follows a feed, and calls back with each change of the screen's state. @returns a function that ends it. */
export function showFeed<
  Data extends { [Key in keyof Data]: { readonly cursor: string } | string | null | undefined },
  Variables,
>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: ShowOptions<EventOf<Data>, Variables> & { readonly store: Store<EventOf<Data>> },
  change: Change<EventOf<Data>>,
): () => void {
  const { store, initialItems = [], limit = 200 } = options;
  let isShown = true;
  const set = (next: (before: FeedState<EventOf<Data>>) => Partial<FeedState<EventOf<Data>>>) => {
    if (!isShown) return;
    change((before) => {
      const state = { ...before, ...next(before) };
      return state.items.length > limit ? { ...state, items: state.items.slice(0, limit) } : state;
    });
  };
  // React begins this anew for a screen that it had hidden: what that shows stays until the store has been read.
  set(({ items }) => startState(items[0] ? items : initialItems));
  // The beginning of the list and the place of the feed come from one reading, because another tab may save at any time.
  const once = readingOnce(store, (saved) =>
    set(({ items }) => {
      if (!saved) return { items: initialItems };
      // A store that keeps no list says nothing of what is shown.
      return { items: saved.events ? [...saved.events].reverse() : items };
    }),
  );
  const feed = follow(source, document, { ...options, store: once });
  feed.onChange(() => {
    const { status, missing, problem } = feed;
    set(() => ({ status, missing, problem }));
  });
  void run(feed, limit, set);
  return () => {
    set(() => ({ status: 'offline', missing: 0 }));
    isShown = false;
    feed.close();
  };
}

function readingOnce<Event>(
  store: Store<Event>,
  loaded: (saved: Saved<Event> | undefined | null) => void,
): Store<Event> {
  let isFirst = true;
  return {
    async load() {
      const saved = await store.load();
      if (isFirst) loaded(saved);
      isFirst = false;
      return saved;
    },
    save: (item, cursor) => store.save(item, cursor),
  };
}

async function run<Event>(
  feed: Feed<Event>,
  limit: number,
  set: (next: (before: FeedState<Event>) => Partial<FeedState<Event>>) => void,
): Promise<void> {
  try {
    for await (const item of feed) {
      set(({ items, gap }) => {
        if (!isGap(item)) {
          // Behind a gap events come again.
          const isShown = items.some((one) => !isGap(one) && cursorOf(one) === cursorOf(item));
          return isShown ? {} : { items: [item, ...items] };
        }
        // A gap after a gap is the same gap.
        const before = isGap(items[0]) ? items.slice(1) : items;
        if (item.events === undefined) return { items: [item, ...before], gap: item };
        return {
          items: [...listed([], item, limit)].reverse(),
          gap: item.reason === 'FIRST_START' ? gap : item,
        };
      });
    }
  } catch (problem) {
    set(() => ({ status: 'ended', problem }));
  }
}
