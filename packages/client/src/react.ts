import { useEffect, useRef, useState } from 'react';
import type { FieldOf } from './documents.ts';
import { type EventOf, type Feed, type FollowOptions, follow, type Status } from './follow.ts';
import type { Presence } from './presence.ts';
import type { Source, TypedDocument } from './source.ts';
import { CEP_STATUS, type CepUpdate, TRANSACTION_STATUS, type TransactionUpdate } from './statuses.ts';
import { type Gap, isGap, type Store } from './stores.ts';
import { watch } from './watch.ts';

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

/** A feed needs a place to begin its list from. */
export type UseFeedOptions<Event, Variables> = FollowOptions<Event, Variables> & {
  readonly store: Store<Event>;
};

/**
 * Follows a feed for as long as the component is there. It starts over when `source`, `document` or `options.store` is
 * another one: keep them outside of the component, or in `useMemo`.
 */
export function useFeed<
  Data extends { [Key in keyof Data]: { readonly cursor: string } | string | null | undefined },
  Variables,
>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: UseFeedOptions<EventOf<Data>, Variables>,
): FeedState<EventOf<Data>> {
  const [state, setState] = useState<FeedState<EventOf<Data>>>(EMPTY);
  const current = useRef(options);
  current.current = options;
  const { store } = options;
  useEffect(() => {
    const feed = follow(source, document, current.current);
    let isShown = true;
    setState(EMPTY);
    void run(feed, store, (change) => {
      if (isShown) setState((before) => ({ ...before, ...change(before) }));
    });
    return () => {
      isShown = false;
      feed.close();
    };
  }, [source, document, store]);
  return state;
}

const EMPTY = { items: [], status: 'offline', missing: 0, gap: undefined, problem: undefined } as const;

async function run<Event>(
  feed: Feed<Event>,
  store: Store<Event>,
  change: (change: (before: FeedState<Event>) => Partial<FeedState<Event>>) => void,
): Promise<void> {
  feed.onChange(() => {
    const { status, missing, problem } = feed;
    change(() => ({ status, missing, problem }));
  });
  try {
    const saved = await store.load();
    const items = [...(saved?.events ?? [])].reverse();
    change(() => ({ items }));
    for await (const item of feed) {
      change(({ items, gap }) => {
        if (!isGap(item)) return { items: [item, ...items] };
        if (item.events === undefined) return { items: [item, ...items], gap: item };
        return { items: [...item.events].reverse(), gap: item.reason === 'FIRST_START' ? gap : item };
      });
    }
  } catch (problem) {
    change(() => ({ problem }));
  }
}

export interface StatusState<Update> {
  /** The state of the moment; undefined until it is known. */
  readonly update: Update | undefined;
  /** Whether it is followed now, will be again, or can no longer change. */
  readonly status: 'live' | 'offline' | 'final';
  /** What the gateway refused, for good. */
  readonly problem: unknown;
}

/** Watches a receipt (CEP). With a document of your own, `update` is what that selects. */
export function useCepStatus<Data = { readonly cepStatus: CepUpdate }>(
  source: Source,
  transactionId: string,
  document: TypedDocument<Data, { readonly transactionId: string }> = CEP_STATUS as never,
  presence?: Presence,
): StatusState<FieldOf<Data>> {
  return useStatus(source, transactionId, document, presence);
}

/** Watches a transaction. With a document of your own, `update` is what that selects. */
export function useTransactionStatus<Data = { readonly transactionStatus: TransactionUpdate }>(
  source: Source,
  transactionId: string,
  document: TypedDocument<Data, { readonly transactionId: string }> = TRANSACTION_STATUS as never,
  presence?: Presence,
): StatusState<FieldOf<Data>> {
  return useStatus(source, transactionId, document, presence);
}

function useStatus<Data>(
  source: Source,
  transactionId: string,
  document: TypedDocument<Data, { readonly transactionId: string }>,
  presence: Presence | undefined,
): StatusState<FieldOf<Data>> {
  const [state, setState] = useState<StatusState<FieldOf<Data>>>(UNKNOWN);
  useEffect(() => {
    const watched = watch(source, document, { transactionId }, presence);
    let closed = false;
    const change = (next: Partial<StatusState<FieldOf<Data>>>) => {
      if (!closed) setState((before) => ({ ...before, ...next }));
    };
    // Over a socket that is open already it is live from the beginning.
    setState({ ...UNKNOWN, status: watched.status });
    watched.onChange(() => change({ status: watched.status }));
    void (async () => {
      try {
        for await (const update of watched) change({ update });
        change({ status: 'final' });
      } catch (problem) {
        change({ problem });
      }
    })();
    return () => {
      closed = true;
      watched.close();
    };
  }, [source, document, transactionId, presence]);
  return state;
}

const UNKNOWN = { update: undefined, status: 'offline', problem: undefined } as const;
