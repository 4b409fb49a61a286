import { type Client, createClient } from 'graphql-sse';
import { checkable, createFetch, type FetchOptions } from './fetch.ts';
import { textOf } from './print.ts';
import { type Answer, type Source, within } from './source.ts';

/** A source over server-sent events with the client of graphql-sse, for apps that use it already. */
export interface EventStreams extends Source {
  readonly client: Client;
}

/** @param options as for `createFetch`, by which queries and mutations go */
export function createEventStreams(options: FetchOptions): EventStreams {
  const { url, token, fetch = globalThis.fetch, silentForMs = 30_000 } = options;
  const client = createClient({
    url,
    headers: async () => ({ authorization: `Bearer ${await within(silentForMs, token)}` }),
    fetchFn: abortedWhenSilent(fetch, silentForMs),
    // The subscriber connects again by itself, with the cursor of the last event that it saw.
    retryAttempts: 0,
  });
  return {
    ...createFetch(options),
    client,
    ...checkable((document, variables, sink) => {
      const request = { query: textOf(document), variables: variables as Record<string, unknown> };
      return client.subscribe(
        request,
        {
          // The type of the data is the document's.
          next: (result) => sink.next(result as Answer<never>),
          error: (cause) => sink.ended(cause),
          complete: () => sink.ended(),
        },
        { connected: () => sink.opened() },
      );
    }),
  };
}

/** graphql-sse does not show the comments by which the gateway says that it is there: they are heard here. */
function abortedWhenSilent(fetch: typeof globalThis.fetch, silentForMs: number): typeof globalThis.fetch {
  return async (input, init) => {
    const dead = new AbortController();
    let quiet: ReturnType<typeof setTimeout> | undefined;
    const still = () => clearTimeout(quiet);
    const alive = () => {
      still();
      quiet = setTimeout(() => dead.abort(new Error('The stream has gone silent.')), silentForMs);
    };
    init?.signal?.addEventListener('abort', () => {
      still();
      dead.abort();
    });
    alive();
    const response = await fetch(input, { ...init, signal: dead.signal }).catch((cause: unknown) => {
      still();
      throw cause;
    });
    if (response.body === null) return response;
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        alive();
        controller.enqueue(chunk);
      },
      flush: still,
    });
    return new Response(response.body.pipeThrough(heard), response);
  };
}
