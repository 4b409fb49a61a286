import { type Client, type ClientOptions, createClient, type FormattedExecutionResult } from 'graphql-ws';
import { ambient, type Timer } from './ambient.ts';
import { tellAll } from './listeners.ts';
import type { ConnectionEvent, Token } from './lost.ts';
import { requestOf } from './request.ts';
import { type Answer, type Refused, refused, type Source, within } from './source.ts';
import { type Shown, tokens } from './tokens.ts';
import { closingOf, heardOf, lostBy, OPEN, type OpenSocket } from './web-socket.ts';

export { type ConnectionEvent, ConnectionLost, type Token } from './lost.ts';

export interface SocketOptions {
  /** Address of `/graphql`. A function is called before each connection. */
  readonly url: string | (() => string);
  /** The access token. Asked for before each connection, so that it is never too old. */
  readonly token: Token;
  /** How often the gateway is pinged, and how long its answer may take, in milliseconds; default 10,000 and 5,000. */
  readonly heartbeat?: { readonly everyMs: number; readonly withinMs: number };
  /** A `WebSocket` for platforms without one: Node 20. */
  readonly webSocketImpl?: ClientOptions['webSocketImpl'];
  /** How long a query or a mutation may take, in milliseconds; default 35,000, longer than the gateway takes for one. */
  readonly answerMs?: number;
  /** Called when a connection opens, and when one breaks. */
  readonly onConnection?: (event: ConnectionEvent) => void;
}

/** One WebSocket for subscriptions, queries and mutations. It is open while something is under way. */
export interface Socket extends Source {
  /** The client of graphql-ws, made when it is first needed. Throws {@link Refused} if there is no `WebSocket`. */
  readonly client: Client;
  close(): void;
}

/** How long an idle socket is kept for a next operation, in milliseconds. */
const IDLE_MS = 1_000;
/** How long an answer may take if the network has just changed, in milliseconds. */
const CHECK_MS = 1_000;

/** The close code for a token that the gateway does not accept. */
const REFUSED = 4403;

const NO_WEB_SOCKET = 'No WebSocket: pass `webSocketImpl`, or use createFetch.';

/**
 * The longest message that the gateway takes, in bytes (PROTOCOL.md). A longer one would end the connection of every
 * operation.
 */
const LONGEST = 65_536;
/** The bytes of a message besides its payload: 38, and its id. */
const AROUND = 64;
const TOO_LONG = 'Over 64 KiB: use createFetch.';

/** What the parts of a socket share. */
interface State {
  /** The open connection. */
  socket: OpenSocket | undefined;
  /** The closing of a connection that was left before its end: its code says why the gateway has closed it. */
  closing?: ReturnType<typeof closingOf> | undefined;
  /** Why there was no token or no address for the last connection, or that the app has closed it before it was there. */
  cause?: unknown;
  /** The id of the operation that was last begun. */
  id: number;
  /** By operation id: called with a subscription's place in the log. */
  readonly bookmarks: Map<string, (cursor: string) => void>;
}

/**
 * Ends a connection of which nothing comes in time. A peer that is gone without a word does not answer.
 *
 * @param withinMs absent where another message has come: what is expected gets its whole time again
 */
type Expect = (withinMs?: number) => void;

/**
 * Makes a source over `graphql-transport-ws`, by the client of graphql-ws. Making one needs no `WebSocket`, so a server may
 * import the app's module.
 */
export function createSocket(options: SocketOptions): Socket {
  const state: State = { socket: undefined, id: 0, bookmarks: new Map() };
  let overdue: Timer | undefined;
  /** How long the connection may be silent. */
  let mayTakeMs: number;
  const rest = () => ambient.clearTimeout(overdue);
  const expect: Expect = (withinMs = mayTakeMs) => {
    rest();
    mayTakeMs = withinMs;
    overdue = ambient.setTimeout(() => made?.terminate(), withinMs);
  };
  let made: Client | undefined;
  const subscribe = subscribing(() => socket.client, state);
  const socket: Socket = {
    get client() {
      const webSocketImpl = options.webSocketImpl ?? globalThis.WebSocket;
      if (!webSocketImpl) throw refused(NO_WEB_SOCKET);
      made ??= createClient(
        clientOptions(options, heardOf(webSocketImpl as typeof WebSocket), state, expect, rest),
      );
      return made;
    },
    subscribe,
    query: querying(subscribe, options.answerMs ?? 35_000),
    check() {
      if (!state.socket) return made?.terminate();
      expect(CHECK_MS);
      state.socket.send('{"type":"ping"}');
    },
    close() {
      if (!state.socket) {
        // Where it is connecting, `dispose` waits for that. A person may sign out while no gateway is there: what opened later would
        // show the token of who has left.
        state.cause = {};
        return made?.terminate();
      }
      made?.dispose();
    },
  };
  return socket;
}

/** @param rest nothing is expected any more: the connection has ended */
function clientOptions(
  options: SocketOptions,
  webSocketImpl: typeof WebSocket,
  state: State,
  expect: Expect,
  rest: () => void,
): ClientOptions {
  const { url, token, heartbeat = { everyMs: 10_000, withinMs: 5_000 }, onConnection } = options;
  const patienceMs = 2 * heartbeat.withinMs;
  // graphql-ws sends no ping over a socket that is closing, which it may be for ever on a network that is gone.
  const expectNext = () => expect(heartbeat.everyMs + heartbeat.withinMs);
  const next = tokens(token, patienceMs);
  /** The token of the last connection: without one there is none. */
  let shown: Shown;
  return {
    // The token comes before the socket, because the gateway does not wait long for it. graphql-ws accepts no failure here.
    async url() {
      state.cause = undefined;
      await state.closing;
      state.closing = undefined;
      try {
        shown = await next();
        if (state.cause) return '';
        // Over a slow network connecting takes longer than an answer.
        expect(patienceMs);
        return (typeof url === 'string' ? url : url()).replace(/^http/, 'ws');
      } catch (cause) {
        state.cause = cause;
        // No socket is made for it.
        return '';
      }
    },
    connectionParams: () => ({ authorization: `Bearer ${shown.text}` }),
    // The caller connects again, with the cursor of the last event that it saw.
    retryAttempts: 0,
    lazyCloseTimeout: IDLE_MS,
    keepAlive: heartbeat.everyMs,
    webSocketImpl,
    generateID() {
      return String(++state.id);
    },
    on: {
      connected(opened) {
        expectNext();
        state.socket = opened as OpenSocket;
        shown.accept();
        tellAll([() => onConnection?.({ state: 'open' })]);
      },
      ping(received, payload) {
        if (!received) return expect(heartbeat.withinMs);
        const { bookmarks = {} } = Object(payload) as { bookmarks?: Record<string, string> };
        for (const [id, cursor] of Object.entries(bookmarks)) state.bookmarks.get(id)?.(cursor);
      },
      // What a socket still gives that was left says nothing of the one that is being connected.
      // Whatever else arrives first, a ping stays unanswered: graphql-ws sends no other one until its answer is here.
      message: () => state.socket && expect(),
      pong: (received) => received && state.socket && expectNext(),
      async closed(event) {
        rest();
        state.socket = undefined;
        event = (await state.closing) ?? event;
        const { code } = event as { code?: number };
        if (code === REFUSED) shown.refuse();
        const cause = lostBy(state.cause ?? event);
        // 1000 is the code of an idle socket that closed as intended.
        if (code !== 1000) tellAll([() => onConnection?.({ state: 'lost', code, cause })]);
      },
    },
  };
}

/** Counts the bytes of a text in UTF-8. React Native may lack a `TextEncoder`. */
const bytesOf = (text: string): number => encodeURI(text).replace(/%../g, '.').length;

const subscribing =
  (clientOf: () => Client, state: State): Source['subscribe'] =>
  (document, variables, sink, details) => {
    const client = clientOf();
    const { catching, ...payload } = requestOf(document, variables, details);
    if (bytesOf(JSON.stringify(payload)) > LONGEST - AROUND) throw refused(TOO_LONG, 'TOO_COMPLEX');
    // An idle socket that was closed on a dead network would wait for an answer that never comes, and graphql-ws with it.
    if (state.socket && state.socket.readyState !== OPEN) {
      state.closing = closingOf(state.socket);
      client.terminate();
    }
    const listening: (() => unknown)[] = [];
    const stop = () => {
      for (const off of listening.splice(0)) off();
    };
    // graphql-ws tells of a connection that is closed, and then of the subscription that ends with it.
    const end = async (cause?: unknown) => {
      if (!listening[0]) return;
      stop();
      sink.ended(lostBy(state.cause ?? (await state.closing) ?? cause));
    };
    listening.push(
      client.on('connected', () => sink.opened(catching)),
      client.on('closed', end),
    );
    if (state.socket) sink.opened(catching);
    const leave = client.subscribe(payload, {
      next(result) {
        // The document determines the type of the data.
        sink.next(result as Answer<never>);
      },
      error(cause) {
        if (!Array.isArray(cause)) return void end(cause);
        sink.next({ errors: cause as FormattedExecutionResult['errors'] });
        end();
      },
      // Once graphql-ws has been closed, it says the same of a connection that breaks, or cannot be made.
      complete: () => end(state.socket?.readyState === OPEN ? undefined : {}),
    });
    // Its operation has just got this id, and is sent later.
    const id = String(state.id);
    state.bookmarks.set(id, (cursor) => sink.bookmark(cursor));
    listening.push(() => state.bookmarks.delete(id));
    return () => {
      stop();
      // Over an open socket graphql-ws counts a subscription twice as ended if it is ended while its `complete` is being read. While it
      // connects, a timer may be later than the connection: what was left would be sent.
      if (state.socket) ambient.setTimeout(leave);
      else leave();
    };
  };

/** A query or a mutation is a subscription that is ended after its first result. */
const querying =
  (subscribe: Source['subscribe'], answerMs: number): Source['query'] =>
  (document, variables, signal, details) =>
    within(
      answerMs,
      (left) =>
        new Promise((resolve, reject) => {
          const leave = subscribe(
            document,
            variables,
            {
              opened() {},
              next: resolve,
              bookmark() {},
              ended(cause) {
                ambient.setTimeout(() => leave());
                reject(cause ?? new Error('No answer came.'));
              },
            },
            details,
          );
          left.addEventListener('abort', leave);
        }),
      signal,
    );
