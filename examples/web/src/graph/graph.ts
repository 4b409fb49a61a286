import type { Source } from '@pasarela/client';
import { createSocket } from '@pasarela/client/graphql-ws';
import { sourceExchange, urqlSource } from '@pasarela/client/urql';
import { Client, cacheExchange, mapExchange } from 'urql';
import { kindOf } from '../ui/problem.ts';
import type { Session } from './session.ts';

export interface Graph {
  /** For what is read once. */
  readonly client: Client;
  /** For what is followed and paid. */
  readonly source: Source;
  /** Aborted as the session ends: for what is paid. */
  readonly signal: AbortSignal;
}

/**
 * Everything goes over one WebSocket, under the session's token of the moment.
 *
 * @param signal aborted as the session ends
 * @param onRefused called where the gateway does not accept the token, and no other can be had.
 */
export function openGraph(
  { endpoint, token, renews }: Session,
  signal: AbortSignal,
  onRefused: () => void,
): Graph {
  const socket = createSocket({ url: endpoint, token });
  signal.addEventListener('abort', () => socket.close());
  const client = new Client({
    url: endpoint,
    preferGetMethod: false,
    exchanges: [
      cacheExchange,
      // A token that renews is asked for again with the next connection.
      mapExchange({ onError: (error) => !renews && kindOf(error) === 'token' && onRefused() }),
      sourceExchange(socket),
    ],
  });
  return { client, source: urqlSource(client), signal };
}
