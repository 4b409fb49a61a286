import { type Client, createClient, type SubscribePayload } from 'graphql-ws';
import type { ExecutionResult, SubscriptionForwarder } from 'urql';

/** How long an answer to a ping may take, in milliseconds: a network that is gone without a word says nothing. */
const PONG_TIMEOUT_MS = 5_000;
const PING_EVERY_MS = 10_000;

/** A WebSocket that comes back for as long as anything is subscribed, each time with the token of that moment. */
export function openSockets(endpoint: string, token: () => string): Client {
  let overdue: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url: endpoint.replace(/^http/, 'ws'),
    connectionParams: () => ({ authorization: `Bearer ${token()}` }),
    // A server that is away refuses connections: that is no reason to stop.
    shouldRetry: () => true,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: (retries) => pause(Math.min(500 * 2 ** retries, 5_000) * (0.5 + Math.random() / 2)),
    keepAlive: PING_EVERY_MS,
    on: {
      ping: (received) => {
        if (!received) overdue = setTimeout(() => client.terminate(), PONG_TIMEOUT_MS);
      },
      pong: (received) => {
        if (received) clearTimeout(overdue);
      },
      closed: () => clearTimeout(overdue),
    },
  });
  return client;
}

/** Waits, though no longer than until the browser says that the network is back. */
function pause(milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  const over = new AbortController();
  addEventListener('online', () => resolve(), { signal: over.signal });
  return promise.finally(() => {
    clearTimeout(timer);
    over.abort();
  });
}

/**
 * Forwards subscriptions to the socket. graphql-ws sends the same payload object again after each reconnection: moving
 * its `after` on with each result is all that it takes to resume without a gap or a repeat.
 */
export function resumable(sockets: Client): SubscriptionForwarder {
  return ({ query = '', operationName, variables }) => {
    const payload = { query, operationName, variables: { ...variables } } satisfies SubscribePayload;
    return {
      subscribe: (sink) => ({
        unsubscribe: sockets.subscribe<ExecutionResult['data']>(payload, {
          next(result) {
            const cursor = cursorOf(result.data);
            if (cursor !== undefined && 'after' in payload.variables) payload.variables['after'] = cursor;
            // Both describe a result of the GraphQL specification, in types of their own.
            sink.next(result as ExecutionResult);
          },
          error: (error) => sink.error(error),
          complete: () => sink.complete(),
        }),
      }),
    };
  };
}

/** The `cursor` of a subscription's one field. */
function cursorOf(data: unknown): string | undefined {
  const [field] = Object.values(data ?? {});
  const cursor: unknown = field?.cursor;
  return typeof cursor === 'string' ? cursor : undefined;
}
