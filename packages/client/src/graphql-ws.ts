import { type Client, type ClientOptions, createClient, type FormattedExecutionResult } from 'graphql-ws';
import { textOf } from './print.ts';
import { type Answer, type Source, within } from './source.ts';

export interface SocketOptions {
  /** Address of `/graphql`; asked before each connection where it is a function. */
  readonly url: string | (() => string);
  /** The access token to show. Asked before each connection, so that it is never older than it may be. */
  readonly token: () => string | Promise<string>;
  /** How often the gateway is pinged, and how long its answer may take, in milliseconds; default 10,000 and 5,000. */
  readonly heartbeat?: { readonly everyMs: number; readonly withinMs: number };
  /** Where the platform has no `WebSocket` of its own: Node 20. */
  readonly webSocketImpl?: ClientOptions['webSocketImpl'];
}

/** One WebSocket for everything: subscriptions, queries, mutations. It is open while it has something to do. */
export interface Socket extends Source {
  readonly client: Client;
  close(): void;
}

const HEARTBEAT = { everyMs: 10_000, withinMs: 5_000 };
/** How long an idle socket is kept for what may come next, in milliseconds. */
const IDLE_MS = 1_000;
/** How long an answer may take where the network has just changed, in milliseconds. */
const CHECK_MS = 1_000;

/** What is needed of a `WebSocket`. */
interface OpenSocket {
  readonly readyState: number;
  send(text: string): void;
}

/** `WebSocket.OPEN`. */
const OPEN = 1;

/** A source over `graphql-transport-ws`, with the client of graphql-ws. */
export function createSocket({ url, token, heartbeat = HEARTBEAT, webSocketImpl }: SocketOptions): Socket {
  let overdue: ReturnType<typeof setTimeout> | undefined;
  /** The token for the connection that is being made, or why there is none. */
  let given = (): string => '';
  let socket: OpenSocket | undefined;
  /** A peer that is gone without a word answers nothing. */
  const expect = (withinMs = heartbeat.withinMs) => {
    clearTimeout(overdue);
    overdue = setTimeout(() => client.terminate(), withinMs);
  };
  const heard = () => clearTimeout(overdue);
  const client = createClient({
    // The token is there before the socket: the gateway does not wait long for one. graphql-ws takes no failure here.
    async url() {
      const patienceMs = 2 * heartbeat.withinMs;
      try {
        const shown = await within(patienceMs, token);
        given = () => shown;
      } catch (cause) {
        given = () => {
          throw cause;
        };
      }
      // A slow network takes longer to connect than to answer.
      expect(patienceMs);
      return (typeof url === 'string' ? url : url()).replace(/^http/, 'ws');
    },
    connectionParams: () => ({ authorization: `Bearer ${given()}` }),
    // The subscriber connects again by itself, with the cursor of the last event that it saw.
    retryAttempts: 0,
    lazyCloseTimeout: IDLE_MS,
    keepAlive: heartbeat.everyMs,
    webSocketImpl,
    on: {
      connected(opened) {
        heard();
        socket = opened as OpenSocket;
      },
      ping: (received) => void (received || expect()),
      message: heard,
      closed() {
        heard();
        socket = undefined;
      },
    },
  });

  const subscribe: Source['subscribe'] = (document, variables, sink) => {
    // An idle socket that was closed on a dead network waits for an answer that never comes, and graphql-ws waits with it.
    if (socket !== undefined && socket.readyState !== OPEN) client.terminate();
    // A source is handed variables by their names; graphql-ws has a type of its own for that.
    const payload = { query: textOf(document), variables: variables as Record<string, unknown> };
    const listening = [
      client.on('connected', () => sink.opened()),
      client.on('closed', (event) => end(event)),
    ];
    const stop = () => {
      for (const off of listening) off();
    };
    const end = (cause?: unknown) => {
      stop();
      sink.ended(cause);
    };
    if (socket !== undefined) sink.opened();
    const leave = client.subscribe(payload, {
      // The type of the data is the document's.
      next: (result) => sink.next(result as Answer<never>),
      error(cause) {
        if (!Array.isArray(cause)) return end(cause);
        sink.next({ errors: cause as FormattedExecutionResult['errors'] });
        end();
      },
      complete: () => end(),
    });
    return () => {
      stop();
      // graphql-ws counts a subscription as gone twice that is left while its `complete` is being read.
      setTimeout(leave);
    };
  };

  return {
    client,
    subscribe,
    query: (document, variables, signal) =>
      new Promise((resolve, reject) => {
        const leave = subscribe(document, variables, {
          opened() {},
          next: resolve,
          ended(cause) {
            setTimeout(() => leave());
            reject(cause ?? new Error('The gateway gave no answer.'));
          },
        });
        signal?.addEventListener('abort', () => {
          leave();
          reject(signal.reason);
        });
      }),
    check() {
      if (socket === undefined) return client.terminate();
      expect(CHECK_MS);
      socket.send('{"type":"ping"}');
    },
    close: () => void client.dispose(),
  };
}
