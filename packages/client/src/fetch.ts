import { ambient, type Timer } from './ambient.ts';
import { tellAll } from './listeners.ts';
import { type ConnectionEvent, ConnectionLost, type Token } from './lost.ts';
import { requestOf } from './request.ts';
import { type Answer, type Details, type Source, throwIfLeft, within } from './source.ts';
import { hear, type Shown, tokens } from './tokens.ts';

export { type ConnectionEvent, ConnectionLost, type Token } from './lost.ts';

export interface FetchOptions {
  /** Address of `/graphql`. A function is called before each request. */
  readonly url: string | (() => string);
  /** The access token. Asked for before each request. */
  readonly token: Token;
  /** A `fetch` for platforms whose own one cannot read an answer as it arrives: `expo/fetch` for React Native. */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * After this time of silence, in milliseconds, a stream counts as dead: the gateway sends something every 12 s. Default
   * 30,000.
   */
  readonly silentForMs?: number;
  /** How long a query or a mutation may take, in milliseconds; default 35,000, longer than the gateway takes for one. */
  readonly answerMs?: number;
  /** Called when a stream begins, and when one breaks. */
  readonly onConnection?: (event: ConnectionEvent) => void;
}

const JSON_TYPES = 'application/graphql-response+json, application/json';

/** Sends a request. @returns the head of the answer, whatever its status, and the token that was sent with the request. */
type Post = (
  accept: string,
  details: Details,
  body: object,
  signal: AbortSignal,
) => Promise<{ readonly response: Response; readonly shown: Shown }>;

/** Makes a source over HTTP, with server-sent events for subscriptions. It works where WebSockets are blocked. */
export function createFetch(options: FetchOptions): Source {
  const { silentForMs = 30_000, answerMs = 35_000, onConnection } = options;
  const post = posting(options, tokens(options.token, silentForMs));
  return {
    query: (document, variables, signal, details = {}) =>
      within(
        answerMs,
        async (left) => {
          const { catching: _, ...body } = requestOf(document, variables, details);
          const { response, shown } = await post(JSON_TYPES, details, body, left);
          return hear(shown, await read<never>(response));
        },
        signal,
      ),
    ...checkable(streaming(post, silentForMs, onConnection)),
  };
}

const posting =
  ({ url, fetch = globalThis.fetch }: FetchOptions, token: ReturnType<typeof tokens>): Post =>
  async (accept, { headers }, body, signal) => {
    const shown = await token();
    // The token may be that of another person by now, and a `fetch` of the app's own may not look at the signal.
    throwIfLeft(signal);
    const init = {
      method: 'POST',
      headers: {
        ...headers,
        accept,
        'content-type': 'application/json',
        authorization: `Bearer ${shown.text}`,
      },
      body: JSON.stringify(body),
      signal,
    };
    try {
      return { response: await fetch(typeof url === 'string' ? url : url(), init), shown };
    } catch (cause) {
      throw signal.aborted ? (signal.reason ?? cause) : unreachable(cause);
    }
  };

/** Subscribes by server-sent events, and gives up a stream that has been silent for too long. */
const streaming =
  (post: Post, silentForMs: number, onConnection: FetchOptions['onConnection']): Source['subscribe'] =>
  (document, variables, sink, details = {}) => {
    const left = new AbortController();
    let quiet: Timer | undefined;
    let isLeft = false;
    const alive = () => {
      ambient.clearTimeout(quiet);
      quiet = ambient.setTimeout(() => left.abort(new Error('The stream has gone silent.')), silentForMs);
    };
    const stream = async () => {
      alive();
      const { catching, ...body } = requestOf(document, variables, details);
      const { response, shown } = await post('text/event-stream', details, body, left.signal);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
        sink.next(hear(shown, await read<never>(response)));
        return;
      }
      tellAll([() => onConnection?.({ state: 'open' })]);
      sink.opened(catching);
      for await (const { event, data, id } of eventsOf(response, alive)) {
        if (event === 'complete') return;
        // The gateway writes results of the type that the document asks for.
        if (event === 'next') sink.next(hear(shown, JSON.parse(data) as Answer<never>));
        else if (id !== '' && data === '') sink.bookmark(id);
      }
      throw new ConnectionLost('The stream was cut off.');
    };
    const end = (cause?: unknown) => {
      ambient.clearTimeout(quiet);
      if (cause !== undefined && !isLeft) {
        const { code } = cause as { readonly code?: number };
        tellAll([() => onConnection?.({ state: 'lost', code, cause })]);
      }
      sink.ended(cause);
    };
    stream().then(end, (cause: unknown) => end(cause ?? new Error('The stream has failed.')));
    return () => {
      isLeft = true;
      left.abort();
    };
  };

/** Returns the error for an answer that cannot be read. A browser does not tell the reason. */
export const unreachable = (cause: unknown): ConnectionLost =>
  new ConnectionLost(
    `The gateway cannot be reached: the network is away, the gateway is, or it does not allow this page (CORS_ORIGINS). ${String(cause)}`,
    undefined,
    cause,
  );

/**
 * Makes `check` give up streams under way, so that they are asked for again. A stream cannot be asked if it is alive, and an
 * attempt may wait for a token that never comes.
 */
export function checkable(subscribe: Source['subscribe']): Pick<Source, 'subscribe' | 'check'> {
  const open = new Set<(cause: Error) => void>();
  return {
    subscribe(document, variables, sink, details) {
      let leave = (): void => {};
      const end = (cause?: unknown): void => {
        if (!open.delete(end)) return;
        leave();
        sink.ended(cause);
      };
      open.add(end);
      leave = subscribe(document, variables, { ...sink, ended: end }, details);
      return () => {
        open.delete(end);
        leave();
      };
    },
    check() {
      for (const end of [...open]) end(new Error('The network may be another one.'));
    },
  };
}

/** Returns how long an answer asks to wait, in the form in which an error of the gateway says it. */
export function waitOf({ headers }: Response): { readonly retryAfterMs?: number } {
  const seconds = Number(headers.get('retry-after'));
  return seconds > 0 ? { retryAfterMs: seconds * 1000 } : {};
}

/** Reads a result, with the wait that the answer asks for, if it does. Throws if the answer is none of GraphQL. */
async function read<Data>(response: Response): Promise<Answer<Data>> {
  const { status, headers } = response;
  const text = await response.text();
  try {
    const answer = JSON.parse(text) as Answer<Data>;
    // A proxy may answer in JSON too.
    const { data, errors } = answer;
    if (data == null && !errors?.[0]) throw text;
    if (!errors) return answer;
    const wait = waitOf(response);
    const waiting = errors.map((error) => ({ ...error, extensions: { ...wait, ...error.extensions } }));
    return { ...answer, errors: waiting };
  } catch (cause) {
    const type = headers.get('content-type') ?? 'nothing';
    const message = `Not the gateway has answered: status ${status} with ${type}.`;
    throw Object.assign(new ConnectionLost(message, status, cause), { extensions: waitOf(response) });
  }
}

async function* eventsOf(
  { body }: Response,
  alive: () => void,
): AsyncGenerator<{ readonly event: string; readonly data: string; readonly id: string }> {
  if (body === null) throw new Error('This fetch cannot read an answer as it arrives.');
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    text += decoder.decode(value, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      // For `$` and `.` a line ends at a U+2028 too, which JSON writes as it is.
      const field = (name: string) => new RegExp(`^${name}: ?([^\n]*)`, 'm').exec(block)?.[1] ?? '';
      yield { event: field('event'), data: field('data'), id: field('id') };
    }
  }
}
