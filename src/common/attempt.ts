/** An answer of the REST service in the form that is stored and replayed. */
export interface UpstreamAnswer {
  readonly status: number;
  /** The parsed JSON; undefined if the text is not JSON. */
  readonly body: unknown;
  readonly text: string;
}

/** An answer that came completely. */
export interface Answered extends UpstreamAnswer {
  readonly kind: 'answered';
  /** As it came; empty where it was long (upstream/call/json-reader.ts), although there is a `body`. */
  readonly text: string;
  /** From the header `Retry-After`, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The length of the body as it came, in bytes; absent where it did not come over the wire. */
  readonly bytes?: number;
  /** The media type of the header `Content-Type`, such as `text/html`; undefined where there is none that can be read. */
  readonly contentType?: string | undefined;
  /** The gateway answered instead of the service (upstream/session/scoped-changes.ts). It sent nothing. */
  readonly synthesized?: true;
}

/**
 * Why no complete answer came. `dispatched` is false only if it is certain that no byte of the request has left: there was no
 * connection, the breaker was open, or the deadline was over before. Where it is true, the request may have taken effect: a reset, a
 * time-out and an answer that breaks off look the same whether it has or not.
 */
interface NoAnswer extends Error {
  readonly dispatched: boolean;
}

/** A request without an answer, or one that was never sent. */
export interface Failed<E extends NoAnswer = NoAnswer> {
  readonly kind: 'failed';
  readonly error: E;
}

/** The outcome of one request: an answer with any status, or a failure. */
export type Attempt<E extends NoAnswer = NoAnswer> = Answered | Failed<E>;

/**
 * What a status means for a request that changes something.
 *
 * - `accepted`: done, if the body says so too.
 * - `turned-away`: refused before the service took the request up, for reasons outside the input.
 * - `refused`: refused by the service.
 * - `unclear`: it may or may not have been done.
 */
type Verdict = 'accepted' | 'turned-away' | 'refused' | 'unclear';

const TURNED_AWAY = new Set([401, 403, 429]);
const GAVE_UP = new Set([408, 425]);

/** True for the status of a server or proxy that gave up a request which it may have passed on: it says nothing of what was asked. */
export const gaveUp = (status: number): boolean => GAVE_UP.has(status);

/** The one table of statuses, for payments and for all other changes. */
export function verdictOf(status: number): Verdict {
  if (status >= 200 && status < 300) return 'accepted';
  if (status < 400 || status >= 500 || gaveUp(status)) return 'unclear';
  return TURNED_AWAY.has(status) ? 'turned-away' : 'refused';
}

/** A request that was given up without an answer. */
export class GivenUpError extends Error implements NoAnswer {
  override readonly name = 'GivenUpError';
  readonly dispatched: boolean;

  constructor(message: string, { dispatched, cause }: { dispatched: boolean; cause?: unknown }) {
    super(message, { cause });
    this.dispatched = dispatched;
  }
}
