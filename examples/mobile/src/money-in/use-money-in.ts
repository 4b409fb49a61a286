import { keyValueStore, Refused, type Source } from '@pasarela/client';
import { type FeedState, useFeed } from '@pasarela/client/react';
import AsyncStorage from '@react-native-async-storage/async-storage';
import { useMemo } from 'react';
import { presence } from '../graph/presence.ts';
import { type Credit, RECENT_CREDITS, WATCH_MONEY_IN } from './documents.ts';

const HISTORY = 20;

/** A client's credits. List and place in the log are kept on this phone: the next start goes on where it was. */
export function useMoneyIn(source: Source, clientId: string): FeedState<Credit> {
  const store = useMemo(() => keyValueStore<Credit>(AsyncStorage, `pasarela.feed.${clientId}`), [clientId]);
  return useFeed(source, WATCH_MONEY_IN, {
    store,
    presence,
    async getState() {
      const { data, errors } = await source.query(RECENT_CREDITS, { last: HISTORY });
      if (!data?.events) throw new Refused(errors?.[0] ?? { message: 'the log could not be read' });
      return data.events.nodes.filter((node): node is Credit => node !== null && 'amount' in node);
    },
  });
}
