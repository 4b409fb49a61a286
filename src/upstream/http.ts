import { Pool } from 'undici';
import type { Attempt as AnyAttempt } from '../common/attempt.ts';
import { FairQueue } from '../common/fair-queue.ts';
import type { CallOutcome, CircuitBreaker } from './breaker.ts';
import { SuspendedError, UpstreamError } from './errors.ts';
import { CallTimeout, exchange, type HttpRequest, type NoAnswer } from './exchange.ts';

/** Connections for reads, and for calls that move money: those are nobody else's. */
const CONNECTIONS = 128;
const MONEY_CONNECTIONS = 32;

export type { Answered } from '../common/attempt.ts';

/** What became of one request; without an answer, `error.dispatched` tells whether it may have taken effect. */
export type Attempt = AnyAttempt<UpstreamError>;

/** One pool of connections to the REST service's origin. */
export interface UpstreamHttp {
  /** Sends once, never repeats, never throws. */
  send(request: HttpRequest): Promise<Attempt>;
  close(): Promise<void>;
}

/** Delta-seconds or an HTTP date (RFC 9110, 10.2.3), in milliseconds from now. */
function parseRetryAfter(header: string | string[] | undefined): number | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function describe({ cause, dispatched }: NoAnswer, timeoutMs: number, maxAnswerBytes: number): UpstreamError {
  if (cause instanceof CallTimeout) {
    return new UpstreamError('UPSTREAM_TIMEOUT', `The service did not answer within ${timeoutMs} ms.`, {
      cause,
      dispatched,
    });
  }
  const code: unknown = Reflect.get(cause, 'code');
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    return new UpstreamError(
      'UPSTREAM_INVALID',
      `The service's answer is longer than ${maxAnswerBytes} bytes (UPSTREAM_ANSWER_BYTES).`,
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

/** What a call says of the service; undefined when it says nothing. */
function outcomeOf(attempt: Attempt): CallOutcome | undefined {
  if (attempt.kind === 'answered') {
    return [502, 503, 504].includes(attempt.status) ? 'failed' : 'answered';
  }
  // An answer that is too long, or no HTTP, is what this caller was shown.
  if (attempt.error.code === 'UPSTREAM_INVALID') return undefined;
  return attempt.error.dispatched ? 'failed' : 'unreachable';
}

const notSent = (
  code: 'UPSTREAM_TIMEOUT' | 'UPSTREAM_UNAVAILABLE',
  message: string,
  cause?: unknown,
): Attempt => ({
  kind: 'failed',
  error: new UpstreamError(code, message, { dispatched: false, cause }),
});

export interface HttpOptions {
  readonly connectTimeoutMs: number;
  /** The longest answer that is read; a longer one is `UPSTREAM_INVALID`. */
  readonly maxAnswerBytes: number;
  /** How many calls of one caller may be under way at once. */
  readonly callsPerCaller: number;
  /** Told of how many calls wait for their turn, when that changes. */
  readonly onWaiting?: ((count: number) => void) | undefined;
}

/**
 * Opens the pools. Redirects are not followed (a 3xx is an answer like any other), answers are read up to a length, and
 * each request has one deadline for all of it. Calls wait for their turn fairly between callers.
 *
 * @param origin scheme, host and port of the REST service, with no path.
 * @param breaker fails requests at once while the service keeps failing.
 */
export function createHttp(
  origin: string,
  breaker: CircuitBreaker,
  { connectTimeoutMs, maxAnswerBytes, callsPerCaller, onWaiting }: HttpOptions,
): UpstreamHttp {
  const open = (connections: number) => ({
    pool: new Pool(origin, {
      connections,
      pipelining: 1,
      maxResponseSize: maxAnswerBytes,
      connect: { timeout: connectTimeoutMs },
      // The one deadline of the call is ours; undici's own would report the same thing under other names.
      headersTimeout: 0,
      bodyTimeout: 0,
    }),
    queue: new FairQueue({ total: connections, perCaller: callsPerCaller, onWaiting }),
  });
  const reads = open(CONNECTIONS);
  const money = open(MONEY_CONNECTIONS);

  async function attempt(pool: Pool, request: HttpRequest): Promise<Attempt> {
    const timeoutMs = Math.min(request.timeoutMs, request.deadline - Date.now());
    const came = await exchange(pool, request, timeoutMs);
    if ('dispatched' in came) return { kind: 'failed', error: describe(came, timeoutMs, maxAnswerBytes) };
    const { status, headers, body, text } = came;
    const retryAfterMs = parseRetryAfter(headers['retry-after']);
    return { kind: 'answered', status, body, text, retryAfterMs };
  }

  return {
    async send(request) {
      const { pool, queue } = request.movesMoney === true ? money : reads;
      const { signal, caller, identity } = request;
      const ended = () =>
        notSent('UPSTREAM_UNAVAILABLE', 'The operation ended before the call was made.', signal?.reason);
      if (signal?.aborted) return ended();
      if (!queue.tryEnter(caller) && !(await queue.enter(caller, request.deadline - Date.now(), signal))) {
        if (signal?.aborted) return ended();
        return notSent(
          'UPSTREAM_TIMEOUT',
          "The time of the operation was over before it was the call's turn.",
        );
      }
      try {
        if (!breaker.admits(identity)) return { kind: 'failed', error: new SuspendedError() };
        const made = await attempt(pool, request);
        const outcome = signal?.aborted ? undefined : outcomeOf(made);
        if (outcome === undefined) breaker.release(identity);
        else breaker.record(identity, outcome);
        return made;
      } finally {
        queue.leave(caller);
      }
    },
    async close() {
      await Promise.all([reads.pool.destroy(), money.pool.destroy()]);
    },
  };
}
