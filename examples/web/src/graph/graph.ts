import type { Source } from '@pasarela/client';
import { createSocket } from '@pasarela/client/graphql-ws';
import { sourceExchange, urqlSource } from '@pasarela/client/urql';
import { Client, type CombinedError, cacheExchange, mapExchange } from 'urql';
import type { Session } from './session.ts';

export interface Graph {
  /** For what is read once. */
  readonly client: Client;
  /** For what is followed and paid. */
  readonly source: Source;
}

/** Everything goes over one WebSocket, under the session's token of the moment. */
export function openGraph({ endpoint, token }: Session, onRefused: () => void): Graph {
  const client = new Client({
    url: endpoint,
    preferGetMethod: false,
    exchanges: [
      cacheExchange,
      mapExchange({ onError: (error) => isRefused(error) && onRefused() }),
      sourceExchange(createSocket({ url: endpoint, token })),
    ],
  });
  return { client, source: urqlSource(client) };
}

/** The gateway ends a socket with this code whose token holds no longer. */
const TOKEN_REFUSED = 4403;

function isRefused({ graphQLErrors, networkError }: CombinedError): boolean {
  const closed: unknown = networkError && 'code' in networkError ? networkError.code : undefined;
  return closed === TOKEN_REFUSED || graphQLErrors[0]?.extensions['code'] === 'UNAUTHENTICATED';
}
