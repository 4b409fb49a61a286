import { authExchange } from '@urql/exchange-auth';
import type { Client as Sockets } from 'graphql-ws';
import { Client, type CombinedError, cacheExchange, fetchExchange, subscriptionExchange } from 'urql';
import type { Session } from './session.ts';
import { openSockets, resumable } from './sockets.ts';

export interface Graph {
  readonly client: Client;
  readonly sockets: Sockets;
}

/** Queries and mutations over HTTP, subscriptions over one WebSocket, both under the session's token. */
export function openGraph(session: Session, onRefused: () => void): Graph {
  const sockets = openSockets(session.endpoint, session.token);
  const client = new Client({
    url: session.endpoint,
    preferGetMethod: false,
    exchanges: [
      cacheExchange,
      authExchange(async (utilities) => ({
        addAuthToOperation: (operation) =>
          utilities.appendHeaders(operation, { authorization: `Bearer ${session.token()}` }),
        didAuthError: (error) => codeOf(error) === 'UNAUTHENTICATED',
        async refreshAuth() {
          if (!(await session.renew())) onRefused();
        },
      })),
      fetchExchange,
      subscriptionExchange({ forwardSubscription: resumable(sockets) }),
    ],
  });
  return { client, sockets };
}

/** `extensions.code` of the first error of a result. */
export function codeOf(error: CombinedError | undefined): string | undefined {
  const code = error?.graphQLErrors[0]?.extensions['code'];
  return typeof code === 'string' ? code : undefined;
}
