import { type KeyValues, keyValueStore, Refused, type Source, type Store } from '@pasarela/client';
import { type FeedState, useFeed } from '@pasarela/client/react';
import AsyncStorage from '@react-native-async-storage/async-storage';
import { useEffect, useMemo } from 'react';
import { presence } from '../graph/presence.ts';
import { type Credit, RECENT_CREDITS, WATCH_MONEY_IN } from './documents.ts';

/** How many credits the phone keeps and shows: as many are read from the log at the first start, and after a gap. */
const CREDITS = 200;

const KEPT = 'pasarela.feed.';

/** Forgets who paid what: the lists of all who have signed in on this phone. */
export async function forgetCredits(): Promise<void> {
  const keys = await AsyncStorage.getAllKeys();
  await AsyncStorage.multiRemove(keys.filter((key) => key.startsWith(KEPT)));
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
    const storage: KeyValues = {
      getItem: (key) => AsyncStorage.getItem(key),
      setItem: (key, value) => screens.areThere && AsyncStorage.setItem(key, value),
    };
    return keyValueStore(storage, `${KEPT}${owner}`, CREDITS);
  }, [screens, owner]);
}

/**
 * The credits that a person sees. List and place in the log are kept on this phone: the next start goes on where it was.
 *
 * @param owner as the session names it
 */
export function useMoneyIn(source: Source, owner: string): FeedState<Credit> {
  const store = useKept(owner);
  return useFeed(source, WATCH_MONEY_IN, {
    store,
    presence,
    limit: CREDITS,
    async getState() {
      const list: Credit[] = [];
      // A page is oldest first, and the pages go back from the newest.
      let place: { readonly hasPreviousPage: boolean; readonly startCursor: string | null } | undefined;
      while (list.length < CREDITS && place?.hasPreviousPage !== false) {
        const { data, errors } = await source.query(RECENT_CREDITS, { before: place?.startCursor ?? null });
        if (!data?.events) throw new Refused(errors?.[0] ?? { message: 'the log could not be read' });
        list.unshift(
          ...data.events.nodes.filter((node): node is Credit => node !== null && 'amount' in node),
        );
        place = data.events.pageInfo;
      }
      return list;
    },
  });
}
