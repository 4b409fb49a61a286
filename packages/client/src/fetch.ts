import { textOf } from './print.ts';
import { type Answer, type Source, within } from './source.ts';

export interface FetchOptions {
  /** Address of `/graphql`; asked before each request where it is a function. */
  readonly url: string | (() => string);
  /** The access token to show. Asked before each request. */
  readonly token: () => string | Promise<string>;
  /** Where the platform's own `fetch` cannot read an answer as it arrives: `expo/fetch` for React Native. */
  readonly fetch?: typeof globalThis.fetch;
  /** A stream that is silent for so long is dead: the gateway says something every 12 s. Default 30,000. */
  readonly silentForMs?: number;
}

const JSON_TYPES = 'application/graphql-response+json, application/json';

/** A source over HTTP, with server-sent events for subscriptions: it gets through where WebSockets do not. */
export function createFetch({
  url,
  token,
  fetch = globalThis.fetch,
  silentForMs = 30_000,
}: FetchOptions): Source {
  const post = async (
    accept: string,
    document: string | object,
    variables: unknown,
    signal: AbortSignal | undefined,
  ) =>
    fetch(typeof url === 'string' ? url : url(), {
      method: 'POST',
      headers: {
        accept,
        'content-type': 'application/json',
        authorization: `Bearer ${await within(silentForMs, token)}`,
      },
      body: JSON.stringify({ query: textOf(document), variables }),
      signal: signal ?? null,
    });

  return {
    query: async (document, variables, signal) => read(await post(JSON_TYPES, document, variables, signal)),
    ...checkable((document, variables, sink) => {
      const left = new AbortController();
      let quiet: ReturnType<typeof setTimeout> | undefined;
      const alive = () => {
        clearTimeout(quiet);
        quiet = setTimeout(() => left.abort(new Error('The stream has gone silent.')), silentForMs);
      };
      const stream = async () => {
        alive();
        const response = await post('text/event-stream', document, variables, left.signal);
        if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
          sink.next(await read(response));
          return;
        }
        sink.opened();
        for await (const { event, data } of eventsOf(response, alive)) {
          if (event === 'complete') return;
          // The gateway writes results, of the type that the document asks for.
          if (event === 'next') sink.next(JSON.parse(data) as Answer<never>);
        }
        throw new Error('The stream was cut off.');
      };
      stream()
        .then(
          () => sink.ended(),
          (cause: unknown) => sink.ended(cause ?? new Error('The stream has failed.')),
        )
        .finally(() => clearTimeout(quiet));
      return () => left.abort();
    }),
  };
}

/**
 * Lets `check` give up what is under way, so that it is asked for again: a stream cannot be asked whether it lives, and a
 * token may be waited for that never comes.
 */
export function checkable(subscribe: Source['subscribe']): Pick<Source, 'subscribe' | 'check'> {
  const open = new Set<(cause: Error) => void>();
  return {
    subscribe(document, variables, sink) {
      let leave = (): void => {};
      const end = (cause?: unknown): void => {
        if (!open.delete(end)) return;
        leave();
        sink.ended(cause);
      };
      open.add(end);
      leave = subscribe(document, variables, { ...sink, ended: end });
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

/** A result; with the wait that the answer asks for, where it does. */
async function read<Data>(response: Response): Promise<Answer<Data>> {
  const answer = (await response.json()) as Answer<Data>;
  const seconds = Number(response.headers.get('retry-after'));
  if (!(seconds > 0)) return answer;
  const errors = answer.errors?.map(({ message, extensions }) => ({
    message,
    extensions: { retryAfterMs: seconds * 1000, ...extensions },
  }));
  return { ...answer, errors };
}

async function* eventsOf(
  { body }: Response,
  alive: () => void,
): AsyncGenerator<{ readonly event: string; readonly data: string }> {
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
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? '';
      yield { event: field('event'), data: field('data') };
    }
  }
}
