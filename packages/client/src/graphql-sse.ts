import { type Client, type ClientOptions, createClient } from 'graphql-sse';
import { ambient, type Timer } from './ambient.ts';
import { checkable, createFetch, type FetchOptions, unreachable, waitOf } from './fetch.ts';
import { tellAll } from './listeners.ts';
import { ConnectionLost } from './lost.ts';
import { requestOf } from './request.ts';
import type { Answer, Sink, Source } from './source.ts';
import { hear, type Shown, tokens } from './tokens.ts';

/** A source over server-sent events, by the client of graphql-sse, for apps that use it already. */
export interface EventStreams extends Source {
  /** The client of graphql-sse, for the app's own use. Its `dispose` ends the streams of this source as well. */
  readonly client: Client;
}

/** The result into which a bookmark is turned, because graphql-sse would not show the bookmark. */
interface Bookmark {
  readonly pasarelaBookmark?: string;
}

/** @param options as for `createFetch`, which sends queries and mutations */
export function createEventStreams(options: FetchOptions): EventStreams {
  const { url, fetch = globalThis.fetch, silentForMs = 30_000, onConnection } = options;
  const token = tokens(options.token, silentForMs);
  const clientOptions = (
    headers: Readonly<Record<string, string>> = {},
    onToken?: (shown: Shown) => void,
  ): ClientOptions => ({
    url,
    async headers() {
      const shown = await token();
      onToken?.(shown);
      return { ...headers, authorization: `Bearer ${shown.text}` };
    },
    fetchFn: abortedWhenSilent(fetch, silentForMs, onToken ? visible : String),
    // The caller connects again, with the cursor of the last event that it saw.
    retryAttempts: 0,
  });
  const client = createClient(clientOptions());
  const streams = new Set<Client>();
  /** Why streams end once the client was disposed: graphql-sse says of them that they are complete. */
  let disposed: Error | undefined;
  return {
    ...createFetch(options),
    client: {
      ...client,
      dispose() {
        disposed = new ConnectionLost('The client was disposed.');
        for (const each of [client, ...streams]) each.dispose();
      },
    },
    ...checkable((document, variables, sink, details) => {
      const { catching, ...request } = requestOf(document, variables, details);
      let shown: Shown | undefined;
      // graphql-sse does not say which of a client's streams has which token, so each has a client of its own.
      const own = createClient(
        clientOptions(details?.headers, (given) => {
          shown = given;
        }),
      );
      streams.add(own);
      if (disposed) own.dispose();
      return own.subscribe(
        request,
        {
          next(result) {
            const { pasarelaBookmark } = result as Bookmark;
            if (pasarelaBookmark !== undefined) sink.bookmark(pasarelaBookmark);
            // The document determines the type of the data.
            else sink.next(hear(shown as Shown, result as Answer<never>));
          },
          error(cause) {
            streams.delete(own);
            lose(cause, sink, onConnection);
          },
          complete() {
            streams.delete(own);
            sink.ended(disposed);
          },
        },
        {
          connected() {
            tellAll([() => onConnection?.({ state: 'open' })]);
            sink.opened(catching);
          },
        },
      );
    }),
  };
}

/** Tells why a stream broke. An error of graphql-sse has the answer, with its status, and with how long it asks to wait. */
function lose(
  cause: unknown,
  sink: Pick<Sink<never>, 'ended'>,
  onConnection: FetchOptions['onConnection'],
): void {
  const { code, response } = Object(cause) as { code?: number; response?: Response };
  tellAll([() => onConnection?.({ state: 'lost', code: code ?? response?.status, cause })]);
  sink.ended(response ? Object.assign(Object(cause), { extensions: waitOf(response) }) : cause);
}

/**
 * Returns a `fetch` that hears the comments, which graphql-sse does not show, and by which the gateway says that it is there.
 *
 * @param shown returns the text of a block, as graphql-sse is to read it
 */
function abortedWhenSilent(
  fetch: typeof globalThis.fetch,
  silentForMs: number,
  shown: (block: string) => string,
): typeof globalThis.fetch {
  return async (input, init) => {
    const dead = new AbortController();
    let quiet: Timer | undefined;
    const still = () => ambient.clearTimeout(quiet);
    const alive = () => {
      still();
      quiet = ambient.setTimeout(() => dead.abort(new Error('The stream has gone silent.')), silentForMs);
    };
    init?.signal?.addEventListener('abort', () => {
      still();
      dead.abort();
    });
    alive();
    const response = await fetch(input, { ...init, signal: dead.signal }).catch((cause: unknown) => {
      still();
      throw dead.signal.aborted ? (dead.signal.reason ?? cause) : unreachable(cause);
    });
    if (response.body === null) return response;
    const decoder = new TextDecoder();
    const encoder = new TextEncoder();
    let text = '';
    // Only an event stream says that it is over.
    let isOver = response.headers.get('content-type')?.startsWith('text/event-stream') !== true;
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        alive();
        const blocks = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          isOver ||= /^event: ?complete\n/.test(block);
          controller.enqueue(encoder.encode(`${shown(block)}\n\n`));
        }
      },
      flush(controller) {
        still();
        // If a stream ends without `complete` while a result is handed on, graphql-sse would wait for ever.
        if (!isOver) throw new ConnectionLost('The stream was cut off.');
        controller.enqueue(encoder.encode(text));
      },
    });
    return new Response(response.body.pipeThrough(heard), response);
  };
}

/** Gives a block with only an id, which graphql-sse does not show, the form of a result, so that it keeps its place among the results. */
const visible = (block: string): string =>
  block.replace(
    /^id: ?(\S+)$/,
    (_, id: string) => `event: next\ndata: ${JSON.stringify({ pasarelaBookmark: id } satisfies Bookmark)}`,
  );
