import { type Client, type ClientOptions, createClient, type FormattedExecutionResult } from 'graphql-ws';
import { ambient, type Timer } from './ambient.ts';
import { type ConnectionEvent, ConnectionLost, type Token } from './lost.ts';
import { requestOf } from './request.ts';
import { type Answer, type Problem, Refused, type Source, throwIfLeft, within } from './source.ts';
import { type Shown, tokens } from './tokens.ts';

export { type ConnectionEvent, ConnectionLost, type Token } from './lost.ts';

export interface SocketOptions {
  /** Address of `/graphql`; asked before each connection where it is a function. */
  readonly url: string | (() => string);
  /** The access token to show. Asked before each connection, so that it is never older than it may be. */
  readonly token: Token;
  /** How often the gateway is pinged, and how long its answer may take, in milliseconds; default 10,000 and 5,000. */
  readonly heartbeat?: { readonly everyMs: number; readonly withinMs: number };
  /** Where the platform has no `WebSocket` of its own: Node 20. */
  readonly webSocketImpl?: ClientOptions['webSocketImpl'];
  /** How long a query or a mutation may take, in milliseconds; default 35,000, longer than the gateway takes for one. */
  readonly answerMs?: number;
  /** Told of each connection that opens and breaks. */
  readonly onConnection?: (event: ConnectionEvent) => void;
}

/** One WebSocket for everything: subscriptions, queries, mutations. It is open while it has something to do. */
export interface Socket extends Source {
  /** The client of graphql-ws, made when it is first needed. Throws {@link Refused} where there is no `WebSocket`. */
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

/** The close code of a connection that ended without a word. */
const UNEXPLAINED = 1006;
/** The close code by which the gateway says that it does not take the token. */
const REFUSED = 4403;

/** The socket of `ws` ends the process on an error that nobody listens for, as when it is left while it connects. */
const heardOf = (implementation: typeof WebSocket): typeof WebSocket =>
  new Proxy(implementation, {
    construct(target, given: ConstructorParameters<typeof WebSocket>) {
      const socket = new target(...given);
      socket.addEventListener('error', () => {});
      return socket;
    },
  });

const NO_WEB_SOCKET: Problem = {
  message: 'There is no WebSocket here: pass one as `webSocketImpl`, such as that of ws, or use createFetch.',
  extensions: { code: 'BAD_USER_INPUT' },
};

/** The gateway takes messages of 64 KiB (PROTOCOL.md): one that is longer would end the connection of every operation. */
const LONGEST = 65_536;
const TOO_LONG: Problem = {
  message: 'This request is longer than the 64 KiB that a WebSocket takes: use createFetch.',
  extensions: { code: 'TOO_COMPLEX' },
};

/** An error with a message, of what graphql-ws hands on: the event of a close, or of an error that a browser does not explain. */
function lostBy(cause: unknown): unknown {
  if (cause instanceof Error || typeof cause !== 'object' || cause === null) return cause;
  const { code, reason, message } = cause as { code?: number; reason?: unknown; message?: unknown };
  const text =
    code === undefined || code === UNEXPLAINED
      ? `The WebSocket broke, or was not opened: the network is away, the gateway is, or it does not allow this page (CORS_ORIGINS). ${String(message ?? '')}`
      : `The WebSocket was closed with ${code} ${String(reason ?? '')}`;
  return new ConnectionLost(text.trim(), code, cause);
}

/** What the parts of a socket know in common. */
interface State {
  /** The connection that is open. */
  socket: OpenSocket | undefined;
  /** The id of the operation that was begun last. */
  lastId: number;
  /** What a subscription is told of its place in the log, by the id of its operation. */
  readonly bookmarks: Map<string, (cursor: string) => void>;
}

/** Ends a connection whose answer is overdue: a peer that is gone without a word answers nothing. */
interface Watchdog {
  expect(withinMs?: number): void;
  /** The answer is here. */
  heard(): void;
  /** Something else is here: an answer that is expected has its whole time again. */
  lives(): void;
}

/** A source over `graphql-transport-ws`, with the client of graphql-ws. Making one needs no `WebSocket`: a server may import the app's own. */
export function createSocket(options: SocketOptions): Socket {
  const { heartbeat = HEARTBEAT, answerMs = 35_000 } = options;
  const state: State = { socket: undefined, lastId: 0, bookmarks: new Map() };
  let overdue: Timer | undefined;
  let isAsked = false;
  const heard = () => {
    isAsked = false;
    ambient.clearTimeout(overdue);
  };
  const watchdog: Watchdog = {
    expect(withinMs = heartbeat.withinMs) {
      heard();
      isAsked = true;
      overdue = ambient.setTimeout(() => made?.terminate(), withinMs);
    },
    heard,
    lives: () => isAsked && watchdog.expect(),
  };
  let made: Client | undefined;
  const client = (): Client => {
    if (options.webSocketImpl === undefined && globalThis.WebSocket === undefined) {
      throw new Refused(NO_WEB_SOCKET);
    }
    made ??= createClient(clientOptions(options, state, watchdog));
    return made;
  };
  const subscribe = subscribing(client, state);
  return {
    get client() {
      return client();
    },
    subscribe,
    query: querying(subscribe, answerMs),
    check() {
      if (state.socket === undefined) return made?.terminate();
      watchdog.expect(CHECK_MS);
      state.socket.send('{"type":"ping"}');
    },
    close: () => void made?.dispose(),
  };
}

function clientOptions(
  options: SocketOptions,
  state: State,
  { expect, heard, lives }: Watchdog,
): ClientOptions {
  const { url, token, heartbeat = HEARTBEAT, webSocketImpl, onConnection } = options;
  const patienceMs = 2 * heartbeat.withinMs;
  const next = tokens(token, patienceMs);
  /** The token of the last connection. */
  let shown: Shown | undefined;
  /** The text of it for the connection that is being made, or why there is none. */
  let given = (): string => '';
  return {
    // The token is there before the socket: the gateway does not wait long for one. graphql-ws takes no failure here.
    async url() {
      try {
        const own = await next();
        shown = own;
        given = () => own.text;
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
    webSocketImpl: webSocketImpl && heardOf(webSocketImpl as typeof WebSocket),
    generateID() {
      state.lastId += 1;
      return String(state.lastId);
    },
    on: {
      connected(opened) {
        heard();
        state.socket = opened as OpenSocket;
        shown?.accept();
        onConnection?.({ state: 'open' });
      },
      ping(received, payload) {
        if (!received) return expect();
        const { bookmarks = {} } = (payload ?? {}) as { bookmarks?: Record<string, string> };
        for (const [id, cursor] of Object.entries(bookmarks)) state.bookmarks.get(id)?.(cursor);
      },
      // What a socket still gives that was left says nothing of the one that is being connected.
      // Whatever else arrives first, a ping stays unanswered: graphql-ws sends no other one until its answer is here.
      message: () => state.socket !== undefined && lives(),
      pong: (received) => received && state.socket !== undefined && heard(),
      closed(event) {
        heard();
        state.socket = undefined;
        const { code } = event as { code?: number };
        if (code === REFUSED) shown?.refuse();
        // An idle socket is closed by itself.
        if (code !== 1000) onConnection?.({ state: 'lost', code, cause: lostBy(event) });
      },
    },
  };
}

const subscribing =
  (clientOf: () => Client, state: State): Source['subscribe'] =>
  (document, variables, sink, details) => {
    const client = clientOf();
    const { catching, ...payload } = requestOf(document, variables, details);
    if (JSON.stringify(payload).length > LONGEST) throw new Refused(TOO_LONG);
    // An idle socket that was closed on a dead network waits for an answer that never comes, and graphql-ws waits with it.
    if (state.socket !== undefined && state.socket.readyState !== OPEN) client.terminate();
    const listening: (() => unknown)[] = [
      client.on('connected', () => sink.opened(catching)),
      client.on('closed', (event) => end(event)),
    ];
    const stop = () => {
      for (const off of listening) off();
    };
    const end = (cause?: unknown) => {
      stop();
      sink.ended(lostBy(cause));
    };
    if (state.socket !== undefined) sink.opened(catching);
    const leave = client.subscribe(payload, {
      next(result) {
        // The type of the data is the document's.
        sink.next(result as Answer<never>);
      },
      error(cause) {
        if (!Array.isArray(cause)) return end(cause);
        sink.next({ errors: cause as FormattedExecutionResult['errors'] });
        end();
      },
      complete: () => end(),
    });
    // Its operation, which is sent later, has just been given this id.
    const id = String(state.lastId);
    state.bookmarks.set(id, (cursor) => sink.bookmark(cursor));
    listening.push(() => state.bookmarks.delete(id));
    return () => {
      stop();
      // graphql-ws counts a subscription as gone twice that is left while its `complete` is being read.
      ambient.setTimeout(leave);
    };
  };

/** A query or mutation is a subscription that is left after its first result. */
const querying =
  (subscribe: Source['subscribe'], answerMs: number): Source['query'] =>
  (document, variables, signal, details) =>
    within(
      answerMs,
      (late) =>
        new Promise((resolve, reject) => {
          throwIfLeft(signal);
          const leave = subscribe(
            document,
            variables,
            {
              opened() {},
              next: resolve,
              bookmark() {},
              ended(cause) {
                ambient.setTimeout(() => leave());
                reject(cause ?? new Error('The gateway gave no answer.'));
              },
            },
            details,
          );
          for (const given of [late, signal]) {
            given?.addEventListener('abort', () => {
              leave();
              reject(given.reason);
            });
          }
        }),
    );
