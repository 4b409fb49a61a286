import { ambient, type Timer } from './ambient.ts';

/**
 * A document that carries the types of its result and variables, as graphql-codegen, gql.tada and `typed` make them: a
 * text, a parsed document, or what a compiler made of it.
 */
export type TypedDocument<Data, Variables> = (string | object) & {
  __apiType?: (variables: Variables) => Data;
};

/** Gives a plain text, or what relay-compiler made of one, the types that its author knows of it. */
export const typed = <Data, Variables = Record<string, never>>(
  document: string | object,
): TypedDocument<Data, Variables> =>
  // The types are carried by a member that is never set.
  document as TypedDocument<Data, Variables>;

/** An entry of a result's `errors`. */
export interface Problem {
  readonly message: string;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** A result as the GraphQL specification has it. */
export interface Answer<Data> {
  readonly data?: Data | null | undefined;
  readonly errors?: readonly Problem[] | undefined;
}

/** Counts what a subscription to the log has missed, by what its document and variables ask for. */
export type Catching = (options: CatchingOptions) => {
  /** An event has come. */
  arrive(cursor: string): void;
  /** The connection is gone, or has caught up: it counts no more. */
  close(): void;
};

export interface CatchingOptions {
  readonly source: Source;
  /** Of the last event received. */
  cursor(): string;
  /** Called with how many events are known to be still on their way. */
  onMissing(missing: number): void;
  onCaughtUp(): void;
}

/** What one attempt to subscribe is told. After `ended` it is told nothing more. */
export interface Sink<Data> {
  /**
   * The gateway has taken the connection over which results will come.
   *
   * @param catching of a subscription to the log
   */
  opened(catching?: Catching): void;
  next(answer: Answer<Data>): void;
  /** All that the subscription asks for has come, up to this place in the log; what follows comes live. */
  bookmark(cursor: string): void;
  /** @param cause what broke the connection; undefined where the gateway has completed the stream. */
  ended(cause?: unknown): void;
}

/** What may be sent along with a document. */
export interface Details {
  readonly operationName?: string | undefined;
  readonly extensions?: Record<string, unknown> | undefined;
  /** Where each request has its own: not over a WebSocket. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A way to the graph. A binding translates a GraphQL library to this, and repeats nothing by itself. */
export interface Source {
  /** Sends a query or a mutation once. Rejects when no answer came. */
  query<Data, Variables>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
    details?: Details,
  ): Promise<Answer<Data>>;
  /**
   * Subscribes once. What is sent is what `requestOf` (`@pasarela/client/request`) makes of document and variables: with a
   * cursor to come back to, however the document calls it.
   *
   * @returns leaves.
   */
  subscribe<Data, Variables>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    sink: Sink<Data>,
    details?: Details,
  ): () => void;
  /** The network may be another one: gives up a connection that is being made, and makes sure that an open one lives. */
  check?(): void;
}

/** What the gateway refused. `code` is its `extensions.code`. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly code: string;
  readonly extensions: Readonly<Record<string, unknown>>;

  constructor({ message, extensions = {} }: Problem) {
    super(message);
    this.code = String(extensions['code'] ?? 'UNKNOWN');
    this.extensions = extensions;
  }
}

/** Codes that the same request gets again, however often it is sent. */
const FINAL: readonly string[] = [
  'EVENTS_GAP',
  'CURSOR_INVALID',
  'BAD_USER_INPUT',
  'FORBIDDEN',
  'NOT_FOUND',
  'TOO_COMPLEX',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
];

/** Codes that say that events are missing after a cursor. */
export const isGapCode = (code: string): code is 'EVENTS_GAP' | 'CURSOR_INVALID' =>
  code === 'EVENTS_GAP' || code === 'CURSOR_INVALID';

/** Close codes of a WebSocket that the same client gets again: it has a defect (PROTOCOL.md, "What ends a stream"). */
const DEFECTS: readonly unknown[] = [1009, 4400, 4401, 4406, 4409, 4429];

/**
 * What the app is told where coming back the same way is of no use; undefined where it may help. One stream too many is
 * `TOO_COMPLEX` as well, and says that it is `retryable`.
 */
export function refusalOf(cause: unknown): Refused | undefined {
  if (cause instanceof Refused) {
    return FINAL.includes(cause.code) && cause.extensions['retryable'] !== true ? cause : undefined;
  }
  const { code, message } = Object(cause) as { readonly code?: unknown; readonly message?: unknown };
  if (!DEFECTS.includes(code)) return undefined;
  return new Refused({
    message: `${message} This app has a defect, or does not fit the gateway.`,
    extensions: { code },
  });
}

/** How long the gateway asks to wait, in milliseconds. */
export const retryAfterOf = (cause: unknown): number =>
  (cause instanceof Refused && Number(cause.extensions['retryAfterMs'])) || 0;

/** How long an answer may take, in milliseconds, where nobody says how long. */
const ANSWER_MS = 10_000;

/** An operation's data. Throws {@link Refused} where it has none, or where a root field failed, and where no answer comes within `answerMs`. */
export async function ask<Data, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
  answerMs = ANSWER_MS,
): Promise<Data> {
  const { data, errors } = await within(answerMs, (signal) => source.query(document, variables, signal));
  // A root field that failed is null beside its error, and leaves the data of the others.
  const failed = errors?.length && Object.values(data ?? {}).includes(null);
  if (data != null && !failed) return data;
  throw new Refused(errors?.[0] ?? { message: 'No data.' });
}

/** Throws where nobody waits for an answer any more: then nothing is sent. */
export function throwIfLeft(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason ?? new Error('Aborted.');
}

/** What `work` resolves with. Rejects, and aborts the signal, where that takes longer than `ms` milliseconds. */
export async function within<Value>(
  ms: number,
  work: (signal: AbortSignal) => Value | Promise<Value>,
): Promise<Value> {
  const late = new AbortController();
  let timer: Timer | undefined;
  try {
    return await Promise.race([
      work(late.signal),
      new Promise<never>((_, reject) => {
        timer = ambient.setTimeout(() => {
          reject(new Error('No answer came.'));
          late.abort();
        }, ms);
      }),
    ]);
  } finally {
    ambient.clearTimeout(timer);
  }
}
