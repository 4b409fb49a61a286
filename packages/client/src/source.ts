import { ambient, type Timer } from './ambient.ts';

/**
 * A document with the types of its result and variables, as graphql-codegen, gql.tada and `typed` make them: a text, a parsed
 * document, or a compiled one.
 */
export type TypedDocument<Data, Variables> = (string | object) & {
  __apiType?: (variables: Variables) => Data;
};

/** Gives a plain text, or the compiled form of relay-compiler, its types. */
export const typed = <Data, Variables = Record<string, never>>(
  document: string | object,
): TypedDocument<Data, Variables> =>
  // The types are in a member that is never set.
  document as TypedDocument<Data, Variables>;

/** An entry of a result's `errors`. */
export interface Problem {
  readonly message: string;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  /** Where in the data it is; absent where nothing was executed. */
  readonly path?: readonly (string | number)[] | undefined;
}

/** A result of the GraphQL specification. */
export interface Answer<Data> {
  readonly data?: Data | null | undefined;
  readonly errors?: readonly Problem[] | undefined;
}

/** Counts the events that a subscription to the log has missed, by its document and variables. */
export type Catching = (options: CatchingOptions) => {
  /** Call it with the cursor of each event that comes. */
  arrive(cursor: string): void;
  /** Ends the counting, because the connection is gone or has caught up. */
  close(): void;
};

export interface CatchingOptions {
  readonly source: Source;
  /** Returns the cursor of the last event received. */
  cursor(): string;
  /** Called with how many events are known to be still missing. */
  onMissing(missing: number): void;
  onCaughtUp(): void;
}

/** The callbacks of one attempt to subscribe. After `ended` none is called. */
export interface Sink<Data> {
  /**
   * The gateway has accepted the connection over which results will come.
   *
   * @param catching of a subscription to the log
   */
  opened(catching?: Catching): void;
  next(answer: Answer<Data>): void;
  /** All events of the subscription up to this place in the log have come. Later ones come live. */
  bookmark(cursor: string): void;
  /** @param cause the error of the connection; undefined if the gateway has completed the stream. */
  ended(cause?: unknown): void;
}

/** Extras that may be sent with a document. */
export interface Details {
  readonly operationName?: string | undefined;
  readonly extensions?: Record<string, unknown> | undefined;
  /** Headers of this request; not over a WebSocket, whose requests have none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A way to the graph. A binding makes one of a GraphQL library, and repeats nothing by itself. */
export interface Source {
  /** Sends a query or a mutation once. Rejects if no answer came. */
  query<Data, Variables>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
    details?: Details,
  ): Promise<Answer<Data>>;
  /**
   * Subscribes once. It sends the result of `requestOf` (`@pasarela/client/request`) for document and variables, which has a
   * cursor to resume from, whatever the document calls it.
   *
   * @returns a function that ends the subscription.
   */
  subscribe<Data, Variables>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    sink: Sink<Data>,
    details?: Details,
  ): () => void;
  /** To be called when the network may have changed. Gives up a connection that is being made, and checks an open one. */
  check?(): void;
}

/** A refusal of the gateway, or of this package. `code` is its `extensions.code`. */
export class Refused extends Error {
  override readonly name = 'Refused';
  declare readonly code: string;
  declare readonly extensions: Readonly<Record<string, unknown>>;
  declare readonly path: Problem['path'];

  constructor({ message, extensions = {}, path }: Problem) {
    super(message);
    this.path = path;
    this.code = String(extensions['code'] ?? 'UNKNOWN');
    this.extensions = extensions;
  }
}

/** Returns what this package itself refuses. */
export const refused = (message: string, code: unknown = 'BAD_USER_INPUT'): Refused =>
  new Refused({ message, extensions: { code } });

/** Codes that say that events are missing after a cursor. */
const GAPS: readonly string[] = ['EVENTS_GAP', 'CURSOR_INVALID'];

/** Codes that the same request gets again each time it is sent. */
const FINAL: readonly string[] = [
  ...GAPS,
  'BAD_USER_INPUT',
  'FORBIDDEN',
  'STORE_REMOVED',
  'TOO_COMPLEX',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
];

/** Tells a code that says that events are missing after a cursor. */
export const isGapCode = (code: string): code is 'EVENTS_GAP' | 'CURSOR_INVALID' => GAPS.includes(code);

/** How many of the places that gaps in a row give are tried before the end of the log. */
const PLACES = 3;

/**
 * Returns the place from which a stream goes on after a gap, if the gap gives any. Up to version 0.2 of the gateway the oldest
 * event may be gone again before the stream is back, and in a busy log each time: only the end of the log cannot be gone again.
 *
 * @param gaps how many have come in a row, with this one
 */
export const placeOf = ({ oldest, head }: Readonly<Record<string, unknown>>, gaps: number): unknown =>
  gaps > PLACES ? head : oldest;

/**
 * Close codes of a WebSocket that the same client gets again, because it has a defect (PROTOCOL.md, "What ends a stream").
 */
const DEFECTS: readonly unknown[] = [1007, 1009, 4400, 4401, 4406, 4409, 4429];

/**
 * Returns the refusal for the app if repeating the request is of no use; undefined if it may help. `TOO_COMPLEX` for one
 * stream too many says that it is `retryable`.
 */
export function refusalOf(cause: unknown): Refused | undefined {
  if (cause instanceof Refused) {
    return FINAL.includes(cause.code) && cause.extensions['retryable'] !== true ? cause : undefined;
  }
  const { code, message } = Object(cause) as { readonly code?: unknown; readonly message?: unknown };
  if (!DEFECTS.includes(code)) return undefined;
  return refused(`${message} This app has a defect, or is too old.`, code);
}

/** Returns how long the gateway, or a proxy before it, asks to wait, in milliseconds. */
export const retryAfterOf = (cause: unknown): number =>
  Number((Object(cause) as Partial<Refused>).extensions?.['retryAfterMs']) || 0;

/** Returns the one field of an operation's data, besides `__typename`, with its name; neither where there is none. */
export const fieldIn = (data: object): readonly [name?: string, value?: unknown] =>
  Object.entries(data).find(([name]) => name !== '__typename') ?? [];

/** How long an answer may take if nothing else is set, in milliseconds. */
const ANSWER_MS = 10_000;

/**
 * Returns the data of an operation of one root field. Throws {@link Refused} if it has none, or if that field failed, and
 * throws if no answer comes within `answerMs`, or if the caller leaves.
 */
export async function ask<Data, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
  answerMs = ANSWER_MS,
  caller?: AbortSignal,
): Promise<Data> {
  const asking = (signal: AbortSignal) => source.query(document, variables, signal);
  const { data, errors } = await within(answerMs, asking, caller);
  // A field that failed is null beside its error. Where a document has others, their errors say nothing of it.
  const [name, value] = fieldIn(data ?? {});
  if (data != null && !(errors?.length && value === null)) return data;
  throw new Refused(errors?.find(({ path }) => path?.[0] === name) ?? errors?.[0] ?? { message: 'No data.' });
}

/** Throws if nobody waits for an answer any more, so that nothing is sent. */
export function throwIfLeft(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason ?? new Error('Aborted.');
}

/**
 * Resolves with the result of `work`. Rejects, and aborts the signal, if that takes longer than `ms` milliseconds, or if the caller leaves.
 * It listens to the caller's signal only until then, because a page may keep one for as long as it is open.
 *
 * @param ms undefined for work that may take any time
 */
export async function within<Value>(
  ms: number | undefined,
  work: (signal: AbortSignal) => Value | Promise<Value>,
  caller?: AbortSignal,
): Promise<Value> {
  throwIfLeft(caller);
  const over = new AbortController();
  let timer: Timer | undefined;
  let leave = (): void => {};
  try {
    return await Promise.race([
      new Promise<never>((_, reject) => {
        // Some of React Native's signals have no reason.
        const end = (cause: unknown = new Error('No answer came.')): void => {
          reject(cause);
          over.abort();
        };
        leave = () => end(caller?.reason);
        caller?.addEventListener('abort', leave);
        if (ms !== undefined) timer = ambient.setTimeout(() => end(), ms);
      }),
      work(over.signal),
    ]);
  } finally {
    ambient.clearTimeout(timer);
    caller?.removeEventListener('abort', leave);
  }
}
