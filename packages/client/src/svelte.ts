import type { EventOf } from './feed.ts';
import { type Change, type FeedState, type ShowOptions, showFeed, startState } from './feed-state.ts';
import { tellAll } from './listeners.ts';
import type { Source, TypedDocument } from './source.ts';
import { memoryStore } from './stores.ts';

export type { FeedState, ShowOptions } from './feed-state.ts';

/** A readable store of Svelte: `$credits` in a component, and `fromStore` for runes. Vue and others can subscribe too. */
export interface Readable<Value> {
  /** Calls back at once, and at each change. @returns a function that stops that. */
  subscribe(run: (value: Value) => void): () => void;
}

/**
 * Makes a store of a feed. The feed is followed as long as the store has a subscriber, and is kept in memory if no store is
 * given.
 */
export function feedStore<
  Data extends { [Key in keyof Data]: { readonly cursor: string } | string | null | undefined },
  Variables,
>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: ShowOptions<EventOf<Data>, Variables> = {},
): Readable<FeedState<EventOf<Data>>> {
  let state = startState(options.initialItems);
  const store = options.store ?? memoryStore<EventOf<Data>>(options.limit);
  const subscribers = new Set<() => void>();
  let stop = (): void => {};
  const change: Change<EventOf<Data>> = (next) => {
    state = next(state);
    tellAll(subscribers);
  };
  return {
    subscribe(run) {
      const mine = () => run(state);
      subscribers.add(mine);
      if (subscribers.size === 1) stop = showFeed(source, document, { ...options, store }, change);
      else tellAll([mine]);
      return () => {
        if (subscribers.delete(mine) && subscribers.size === 0) stop();
      };
    },
  };
}
