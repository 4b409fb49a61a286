import { Pool } from 'undici';
import type { Attempt as AnyAttempt } from '../common/attempt.ts';
import type { CircuitBreaker } from './breaker.ts';
import { SuspendedError, UpstreamError } from './errors.ts';
import { CallTimeout, exchange, type HttpRequest, type NoAnswer } from './exchange.ts';

/** The largest answer that is read, in bytes; a longer one is `UPSTREAM_INVALID` (SECURITY.md). */
const MAX_ANSWER_BYTES = 5 * 1024 * 1024;

export type { Answered } from '../common/attempt.ts';

/** What became of one request; without an answer, `error.dispatched` tells whether it may have taken effect. */
export type Attempt = AnyAttempt<UpstreamError>;

/** One pool of connections to the REST service's origin. */
export interface UpstreamHttp {
  /** Sends once, never repeats, never throws. */
  send(request: HttpRequest): Promise<Attempt>;
  close(): Promise<void>;
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Delta-seconds or an HTTP date (RFC 9110, 10.2.3), in milliseconds from now. */
function parseRetryAfter(header: string | string[] | undefined): number | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function describe({ cause, dispatched }: NoAnswer, request: HttpRequest): UpstreamError {
  if (cause instanceof CallTimeout) {
    return new UpstreamError(
      'UPSTREAM_TIMEOUT',
      `The service did not answer within ${request.timeoutMs} ms.`,
      { cause, dispatched },
    );
  }
  const code: unknown = Reflect.get(cause, 'code');
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    return new UpstreamError(
      'UPSTREAM_INVALID',
      `The service's answer is longer than ${MAX_ANSWER_BYTES} bytes.`,
      { cause },
    );
  }
  if (
    typeof code === 'string' &&
    (code.startsWith('HPE_') || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
  ) {
    return new UpstreamError('UPSTREAM_INVALID', "The service's answer is not well-formed HTTP.", {
      cause,
    });
  }
  return new UpstreamError(
    'UPSTREAM_UNAVAILABLE',
    dispatched
      ? 'The connection to the service broke before its answer was complete.'
      : 'The service cannot be reached.',
    { cause, dispatched },
  );
}

/**
 * Opens the pool. Redirects are not followed (a 3xx is an answer like any other), answers are read up to 5 MiB, and each
 * request has one deadline for all of it.
 *
 * @param origin scheme, host and port of the REST service, with no path.
 * @param breaker fails requests at once while the service keeps failing.
 */
export function createHttp(origin: string, breaker: CircuitBreaker, connectTimeoutMs: number): UpstreamHttp {
  const pool = new Pool(origin, {
    connections: 128,
    pipelining: 1,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: { timeout: connectTimeoutMs },
    // The one deadline of the call is ours; undici's own would report the same thing under other names.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  async function attempt(request: HttpRequest): Promise<Attempt> {
    const came = await exchange(pool, request);
    if ('dispatched' in came) return { kind: 'failed', error: describe(came, request) };
    const { status, headers, text } = came;
    const retryAfterMs = parseRetryAfter(headers['retry-after']);
    return { kind: 'answered', status, body: parseJson(text), text, retryAfterMs };
  }

  return {
    async send(request) {
      if (request.signal?.aborted) {
        return {
          kind: 'failed',
          error: new UpstreamError('UPSTREAM_UNAVAILABLE', 'The operation ended before the call was made.', {
            dispatched: false,
            cause: request.signal.reason,
          }),
        };
      }
      if (!breaker.admits()) {
        return { kind: 'failed', error: new SuspendedError() };
      }
      const made = await attempt(request);
      if (request.signal?.aborted) breaker.release();
      else breaker.record(made.kind === 'answered' && ![502, 503, 504].includes(made.status));
      return made;
    },
    close: () => pool.destroy(),
  };
}
