import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { until } from './until.ts';

/** A result as it arrives on a stream. */
interface Streamed {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what its own document selects.
  readonly data?: any;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: Readonly<Record<string, unknown>>;
  }[];
}

export interface Subscriber extends AsyncDisposable {
  /** Everything received so far. */
  readonly results: readonly Streamed[];
  /** Resolves when the stream has completed or failed; the error, if it failed. */
  readonly ended: Promise<unknown>;
  /** Resolves once `count` results are there. */
  received(count: number): Promise<readonly Streamed[]>;
  leave(): Promise<void>;
}

interface Operation {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
}

function collect(
  start: (sink: { next(result: unknown): void; error(error: unknown): void; complete(): void }) => () => void,
  close: () => void | Promise<void>,
): Subscriber {
  const results: Streamed[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<unknown>();
  const unsubscribe = start({
    // What a client library hands on is a result by its own contract.
    next: (result) => results.push(result as Streamed),
    error: resolve,
    complete: () => resolve(undefined),
  });
  const leave = async () => {
    unsubscribe();
    await close();
  };
  return {
    results,
    ended,
    async received(count) {
      await until(() => results.length >= count);
      return results;
    },
    leave,
    [Symbol.asyncDispose]: leave,
  };
}

/** Subscribes with the stock graphql-ws client, which does not reconnect here. */
export function subscribeOverWebSocket(graphql: string, token: string, operation: Operation): Subscriber {
  const client = createWsClient({
    url: graphql.replace(/^http/, 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
    lazy: true,
  });
  return collect(
    (sink) => client.subscribe(operation, sink),
    () => client.dispose(),
  );
}

/** Subscribes with the stock graphql-sse client, which does not reconnect here. */
export function subscribeOverSse(graphql: string, token: string, operation: Operation): Subscriber {
  const client = createSseClient({
    url: graphql,
    headers: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
  });
  return collect(
    (sink) => client.subscribe(operation, sink),
    () => client.dispose(),
  );
}

export const TRANSPORTS = [
  ['WebSocket', subscribeOverWebSocket],
  ['SSE', subscribeOverSse],
] as const;
