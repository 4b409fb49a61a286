import { type Client, type ClientOptions, createClient } from 'graphql-sse';
import { ambient, type Timer } from './ambient.ts';
import { checkable, createFetch, type FetchOptions, unreachable } from './fetch.ts';
import { ConnectionLost } from './lost.ts';
import { requestOf } from './request.ts';
import type { Answer, Source } from './source.ts';
import { hear, type Shown, tokens } from './tokens.ts';

/** A source over server-sent events with the client of graphql-sse, for apps that use it already. */
export interface EventStreams extends Source {
  readonly client: Client;
}

/** What a bookmark is turned into, which graphql-sse would not show. */
interface Bookmark {
  readonly pasarelaBookmark?: string;
}

/** @param options as for `createFetch`, by which queries and mutations go */
export function createEventStreams(options: FetchOptions): EventStreams {
  const { url, fetch = globalThis.fetch, silentForMs = 30_000, onConnection } = options;
  const token = tokens(options.token, silentForMs);
  /** The token of the last stream that was asked for: graphql-sse does not say which stream has which. */
  let shown: Shown | undefined;
  const clientOptions = (headers: Readonly<Record<string, string>> = {}): ClientOptions => ({
    url,
    async headers() {
      shown = await token();
      return { ...headers, authorization: `Bearer ${shown.text}` };
    },
    fetchFn: abortedWhenSilent(fetch, silentForMs),
    // The subscriber connects again by itself, with the cursor of the last event that it saw.
    retryAttempts: 0,
  });
  const client = createClient(clientOptions());
  return {
    ...createFetch(options),
    client,
    ...checkable((document, variables, sink, details) => {
      const { catching, ...request } = requestOf(document, variables, details);
      const mine = details?.headers === undefined ? client : createClient(clientOptions(details.headers));
      return mine.subscribe(
        request,
        {
          next(result) {
            const { pasarelaBookmark } = result as Bookmark;
            if (pasarelaBookmark !== undefined) sink.bookmark(pasarelaBookmark);
            // The type of the data is the document's.
            else sink.next(hear(shown as Shown, result as Answer<never>));
          },
          error(cause) {
            onConnection?.({ state: 'lost', code: (cause as { code?: number } | null)?.code, cause });
            sink.ended(cause);
          },
          complete: () => sink.ended(),
        },
        {
          connected() {
            onConnection?.({ state: 'open' });
            sink.opened(catching);
          },
        },
      );
    }),
  };
}

/**
 * graphql-sse does not show the comments by which the gateway says that it is there, nor blocks with only an id: the former are
 * heard here, the latter take the form of a result, so that they keep their place among the results.
 */
function abortedWhenSilent(fetch: typeof globalThis.fetch, silentForMs: number): typeof globalThis.fetch {
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
    // Only a stream of events says that it is over.
    let isOver = response.headers.get('content-type')?.startsWith('text/event-stream') !== true;
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        alive();
        const blocks = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          isOver ||= /^event: ?complete$/m.test(block);
          controller.enqueue(encoder.encode(`${visible(block)}\n\n`));
        }
      },
      flush(controller) {
        still();
        // graphql-sse waits for ever where a stream ends without a word while it hands a result on.
        if (!isOver) throw new ConnectionLost('The stream was cut off.');
        controller.enqueue(encoder.encode(text));
      },
    });
    return new Response(response.body.pipeThrough(heard), response);
  };
}

const visible = (block: string): string =>
  block.replace(
    /^id: ?(\S+)$/,
    (_, id: string) => `event: next\ndata: ${JSON.stringify({ pasarelaBookmark: id } satisfies Bookmark)}`,
  );
