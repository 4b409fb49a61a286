import { setTimeout as pause } from 'node:timers/promises';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { WebSocket } from 'ws';

const EVENTS = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';

export interface ReaderOptions {
  /** Address of `/graphql` at the moment; asked before each connection. */
  readonly graphql: () => string;
  readonly token: string;
  /** The cursor to begin after. */
  readonly after: string;
  /** From 0 to under 1: how long each waits before it comes back. */
  readonly random: () => number;
}

/** Someone who reads every event with a stock client, and comes back with the last cursor whatever happens. */
export interface Reader {
  /** Ids of the events, as they came. */
  readonly seen: readonly string[];
  /** The cursor of the last one. */
  readonly cursor: string;
  /** How often a connection has been made. */
  readonly connections: number;
  /** Codes of the errors that it was told, in their order. */
  readonly told: readonly string[];
  /** The ids that have come since it was called last, which are no longer among those seen. */
  take(): string[];
  /** Drops the connection; the client makes another. */
  drop(): void;
  leave(): Promise<void>;
}

interface Result {
  readonly data?: { readonly events: { readonly id: string; readonly cursor: string } } | null;
  readonly errors?: readonly { readonly extensions?: Readonly<Record<string, unknown>> }[];
}

interface Sink {
  next(result: unknown): void;
  error(error: unknown): void;
  complete(): void;
}

/** Long enough not to storm a gateway that is gone, short enough for a test; different for each. */
const comeBackMs = ({ random }: ReaderOptions) => 20 + random() * 80;

/** A stock client, as the reader drives it. */
interface Driver {
  subscribe(payload: { query: string; variables: { after: string } }, sink: Sink): () => void;
  drop(): void;
  dispose(): void | Promise<void>;
}

function startReader(options: ReaderOptions, connect: (connecting: () => void) => Driver): Reader {
  const seen: string[] = [];
  const told: string[] = [];
  let connections = 0;
  let left = false;
  // Both clients send this object anew at each connection: changing it is how they resume.
  const payload = { query: EVENTS, variables: { after: options.after } };
  const driver = connect(() => {
    connections += 1;
  });
  const subscribe = (): void => {
    const again = () => {
      if (!left) void pause(comeBackMs(options)).then(() => left || subscribe());
    };
    driver.subscribe(payload, {
      next(result) {
        // What a client library hands on is a result by its own contract.
        const { data, errors } = result as Result;
        for (const { extensions } of errors ?? []) told.push(String(extensions?.['code']));
        if (data == null) return;
        seen.push(data.events.id);
        payload.variables.after = data.events.cursor;
      },
      error: again,
      complete: again,
    });
  };
  subscribe();
  return {
    seen,
    told,
    get cursor() {
      return payload.variables.after;
    },
    get connections() {
      return connections;
    },
    take: () => seen.splice(0),
    drop: () => driver.drop(),
    async leave() {
      left = true;
      await driver.dispose();
    },
  };
}

/** A reader on graphql-ws. */
export const readOverWebSocket = (options: ReaderOptions): Reader =>
  startReader(options, (connecting) => {
    let socket: WebSocket | undefined;
    const client = createWsClient({
      url: () => options.graphql().replace(/^http/, 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${options.token}` },
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      retryWait: () => pause(comeBackMs(options)),
      on: {
        connecting,
        opened: (opened) => {
          // It was made by the implementation given above.
          socket = opened as WebSocket;
        },
      },
    });
    return {
      subscribe: (payload, sink) => client.subscribe(payload, sink),
      drop: () => socket?.terminate(),
      dispose: () => client.dispose(),
    };
  });

/** A reader on graphql-sse. */
export const readOverSse = (options: ReaderOptions): Reader =>
  startReader(options, (connecting) => {
    let connection = new AbortController();
    const client = createSseClient({
      url: options.graphql,
      headers: { authorization: `Bearer ${options.token}` },
      retryAttempts: Number.POSITIVE_INFINITY,
      retry: () => pause(comeBackMs(options)),
      on: { connecting },
      fetchFn: (url: string, init: RequestInit) => {
        connection = new AbortController();
        const signal = init.signal ? AbortSignal.any([init.signal, connection.signal]) : connection.signal;
        return fetch(url, { ...init, signal });
      },
    });
    return {
      subscribe: (payload, sink) => client.subscribe(payload, sink),
      drop: () => connection.abort(),
      dispose: () => client.dispose(),
    };
  });

/** `count` readers, one in four of them over SSE; all alike, or each with options of its own. */
export const startReaders = (
  count: number,
  options: ReaderOptions | ((index: number) => ReaderOptions),
): readonly Reader[] =>
  Array.from({ length: count }, (_, index) => {
    const own = typeof options === 'function' ? options(index) : options;
    return index % 4 === 3 ? readOverSse(own) : readOverWebSocket(own);
  });
