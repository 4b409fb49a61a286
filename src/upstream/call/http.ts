import type { Attempt as AnyAttempt } from '../../common/attempt.ts';
import { clock } from '../../common/clock.ts';
import { FairQueue, SHARE_OF_GROUP } from '../../common/fair-queue.ts';
import type { Party, Requester, Waiter } from '../../common/party.ts';
import type { Turns } from '../../common/turns.ts';
import type { CircuitBreaker, CircuitKind, Permit, ServiceSign } from './breaker.ts';
import { SuspendedError, UnsentError, type UpstreamError } from './errors.ts';
import { type CallKind, describe, exchange, type HttpRequest, isUnsendable } from './exchange.ts';
import { type CallPool, openPool } from './pool.ts';
import { parseMediaType, parseRetryAfter } from './response-headers.ts';

const CONNECTIONS: Readonly<Record<CallKind, number>> = { reads: 128, money: 32, probes: 128 };
/**
 * Probes of one address at once. Nobody has verified their tokens yet, so they count for the address. Thousands of phones may
 * come back behind one address; some connections are left for the others.
 */
const PROBES_PER_ADDRESS = CONNECTIONS.probes * SHARE_OF_GROUP;

/** How long a call waits at most for the one that tries whether the service is back, in milliseconds. */
const TRIAL_MS = 1_000;

export type { Answered } from '../../common/attempt.ts';

/** The outcome of one request. Without an answer, `error.dispatched` tells whether it may have taken effect. */
export type Attempt = AnyAttempt<UpstreamError>;

/** One pool of connections to the REST service's origin. */
export interface UpstreamHttp {
  /** Sends once, never repeats, never throws. */
  send(request: HttpRequest): Promise<Attempt>;
  close(): Promise<void>;
}

/**
 * Returns what a call shows of the service; undefined if it shows nothing.
 *
 * @param isCut true if it had less than the time that the service is promised.
 */
function signOf(attempt: Attempt, isCut: boolean): ServiceSign | undefined {
  if (attempt.kind === 'answered') {
    return [502, 503, 504].includes(attempt.status) ? 'failed' : 'answered';
  }
  // An answer that is too long, or that is not HTTP, says nothing of other callers' calls.
  if (attempt.error.code === 'UPSTREAM_INVALID') return undefined;
  if (isCut && attempt.error.code === 'UPSTREAM_TIMEOUT') return undefined;
  // One client's API key may hold a line break. The calls of others can be sent.
  if (isUnsendable(attempt.error)) return undefined;
  return attempt.error.dispatched ? 'failed' : 'unreachable';
}

/** Only what changes something moves money. */
const circuitOf = ({ over = 'reads', method }: Pick<HttpRequest, 'over' | 'method'>): CircuitKind =>
  over === 'money' && method === 'GET' ? 'look-ups' : over;

const notSent = (code: 'UPSTREAM_TIMEOUT' | 'UPSTREAM_UNAVAILABLE', message: string): Attempt => ({
  kind: 'failed',
  error: new UnsentError(code, message),
});

const suspended = (waitMs: number): Attempt => ({ kind: 'failed', error: new SuspendedError(waitMs) });
/** Returns with whose failures those of a requester count. */
const domainOf = ({ group, failureDomain = group }: Requester): string => failureDomain;
const domainOfWaiter = ({ requester }: Waiter): string => domainOf(requester);

const abandoned = (): Attempt =>
  notSent('UPSTREAM_UNAVAILABLE', 'The operation ended before the call was made.');
const expired = (): Attempt =>
  notSent('UPSTREAM_TIMEOUT', "The time of the operation was over before it was the call's turn.");

export interface HttpOptions {
  readonly connectTimeoutMs: number;
  /** The longest answer that is read; a longer one is `UPSTREAM_INVALID`. */
  readonly maxAnswerBytes: number;
  /**
   * How many calls of one caller may be under way at once. All callers of one group together have {@link SHARE_OF_GROUP} of
   * the connections, or as many as one caller if that is more.
   */
  readonly callsPerCaller: number;
  /** Called with the number of calls that wait for a seat, when that changes. */
  readonly onWaiting?: ((count: number) => void) | undefined;
  /** Gives the turns in which answers are read; without it they are read as soon as they have come. */
  readonly turns?: Turns | undefined;
}

/** The connections of one kind, and the queue of calls that wait for one of them. */
interface QueuedPool {
  readonly pool: CallPool;
  readonly queue: FairQueue;
}

/**
 * Opens the pools. It does not follow redirects (a 3xx is an answer like any other), reads answers up to a length, and gives
 * each request one deadline. Calls wait for a seat fairly between callers.
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
        // Over HTTP/2 undici sends by itself again what the server says it has refused: who sends a payment again is the gateway's to decide.
        allowH2: false,
        maxResponseSize: maxAnswerBytes,
        connect: { timeout: connectTimeoutMs },
        // Each call has one deadline, of ours. Those of undici would report the same time-out under other names.
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
    let requester = firstIn(queue, party);
    if (requester === undefined) {
      const endsAt = clock.monotonic() + TRIAL_MS;
      // No seat is worth waiting for that would only bring this error. The calls that hold the seats may hang.
      while (this.#suspendedMs(request) > 0) {
        if (await this.#tried(request, [...party.waiters].map(domainOfWaiter), endsAt)) continue;
        return party.isGone ? abandoned() : suspended(this.#suspendedMs(request));
      }
      requester = await enterLater(queue, request);
    }
    if (requester === undefined) return party.isGone ? abandoned() : expired();
    try {
      return await this.#sendIfAdmitted(pool, request, requester);
    } finally {
      queue.leave(requester);
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map(({ pool }) => pool.destroy()));
  }

  /** Returns how long the calls of all who wait for a request are suspended, in milliseconds; 0 if one may be made. */
  #suspendedMs(request: HttpRequest): number {
    const kind = circuitOf(request);
    let least = Number.POSITIVE_INFINITY;
    for (const { requester } of request.party.waiters)
      least = Math.min(least, this.#breaker.waitMs(kind, domainOf(requester)));
    return least;
  }

  /** @param trialEndsAt until when it waits for the call that tries whether the service is back, by the monotonic clock */
  async #sendIfAdmitted(
    pool: CallPool,
    request: HttpRequest,
    requester: Requester,
    trialEndsAt?: number,
  ): Promise<Attempt> {
    const { party } = request;
    // Its seat may come at the moment in which its time ends or all have left. A payment must not be sent then.
    if (party.isGone) return abandoned();
    const leftMs = party.deadline - clock.now();
    if (leftMs <= 0) return expired();
    const permit = this.#admit(request, requester);
    if (permit !== undefined) return this.#sendPermitted(pool, request, requester, leftMs, permit);
    const endsAt = trialEndsAt ?? clock.monotonic() + TRIAL_MS;
    if (await this.#tried(request, [...party.waiters].map(domainOfWaiter), endsAt))
      return this.#sendIfAdmitted(pool, request, requester, endsAt);
    return party.isGone ? abandoned() : suspended(this.#suspendedMs(request));
  }

  /** The seat may be that of one whose calls are suspended: then the call is that of another waiter, whose calls may be made. */
  #admit(request: HttpRequest, requester: Requester): Permit | undefined {
    const kind = circuitOf(request);
    let permit = this.#breaker.admit(kind, domainOf(requester));
    for (const { requester: other } of request.party.waiters)
      permit ??= other === requester ? undefined : this.#breaker.admit(kind, domainOf(other));
    return permit;
  }

  /**
   * Waits for the call that tries whether the service is back for one of these, or until nobody waits any more. An operation makes several
   * reads at once: the first one tries, and the others would fail beside it. It moves money by one call.
   *
   * @returns false where there is none, or no time for it.
   */
  async #tried(request: HttpRequest, domains: readonly string[], endsAt: number): Promise<boolean> {
    const { party } = request;
    const kind = circuitOf(request);
    const [trial] = kind === 'money' ? [] : domains.flatMap((one) => this.#breaker.trial(kind, one) ?? []);
    const asked = clock.monotonic();
    const leftMs = Math.min(endsAt - asked, party.deadline - clock.now());
    if (trial === undefined || leftMs <= 0) return false;
    await party.pause(leftMs, trial);
    request.queuedMs = (request.queuedMs ?? 0) + clock.monotonic() - asked;
    return true;
  }

  async #sendPermitted(
    pool: CallPool,
    request: HttpRequest,
    requester: Requester,
    leftMs: number,
    permit: Permit,
  ): Promise<Attempt> {
    let sign: ServiceSign | undefined;
    try {
      const attempt = await this.#attempt(pool, request, requester, Math.min(request.timeoutMs, leftMs));
      // A call that its callers gave up shows nothing of the service.
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
    if ('dispatched' in came) {
      const isCut = timeoutMs < request.timeoutMs;
      return { kind: 'failed', error: describe(came, timeoutMs, isCut, maxAnswerBytes) };
    }
    // Parsing the answer, and what its reader does with it, may be as much work as everything else.
    const turn = turns?.turn(over === 'money' ? 'money' : party.urgency, requester.group);
    if (turn !== undefined) {
      const arrivedAt = clock.monotonic();
      await turn;
      request.unreadMs = clock.monotonic() - arrivedAt;
    }
    const { status, headers, read } = came;
    const { body, text, bytes } = read();
    const retryAfterMs = parseRetryAfter(headers['retry-after']);
    const contentType = parseMediaType(headers['content-type']);
    return { kind: 'answered', status, body, text, bytes, contentType, retryAfterMs };
  }
}

/** Waits for a seat, and notes on the request for how long. */
async function enterLater(queue: FairQueue, request: HttpRequest): Promise<Requester | undefined> {
  const asked = clock.monotonic();
  const requester = await queue.enter(request.party);
  request.queuedMs = (request.queuedMs ?? 0) + clock.monotonic() - asked;
  return requester;
}

/** Returns the first waiter of a party that gets a seat at once. */
function firstIn(queue: FairQueue, { waiters }: Party): Requester | undefined {
  for (const { requester } of waiters) if (queue.tryEnter(requester)) return requester;
  return undefined;
}
