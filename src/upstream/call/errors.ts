import { type Answered, gaveUp } from '../../common/attempt.ts';
import { isDocumentedError } from './documented-error.ts';
import { isObject } from './object.ts';

/**
 * Why the REST service could not be asked, or why its answer cannot be used. Each code but `REFUSED` is one that callers are told
 * ({@link UpstreamError.publicCode}).
 */
export type UpstreamErrorCode =
  | 'UPSTREAM_TIMEOUT'
  | 'UPSTREAM_UNAVAILABLE'
  | 'UPSTREAM_INVALID'
  | 'UPSTREAM_RATE_LIMITED'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'REFUSED';

/**
 * A refusal of the upstream, read from the error body of docs/upstream-api.md, "Errors". Every field but `httpStatus` and `details` is null
 * if the body does not have it: all of them, with no details, if a page or a text came instead.
 */
export interface Refusal {
  readonly httpStatus: number;
  readonly message: string | null;
  readonly reason: string | null;
  readonly errorCode: string | null;
  readonly detail: string | null;
  readonly module: string | null;
  readonly methodName: string | null;
  /** `code` of the body: an integer. */
  readonly code: number | null;
  /** Each object of the body's `details`, as it came. */
  readonly details: readonly Readonly<Record<string, unknown>>[];
}

/**
 * The one error of `src/upstream`. `dispatched` is false only if it is certain that no byte of the request has left; the
 * rules of payments rest on it. `refusal` is set if the upstream answered with a 4xx other than 408 and 425.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: UpstreamErrorCode;
  readonly dispatched: boolean;
  readonly refusal: Refusal | undefined;
  readonly retryAfterMs: number | undefined;
  /** Of an answer that says that the service has failed: 408, 425, or 500 and above. Undefined for anything else. */
  readonly status: number | undefined;
  /** True if it is a refusal in the service's documented form: somebody on the way cannot have written it. */
  readonly isServices: boolean;

  constructor(
    code: UpstreamErrorCode,
    message: string,
    options: {
      cause?: unknown;
      dispatched?: boolean;
      refusal?: Refusal;
      retryAfterMs?: number;
      status?: number;
      isServices?: boolean;
    } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.dispatched = options.dispatched ?? true;
    this.refusal = options.refusal;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
    this.isServices = options.isServices ?? false;
  }

  /**
   * The code that callers are told (docs/graph.md, "Error codes"). A refused GET is the caller's input if the upstream says so, and an
   * answer that nobody can use if not.
   */
  get publicCode(): string {
    if (this.code !== 'REFUSED') return this.code;
    const status = this.refusal?.httpStatus;
    return status === 400 || status === 422 ? 'BAD_USER_INPUT' : 'UPSTREAM_INVALID';
  }
}

/** Returns the error of a call that nobody waits for any more. */
export const left = (): UpstreamError =>
  new UpstreamError('UPSTREAM_UNAVAILABLE', 'The operation ended before the answer had come.', {
    dispatched: false,
  });

/** The gateway did not make the call, and never tried to reach the service for it. */
export class UnsentError extends UpstreamError {
  constructor(code: UpstreamErrorCode, message: string, retryAfterMs?: number) {
    super(code, message, { dispatched: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  }
}

/**
 * The call was not made, because the service keeps failing (breaker.ts). Another attempt within the operation would fail as
 * well.
 */
export class SuspendedError extends UnsentError {
  /** @param waitMs how long until such a call may be made, in milliseconds. */
  constructor(waitMs: number) {
    super(
      'UPSTREAM_UNAVAILABLE',
      'The service has been failing; calls to it are suspended for a few seconds.',
      Math.max(1, Math.ceil(waitMs)),
    );
  }
}

/** The operation's time was over before the service had answered, which had less than its own (`UPSTREAM_TIMEOUT_MS`). */
export class CutShortError extends UpstreamError {
  /** @param leftMs how much time the call had, in milliseconds. */
  constructor(leftMs: number, cause: Error, dispatched: boolean) {
    super(
      'UPSTREAM_TIMEOUT',
      `The time of the operation was over before the service had answered: this call had ${leftMs} ms.`,
      { cause, dispatched },
    );
  }
}

/** `unsent`: the gateway did not send the call. `given_up`: it left, and then all who waited for it did, or had no time left. */
export type Dropped = 'unsent' | 'given_up';

/** Returns why a call has no answer; undefined if the service is the reason. */
export function whyDropped(error: UpstreamError, isGone: boolean): Dropped | undefined {
  if (error instanceof UnsentError) return 'unsent';
  if (!isGone && !(error instanceof CutShortError)) return undefined;
  return error.dispatched ? 'given_up' : 'unsent';
}

/** The documented kinds of refusal. If an answer gives several explanations, the first of these kinds counts. */
const DOCUMENTED_REASONS: ReadonlySet<unknown> = new Set(['FAILED_PRECONDITION', 'DATA_ERROR']);

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Returns a 32-bit integer, else null: the graph's `Int` holds no more. */
const integer = (value: unknown): number | null => {
  const number = typeof value === 'number' ? value : Number.NaN;
  return (number | 0) === number ? number : null;
};

/** Reads a refusal out of an answer's status and parsed body (docs/upstream-api.md, "Errors"; the bodies of 404 and 409 are not shown). */
export function readRefusal(httpStatus: number, body: unknown): Refusal {
  const root = isObject(body) ? body : {};
  const details = Array.isArray(root['details']) ? root['details'].filter(isObject) : [];
  // The service does not document how many details there are, or that the explanation is the first.
  const detail =
    details.find(({ reason }) => DOCUMENTED_REASONS.has(reason)) ??
    details.find(({ reason }) => text(reason) !== null) ??
    details.find(({ metadata }) => isObject(metadata)) ??
    {};
  const metadata = isObject(detail['metadata']) ? detail['metadata'] : {};
  return {
    httpStatus,
    message: text(root['message']),
    reason: text(detail['reason']),
    errorCode: text(metadata['error_code']),
    detail: text(metadata['error_detail']),
    module: text(metadata['module']),
    methodName: text(metadata['method_name']),
    code: integer(root['code']),
    details,
  };
}

/**
 * The longest wait that a failing service has callers told, in milliseconds. Whoever answers with such a status on its way may ask for an hour,
 * and the service may be back in a minute.
 */
const LONGEST_WAIT_MS = 30_000;

/** The error for an answer that is not a 2xx, by its status alone. */
export function errorOfAnswer(answer: Answered): UpstreamError {
  const { status } = answer;
  const refusal = readRefusal(status, answer.body);
  /** What the answer asks its callers to wait. */
  const asked = (most = Number.POSITIVE_INFINITY) =>
    answer.retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(answer.retryAfterMs, most) };
  if (status === 401) {
    return new UpstreamError('UNAUTHENTICATED', 'The service does not accept this access token.', {
      refusal,
    });
  }
  if (status === 403) {
    return new UpstreamError('FORBIDDEN', 'The service does not allow this to the access token.', {
      refusal,
    });
  }
  if (status === 429) {
    return new UpstreamError('UPSTREAM_RATE_LIMITED', 'The service asks for fewer calls.', {
      refusal,
      ...asked(),
    });
  }
  if (status >= 500 || gaveUp(status)) {
    const what = gaveUp(status) ? 'gave up' : 'failed';
    return new UpstreamError('UPSTREAM_UNAVAILABLE', `The service ${what} with status ${status}.`, {
      status,
      ...asked(LONGEST_WAIT_MS),
    });
  }
  if (status >= 400 && status < 500) {
    return new UpstreamError('REFUSED', refusal.detail ?? `The service refused with status ${status}.`, {
      refusal,
      isServices: isDocumentedError(answer),
    });
  }
  return new UpstreamError('UPSTREAM_INVALID', `The service answered with the unexpected status ${status}.`);
}
