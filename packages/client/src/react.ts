import { useEffect, useMemo, useRef, useState } from 'react';
import { ambient } from './ambient.ts';
import type { FieldOf } from './documents.ts';
import type { EventOf } from './feed.ts';
import { type FeedState, type ShowOptions, showFeed, startState } from './feed-state.ts';
import type { Presence } from './presence.ts';
import type { Source, TypedDocument } from './source.ts';
import { CEP_STATUS, type CepUpdate, TRANSACTION_STATUS, type TransactionUpdate } from './statuses.ts';
import { memoryStore } from './stores.ts';
import { watch } from './watch.ts';

export type { FeedState } from './feed-state.ts';

export type UseFeedOptions<Event, Variables> = ShowOptions<Event, Variables> & {
  /** False to not follow; default true. */
  readonly enabled?: boolean;
};

/**
 * Follows a feed as long as the component is mounted; in memory if no store is given. It starts again when `source`,
 * `document`, `options.store` or the values of `options.variables` change: keep the first three outside of the component, or
 * in `useMemo`. If it starts more than 20 times in a second, it throws.
 */
export function useFeed<
  Data extends { [Key in keyof Data]: { readonly cursor: string } | string | null | undefined },
  Variables,
>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: UseFeedOptions<EventOf<Data>, Variables> = {},
): FeedState<EventOf<Data>> {
  const current = useRef(options);
  useEffect(() => {
    current.current = options;
  });
  // Each rendering makes a new object of the same values.
  const values = JSON.stringify(options.variables);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is kept of one feed is nothing of another.
  const memory = useMemo(() => memoryStore<EventOf<Data>>(options.limit), [source, document, values]);
  const { store = memory, enabled = true } = options;
  // biome-ignore lint/correctness/useExhaustiveDependencies: other values make another feed.
  const first = useMemo(() => startState(options.initialItems), [source, document, store, values]);
  const [state, change] = useStateFrom(first);
  const begin = useBegin();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `first` is another one where any of the others is.
  useEffect(() => {
    if (!enabled) return undefined;
    begin();
    const { getState, ...latest } = current.current;
    const calls = {
      onErrors: (...told: Parameters<NonNullable<typeof latest.onErrors>>) =>
        current.current.onErrors?.(...told),
      ...(getState && { getState: (head: string) => (current.current.getState ?? getState)(head) }),
    };
    return showFeed(source, document, { ...latest, ...calls, store }, change);
  }, [first, enabled]);
  return state;
}

/**
 * @param first the state of something that has not begun. Another one means another thing, of which nothing before is shown, not even in the
 * rendering that is given it.
 */
function useStateFrom<State>(first: State): readonly [State, (next: (before: State) => State) => void] {
  const [shown, setShown] = useState({ first, state: first });
  const stateIn = (of: typeof shown) => (of.first === first ? of.state : first);
  return [stateIn(shown), (next) => setShown((before) => ({ first, state: next(stateIn(before)) }))];
}

/** More starts in a second than a person can cause. */
const MOST = 20;

/** @returns a function for each effect that starts something. It throws if renderings start it again and again. */
function useBegin(): () => void {
  const begun = useRef<number[]>([]);
  return () => {
    const now = ambient.now();
    begun.current = begun.current.filter((at) => at > now - 1_000);
    if (begun.current.push(now) > MOST) {
      throw new Error('Make source, document and store outside of the component, not at each rendering.');
    }
  };
}

export interface StatusState<Update> {
  /** The present state; undefined until it is known. */
  readonly update: Update | undefined;
  /**
   * `live`: it is being followed. `offline`: it will be again. `final`: it can no longer change. `ended`: the gateway has refused
   * it for good, and `problem` says why.
   */
  readonly status: 'live' | 'offline' | 'final' | 'ended';
  /** Why it is offline or has ended; or what the gateway refused of the last update. */
  readonly problem: unknown;
}

/** Watches a receipt (CEP). With a document of your own, `update` is its selection. */
export function useCepStatus<Data = { readonly cepStatus: CepUpdate }>(
  source: Source,
  transactionId: string,
  document: TypedDocument<Data, { readonly transactionId: string }> = CEP_STATUS as never,
  presence?: Presence,
): StatusState<FieldOf<Data>> {
  return useStatus(source, transactionId, document, presence);
}

/** Watches a transaction. With a document of your own, `update` is its selection. */
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: of another one nothing is known.
  const first: StatusState<FieldOf<Data>> = useMemo(
    () => ({ ...UNKNOWN }),
    [source, document, transactionId],
  );
  const [state, set] = useStateFrom(first);
  const begin = useBegin();
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is another function each time.
  useEffect(() => {
    begin();
    const watched = watch(source, document, { transactionId }, presence);
    let closed = false;
    const change = (next: Partial<StatusState<FieldOf<Data>>>) => {
      if (!closed) set((before) => ({ ...before, ...next }));
    };
    // Over a socket that is open already, it is live from the beginning. The last state stays: React begins this anew for a screen that it had
    // hidden.
    change({ status: watched.status, problem: undefined });
    watched.onChange(() => change({ status: watched.status, problem: watched.problem }));
    void (async () => {
      try {
        for await (const update of watched) change({ update });
        change({ status: 'final' });
      } catch (problem) {
        change({ status: 'ended', problem });
      }
    })();
    return () => {
      closed = true;
      watched.close();
    };
  }, [first, presence]);
  return state;
}

const UNKNOWN = { update: undefined, status: 'offline', problem: undefined } as const;
