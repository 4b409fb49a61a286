import { type KeyValues, keyValueStore, Refused, type Store } from '@pasarela/client';
import { type FeedState, useFeed } from '@pasarela/client/react';
import { useEffect, useMemo } from 'react';
import type { Graph } from '../graph/graph.ts';
import { keysWith, storage } from '../ui/storage.ts';
import { type Credit, RECENT_CREDITS, WATCH_MONEY_IN } from './documents.ts';

const HISTORY = 20;

const KEPT = 'pasarela.feed.';

/** Forgets who paid what: the lists of all who have signed in in this browser. */
export function forgetCredits(): void {
  for (const key of keysWith(KEPT)) localStorage.removeItem(key);
}

/** Keeps a list for as long as the screens are there: what was still being saved as they went comes too late. */
function useKept(owner: string): Store<Credit> {
  const screens = useMemo(() => ({ areThere: false }), []);
  useEffect(() => {
    screens.areThere = true;
    return () => {
      screens.areThere = false;
    };
  }, [screens]);
  return useMemo(() => {
    const kept: KeyValues = {
      getItem: storage.getItem,
      setItem: (key, value) => screens.areThere && storage.setItem(key, value),
    };
    return keyValueStore(kept, `${KEPT}${owner}`);
  }, [screens, owner]);
}

/**
 * The credits that a person sees. List and place in the log are kept on this device: a reload goes on where it was.
 *
 * @param owner as the session names it
 */
export function useMoneyIn({ source }: Graph, owner: string): FeedState<Credit> {
  const store = useKept(owner);
  return useFeed(source, WATCH_MONEY_IN, {
    store,
    async getState() {
      // Of a refusal by name the feed knows whether, and how soon, to ask again.
      const { data, errors } = await source.query(RECENT_CREDITS, { last: HISTORY });
      if (!data?.events) throw new Refused(errors?.[0] ?? { message: 'the log could not be read' });
      return data.events.nodes.filter((node): node is Credit => node !== null && 'amount' in node);
    },
  });
}
