/** Why the REST service could not be asked, or what it answered that is no answer. Each code is a public one (docs/graph.md, "Error codes"). */
export type UpstreamErrorCode =
  | 'UPSTREAM_TIMEOUT'
  | 'UPSTREAM_UNAVAILABLE'
  | 'UPSTREAM_INVALID'
  | 'UPSTREAM_RATE_LIMITED'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'REFUSED';

/**
 * What the upstream said when it refused, read from the error body of docs/upstream-api.md, "Errors" where that came, and from
 * whatever text came otherwise. Every field but `httpStatus` is null when the body did not carry it.
 */
export interface Refusal {
  readonly httpStatus: number;
  readonly message: string | null;
  readonly reason: string | null;
  readonly errorCode: string | null;
  readonly detail: string | null;
  readonly module: string | null;
  readonly methodName: string | null;
}

/**
 * The one error of `src/upstream`. `dispatched` is false only when it is certain that no byte of the request reached the
 * upstream; money rules rest on it. `refusal` is set when the upstream answered with a 4xx.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: UpstreamErrorCode;
  readonly dispatched: boolean;
  readonly refusal: Refusal | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    code: UpstreamErrorCode,
    message: string,
    options: { cause?: unknown; dispatched?: boolean; refusal?: Refusal; retryAfterMs?: number } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.dispatched = options.dispatched ?? true;
    this.refusal = options.refusal;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Not asked, as the service keeps failing (breaker.ts): another attempt within the operation would fail as well. */
export class SuspendedError extends UpstreamError {
  constructor() {
    super(
      'UPSTREAM_UNAVAILABLE',
      'The service has been failing; calls to it are suspended for a few seconds.',
      {
        dispatched: false,
      },
    );
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Reads a refusal out of an answer's status and parsed body (docs/upstream-api.md, "Errors"; the bodies of 404 and 409 are not shown). */
export function readRefusal(httpStatus: number, body: unknown): Refusal {
  const root = isObject(body) ? body : {};
  const first: unknown = Array.isArray(root['details']) ? root['details'][0] : undefined;
  const detail = isObject(first) ? first : {};
  const metadata = isObject(detail['metadata']) ? detail['metadata'] : {};
  return {
    httpStatus,
    message: text(root['message']),
    reason: text(detail['reason']),
    errorCode: text(metadata['error_code']),
    detail: text(metadata['error_detail']),
    module: text(metadata['module']),
    methodName: text(metadata['method_name']),
  };
}
