import { createParser } from 'eventsource-parser';
import { createClient } from 'graphql-ws';
import { GRAPH_SOCKET_URL, GRAPH_URL } from '../addresses.ts';
import { PATIENCE_MS } from '../session.ts';
import { ownToken, withToken } from './execute.ts';
import { codeOf, isObject, type Operation, type Result } from './result.ts';
import { beginningAt } from './resume.ts';

export type Transport = 'SSE' | 'WS';

export interface Connection {
  readonly operation: Operation;
  readonly headers: Readonly<Record<string, string>>;
  /** The cursor of the last event that was received. */
  readonly lastCursor: string | undefined;
  readonly signal: AbortSignal;
  onOpen(): void;
  onResult(result: Result, cursor: string | undefined): void;
  /** A bookmark: everything up to this cursor has been sent (PROTOCOL.md, B1 to B3). */
  onLive(cursor: string): void;
}

/** The connection was lost, or could not be made, or was refused for now: worth another, after the milliseconds that were asked for. */
export class LostError extends Error {
  readonly waitMs: number;
  readonly refusal: Result | undefined;

  constructor(message: string, why: ErrorOptions & { waitMs?: number; refusal?: Result | undefined } = {}) {
    super(message, why);
    this.waitMs = why.waitMs ?? 0;
    this.refusal = why.refusal;
  }
}

/** How long a stream of events may be silent, in milliseconds (PROTOCOL.md, K3). */
const SILENT_MS = 30_000;
/** How often a socket is pinged, and how long the answer may take, in milliseconds (K2). */
const PING_EVERY_MS = 10_000;
const PONG_WITHIN_MS = 5_000;
/** How long a socket may take to be opened and acknowledged, in milliseconds. */
const ACKNOWLEDGED_WITHIN_MS = 30_000;

/** Of a stream that can begin later (PROTOCOL.md, E2), and of proxies whose gateway is away. */
const LATER = [429, 502, 503, 504];

/**
 * Carries one subscription over one connection.
 *
 * @returns once the gateway has ended the subscription, or refused it, which `onResult` has told then.
 * @throws LostError
 */
export const connect = (transport: Transport, connection: Connection): Promise<void> =>
  transport === 'WS' ? overSocket(connection) : overEvents(connection);

/**
 * Asks for a subscription over SSE, and leaves it as it begins.
 *
 * @returns whether it began, or was refused for good. A gateway that is away, drains or has no seat does neither.
 */
export async function answersOverEvents(
  asked: Pick<Connection, 'operation' | 'headers' | 'signal'>,
): Promise<boolean> {
  const begun = new AbortController();
  const signal = AbortSignal.any([asked.signal, begun.signal, AbortSignal.timeout(PATIENCE_MS)]);
  const ignore = () => undefined;
  try {
    await overEvents({
      ...asked,
      signal,
      lastCursor: undefined,
      onOpen: () => begun.abort(),
      onResult: ignore,
      onLive: ignore,
    });
    return true;
  } catch (error) {
    if (!(error instanceof LostError)) throw error;
    return begun.signal.aborted;
  }
}

/** Ends a connection that has gone silent: on a network that is gone nobody says that it is over. */
async function overEvents(connection: Connection): Promise<void> {
  const silent = new AbortController();
  let quiet: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => silent.abort(), SILENT_MS);
  };
  heard();
  const signal = AbortSignal.any([connection.signal, silent.signal]);
  await readEvents({ ...connection, signal }, heard).finally(() => clearTimeout(quiet));
}

/**
 * graphql-sse in its distinct connections form. The gateway gives each event its cursor as `id`.
 *
 * @param heard called as anything comes
 */
async function readEvents(
  { operation, headers, lastCursor, signal, onOpen, onResult, onLive }: Connection,
  heard: () => void,
): Promise<void> {
  const response = await fetch(GRAPH_URL, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(lastCursor === undefined ? {} : { 'last-event-id': lastCursor }),
      ...withToken(headers),
    },
    body: JSON.stringify(operation),
    signal,
  }).catch(lost);
  if (LATER.includes(response.status)) {
    const seconds = Number(response.headers.get('retry-after'));
    const answer: unknown = await response.json().catch(() => undefined);
    const code = isObject(answer) ? codeOf(answer) : undefined;
    throw new LostError('The gateway asks to come back later.', {
      waitMs: seconds > 0 ? seconds * 1_000 : 0,
      // A proxy's page says nothing to a person, nor does the end of a process whose place another takes.
      refusal: code === undefined || code === 'DRAINING' ? undefined : (answer as Result),
    });
  }
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || response.body === null) {
    onResult((await response.json().catch(lost)) as Result, undefined);
    return;
  }
  onOpen();
  let isComplete = false;
  // An id that came in a block without data is a bookmark (PROTOCOL.md, B2). The parser tells of an event's own id just before the event.
  let lone: string | undefined;
  const tellBookmark = () => {
    if (lone !== undefined) onLive(lone);
    lone = undefined;
  };
  const parser = createParser({
    onId(id) {
      tellBookmark();
      lone = id;
    },
    onEvent({ event, data, id }) {
      if (id !== undefined) lone = undefined;
      if (event === 'complete') isComplete = true;
      else if (event === 'next') onResult(JSON.parse(data) as Result, id);
    },
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  // A proxy may leave the connection open behind the end.
  while (!isComplete) {
    const { done, value } = await reader.read().catch(lost);
    if (done) throw new LostError('The connection was lost.');
    heard();
    parser.feed(value);
    tellBookmark();
  }
  void reader.cancel().catch(() => {});
}

function lost(error: unknown): never {
  throw new LostError('The connection was lost.', { cause: error });
}

/** graphql-transport-ws. A socket has no `Last-Event-ID`: the cursor goes into the argument `after`. */
function overSocket(connection: Connection): Promise<void> {
  const { operation, headers, lastCursor, signal, onOpen, onResult, onLive } = connection;
  const continued = (lastCursor === undefined ? undefined : beginningAt(operation, lastCursor)) ?? operation;
  const token = ownToken(withToken(headers));
  let overdue: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url: GRAPH_SOCKET_URL,
    retryAttempts: 0,
    keepAlive: PING_EVERY_MS,
    connectionParams: token === undefined ? {} : { authorization: token },
    on: {
      connected: () => {
        clearTimeout(late);
        onOpen();
      },
      // One operation is subscribed to over each socket.
      ping: (isReceived, payload) => {
        if (!isReceived) overdue = setTimeout(() => client.terminate(), PONG_WITHIN_MS);
        const bookmarks = payload?.['bookmarks'];
        if (!isReceived || !isObject(bookmarks)) return;
        for (const cursor of Object.values(bookmarks)) if (typeof cursor === 'string') onLive(cursor);
      },
      // One that is sent is no answer.
      pong: (isReceived) => isReceived && clearTimeout(overdue),
    },
  });
  const late = setTimeout(() => client.terminate(), ACKNOWLEDGED_WITHIN_MS);
  return new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => client.terminate(), { once: true });
    client.subscribe(
      {
        ...continued,
        variables: continued.variables ?? null,
        operationName: continued.operationName ?? null,
      },
      {
        next: (result) => onResult(result as Result, cursorOf(result as Result)),
        error: (error) => {
          if (Array.isArray(error)) {
            onResult({ errors: error }, undefined);
            resolve();
          } else if (error instanceof CloseEvent && (error.code === 4401 || error.code === 4403)) {
            onResult({ errors: [refusal(error.reason)] }, undefined);
            resolve();
          } else reject(new LostError('The connection was lost.', { cause: error }));
        },
        complete: resolve,
      },
    );
  }).finally(() => {
    clearTimeout(late);
    clearTimeout(overdue);
    void client.dispose();
  });
}

const refusal = (reason: string) => ({
  message: reason === '' ? 'The gateway does not know who is asking.' : reason,
  extensions: { code: 'UNAUTHENTICATED' },
});

function cursorOf({ data }: Result): string | undefined {
  const [payload] = Object.values(data ?? {});
  return isObject(payload) && typeof payload['cursor'] === 'string' ? payload['cursor'] : undefined;
}

/** The cursor that a connection resumes at; undefined where it begins with now: over a socket, the operation has to take one. */
export const resumesAt = (
  transport: Transport,
  operation: Operation,
  cursor: string | undefined,
): string | undefined =>
  cursor !== undefined && (transport === 'SSE' || beginningAt(operation, cursor)) ? cursor : undefined;

/** Whether a socket is asked for in the page's address: `?subscriptions=WS`. */
export const preferredTransport = (): Transport =>
  new URLSearchParams(location.search).get('subscriptions') === 'WS' ? 'WS' : 'SSE';

/** Whether all requests of this page go over one connection, as over HTTP/2 and HTTP/3, so that streams take none from them. */
export const sharesConnection = (): boolean =>
  performance
    .getEntriesByType('navigation')
    .some((entry) => /^h[23]/.test((entry as PerformanceNavigationTiming).nextHopProtocol));
