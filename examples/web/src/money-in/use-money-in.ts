import { keyValueStore } from '@pasarela/client';
import { type FeedState, useFeed } from '@pasarela/client/react';
import { useMemo } from 'react';
import type { Graph } from '../graph/graph.ts';
import { type Credit, RECENT_CREDITS, WATCH_MONEY_IN } from './documents.ts';

const HISTORY = 20;

const KEPT = 'pasarela.feed.';

/** Forgets who paid what: the lists of all clients that were seen in this browser. */
export function forgetCredits(): void {
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith(KEPT)) localStorage.removeItem(key);
  }
}

/** A client's credits. List and place in the log are kept on this device: a reload goes on where it was. */
export function useMoneyIn({ client, source }: Graph, clientId: string): FeedState<Credit> {
  const store = useMemo(() => keyValueStore<Credit>(localStorage, `${KEPT}${clientId}`), [clientId]);
  return useFeed(source, WATCH_MONEY_IN, {
    store,
    async getState() {
      const fresh = { requestPolicy: 'network-only' } as const;
      const { data, error } = await client.query(RECENT_CREDITS, { last: HISTORY }, fresh);
      if (!data?.events) throw error ?? new Error('the log could not be read');
      return data.events.nodes.filter((node): node is Credit => node !== null && 'amount' in node);
    },
  });
}
