import type { Attempt as AnyAttempt } from '../../common/attempt.ts';
import { clock } from '../../common/clock.ts';
import { FairQueue, SHARE_OF_GROUP } from '../../common/fair-queue.ts';
import type { Party, Requester } from '../../common/party.ts';
import type { Turns } from '../../common/turns.ts';
import type { CircuitBreaker, ServiceSign } from './breaker.ts';
import { SuspendedError, UpstreamError } from './errors.ts';
import { type CallKind, CallTimeout, exchange, type FailedExchange, type HttpRequest } from './exchange.ts';
import { type CallPool, openPool } from './pool.ts';

const CONNECTIONS: Readonly<Record<CallKind, number>> = { reads: 128, money: 32, probes: 128 };
/**
 * Probes of one address: what nobody has verified yet counts for that, and thousands of phones may come back behind one at
 * once. Some connections are left for the others.
 */
const PROBES_PER_ADDRESS = CONNECTIONS.probes * SHARE_OF_GROUP;

export type { Answered } from '../../common/attempt.ts';

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
  // `Date.parse` takes `1.5` for a day of 2001. An HTTP date begins with the name of its day.
  const ms = /^\d+$/.test(value.trim())
    ? Number(value) * 1000
    : /^[A-Z]/i.test(value)
      ? Date.parse(value) - clock.now()
      : Number.NaN;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function describe(
  { cause, dispatched }: FailedExchange,
  timeoutMs: number,
  maxAnswerBytes: number,
): UpstreamError {
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

/**
 * What a call says of the service; undefined when it says nothing.
 *
 * @param isCut whether it had less than the time that the service is promised.
 */
function signOf(attempt: Attempt, isCut: boolean): ServiceSign | undefined {
  if (attempt.kind === 'answered') {
    return [502, 503, 504].includes(attempt.status) ? 'failed' : 'answered';
  }
  // An answer that is too long, or no HTTP, is what this caller was shown.
  if (attempt.error.code === 'UPSTREAM_INVALID') return undefined;
  if (isCut && attempt.error.code === 'UPSTREAM_TIMEOUT') return undefined;
  return attempt.error.dispatched ? 'failed' : 'unreachable';
}

const notSent = (code: 'UPSTREAM_TIMEOUT' | 'UPSTREAM_UNAVAILABLE', message: string): Attempt => ({
  kind: 'failed',
  error: new UpstreamError(code, message, { dispatched: false }),
});

const abandoned = (): Attempt =>
  notSent('UPSTREAM_UNAVAILABLE', 'The operation ended before the call was made.');
const expired = (): Attempt =>
  notSent('UPSTREAM_TIMEOUT', "The time of the operation was over before it was the call's turn.");

export interface HttpOptions {
  readonly connectTimeoutMs: number;
  /** The longest answer that is read; a longer one is `UPSTREAM_INVALID`. */
  readonly maxAnswerBytes: number;
  /** How many calls of one caller may be under way at once. All of one group have {@link SHARE_OF_GROUP} of the connections at most, or as many as one caller where that is more. */
  readonly callsPerCaller: number;
  /** Told of how many calls wait for a seat, when that changes. */
  readonly onWaiting?: ((count: number) => void) | undefined;
  /** When answers are read; undefined for as soon as they have come. */
  readonly turns?: Turns | undefined;
}

/** The connections of one kind, and the queue of calls that wait for one of them. */
interface QueuedPool {
  readonly pool: CallPool;
  readonly queue: FairQueue;
}

/**
 * Opens the pools. Redirects are not followed (a 3xx is an answer like any other), answers are read up to a length, and
 * each request has one deadline for all of it. Calls wait for a seat fairly between callers.
 *
 * @param origin scheme, host and port of the REST service, with no path.
 * @param breaker fails requests at once while the service keeps failing.
 */
export const createHttp = (origin: string, breaker: CircuitBreaker, options: HttpOptions): UpstreamHttp =>
  new Pools(origin, breaker, options);

class Pools implements UpstreamHttp {
  readonly #breaker: CircuitBreaker;
  readonly #options: HttpOptions;
  readonly #pools: Readonly<Record<CallKind, QueuedPool>>;

  constructor(origin: string, breaker: CircuitBreaker, options: HttpOptions) {
    this.#breaker = breaker;
    this.#options = options;
    this.#pools = {
      reads: this.#open(origin, 'reads', options.callsPerCaller),
      money: this.#open(origin, 'money', options.callsPerCaller),
      probes: this.#open(origin, 'probes', PROBES_PER_ADDRESS),
    };
  }

  #open(origin: string, kind: CallKind, perCaller: number): QueuedPool {
    const { connectTimeoutMs, maxAnswerBytes, onWaiting } = this.#options;
    const countWaiting = () => Object.values(this.#pools).reduce((sum, { queue }) => sum + queue.waiting, 0);
    return {
      pool: openPool(origin, {
        connections: CONNECTIONS[kind],
        pipelining: 1,
        maxResponseSize: maxAnswerBytes,
        connect: { timeout: connectTimeoutMs },
        // The one deadline of the call is ours; undici's own would report the same thing under other names.
        headersTimeout: 0,
        bodyTimeout: 0,
      }),
      queue: new FairQueue({
        total: CONNECTIONS[kind],
        perCaller,
        perGroup: Math.max(perCaller, CONNECTIONS[kind] * SHARE_OF_GROUP),
        onWaiting: () => onWaiting?.(countWaiting()),
      }),
    };
  }

  async send(request: HttpRequest): Promise<Attempt> {
    const { party, over = 'reads' } = request;
    const { pool, queue } = this.#pools[over];
    if (party.isGone) return abandoned();
    const requester = firstIn(queue, party) ?? (await enterLater(queue, request));
    if (requester === undefined) return party.isGone ? abandoned() : expired();
    try {
      // Its turn may come in the very moment in which its time ends, or all leave: a payment is not sent then.
      if (party.isGone) return abandoned();
      const leftMs = party.deadline - clock.now();
      if (leftMs <= 0) return expired();
      return await this.#sendIfAdmitted(pool, request, requester, leftMs);
    } finally {
      queue.leave(requester);
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map(({ pool }) => pool.destroy()));
  }

  async #sendIfAdmitted(
    pool: CallPool,
    request: HttpRequest,
    requester: Requester,
    leftMs: number,
  ): Promise<Attempt> {
    const permit = this.#breaker.admit(request.over ?? 'reads', requester.group);
    if (permit === undefined) return { kind: 'failed', error: new SuspendedError() };
    let sign: ServiceSign | undefined;
    try {
      const attempt = await this.#attempt(pool, request, requester, Math.min(request.timeoutMs, leftMs));
      // A call that its callers gave up says nothing.
      if (attempt.kind === 'answered' || !request.party.isGone) {
        sign = signOf(attempt, leftMs < request.timeoutMs);
      }
      return attempt;
    } finally {
      permit.end(sign);
    }
  }

  async #attempt(
    pool: CallPool,
    request: HttpRequest,
    requester: Requester,
    timeoutMs: number,
  ): Promise<Attempt> {
    const { party, over } = request;
    const { turns, maxAnswerBytes } = this.#options;
    const came = await exchange(pool, request, timeoutMs);
    if ('dispatched' in came) return { kind: 'failed', error: describe(came, timeoutMs, maxAnswerBytes) };
    // Reading it, and what its reader makes of it, may be as much work as all else together.
    const turn = turns?.turn(over === 'money' ? 'money' : party.urgency, requester.group);
    if (turn !== undefined) {
      const arrivedAt = clock.monotonic();
      await turn;
      request.unreadMs = clock.monotonic() - arrivedAt;
    }
    const { status, headers, read } = came;
    const { body, text } = read();
    const retryAfterMs = parseRetryAfter(headers['retry-after']);
    return { kind: 'answered', status, body, text, retryAfterMs };
  }
}

/** Waits for a seat, and notes for how long. */
async function enterLater(queue: FairQueue, request: HttpRequest): Promise<Requester | undefined> {
  const asked = clock.monotonic();
  const requester = await queue.enter(request.party);
  request.queuedMs = clock.monotonic() - asked;
  return requester;
}

/** The first of a party for whom there is a seat at once. */
function firstIn(queue: FairQueue, { waiters }: Party): Requester | undefined {
  for (const { requester } of waiters) if (queue.tryEnter(requester)) return requester;
  return undefined;
}
