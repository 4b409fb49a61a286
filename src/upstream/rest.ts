import { setTimeout as sleep } from 'node:timers/promises';
import type { Urgency } from '../common/turns.ts';
import { readRefusal, UpstreamError } from './errors.ts';
import type { Connections, HttpRequest } from './exchange.ts';
import type { Answered, Attempt, UpstreamHttp } from './http.ts';
import { expandPath } from './path.ts';
import { retryDelay } from './retry.ts';

type Query = Readonly<Record<string, string | number | undefined>>;
type Params = Readonly<Record<string, string>>;

/** One REST call as it went, for `extensions.upstream` and for metrics. */
export interface CallRecord {
  readonly method: string;
  /** The route, with its parameters unfilled: no id is ever in it. */
  readonly route: string;
  /** Path and query as they were sent, ids and all: for the caller's own eyes. */
  readonly path: string;
  /** Null when no answer came, and where none was asked for. */
  readonly status: number | null;
  readonly milliseconds: number;
  /** When it began, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** Whether an answer that an earlier operation had read served instead, and no call was made. */
  readonly cached: boolean;
}

/** Headers that say who is calling: `authorization`, or `x-api-key` for the bootstrap alone. */
export type Credential = Readonly<Record<string, string>>;

/**
 * Where a call gets its credential from.
 *
 * @param refused one that the service has just answered with 401.
 * @returns the credential to use; in place of a refused one undefined, where there is no other.
 * @throws UpstreamError when there should be one and cannot be had. Nothing has been sent then.
 */
export type Authorize = (refused?: Credential) => Promise<Credential | undefined>;

/** For a credential that the gateway cannot renew: its caller gets the 401. */
export const fixedCredential =
  (credential: Credential): Authorize =>
  async (refused) =>
    refused === undefined ? credential : undefined;

/** Whether a request that was answered with this 401 may leave once more with another credential. */
export type MayRenew = (refused: Answered) => boolean;

/** What changes something in the REST service. Reads have their own ways, which know who may see what (session.ts). */
export type RestChanges = Pick<Rest, 'clientId' | 'send'>;

/** The REST service as one caller reaches it, within one operation. Nouns are built on this alone. */
export interface Rest {
  readonly clientId: string;
  /**
   * A GET that is repeated, within the deadline, where that may help (retry.ts).
   *
   * @param route a path template; `{clientId}` is filled in by itself.
   * @returns the parsed body of a 2xx.
   * @throws UpstreamError for anything else; a 404 has the code `REFUSED` and `refusal.httpStatus` 404.
   */
  get(route: string, options?: { params?: Params; query?: Query }): Promise<unknown>;
  /** Records that a GET without parameters was not made, as its answer is known from an earlier operation. */
  served(route: string): void;
  /**
   * A POST, PATCH or DELETE, sent once; once more with another credential after a 401, unless `mayRenew` says otherwise. Never
   * throws but for a malformed id.
   */
  send(
    method: 'POST' | 'PATCH' | 'DELETE',
    route: string,
    options?: {
      params?: Params;
      body?: string;
      headers?: Readonly<Record<string, string>>;
      /** How the request may be given up; money is sent without one. */
      signal?: AbortSignal;
      /** Over which connections; those of all calls of this caller where nothing is said. */
      over?: Connections;
      mayRenew?: MayRenew;
    },
  ): Promise<Attempt>;
  /**
   * Waits for something that other operations may wait for too, in the time that this one has.
   *
   * @throws UpstreamError `UPSTREAM_TIMEOUT` with this message when the time is over first.
   */
  within<T>(work: Promise<T>, message: string): Promise<T>;
  /**
   * The same caller's calls, for work that outlives the operation. They are not reported with it, and answers of other
   * operations do not serve them.
   *
   * @param timeoutMs when that work must be over.
   */
  detached(timeoutMs: number): Rest;
}

export interface RestOptions {
  readonly http: UpstreamHttp;
  readonly clientId: string;
  /** Whose calls they are, and whom the service takes them to come from (http.ts). */
  readonly caller: string;
  readonly identity: string;
  readonly authorize: Authorize;
  /** Over which connections its calls go; undefined for those of reads. */
  readonly over?: Connections | undefined;
  /** How pressing they are (http.ts). */
  readonly urgency?: Urgency | undefined;
  /** Sent with every call, such as the request id. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Ends waiting for answers when the caller is gone. */
  readonly signal?: AbortSignal;
  readonly onCall?: (call: CallRecord) => void;
  /** Told of the calls of work that outlives the operation. */
  readonly onDetachedCall?: ((call: CallRecord) => void) | undefined;
  /** May give the answer of the same read of another operation of the same caller; without it every GET is a call. */
  readonly coalesce?: (
    call: Pick<CallRecord, 'route' | 'path'>,
    read: () => Promise<unknown>,
  ) => Promise<unknown>;
}

type Call = Pick<HttpRequest, 'method' | 'path' | 'headers' | 'body' | 'signal' | 'over'>;

/** How often one call may be repeated with a fresher credential: another process may have renewed it meanwhile. */
const MAX_RENEWALS = 2;

const isRefusedCredential = (attempt: Attempt): attempt is Answered =>
  attempt.kind === 'answered' && attempt.status === 401;

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** The error for an answer that is not a 2xx, by its status alone. */
export function errorOfAnswer(answer: Answered): UpstreamError {
  const { status } = answer;
  const refusal = readRefusal(status, answer.body);
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
      ...(answer.retryAfterMs === undefined ? {} : { retryAfterMs: answer.retryAfterMs }),
    });
  }
  if (status >= 400 && status < 500) {
    return new UpstreamError('REFUSED', refusal.detail ?? `The service refused with status ${status}.`, {
      refusal,
    });
  }
  if (status >= 500) {
    return new UpstreamError('UPSTREAM_UNAVAILABLE', `The service failed with status ${status}.`);
  }
  return new UpstreamError('UPSTREAM_INVALID', `The service answered with the unexpected status ${status}.`);
}

/** Binds the pool to one caller and one operation. */
export function createRest(options: RestOptions): Rest {
  const { http, clientId, timeoutMs, deadline, onCall } = options;
  const timeLeft = () => deadline - Date.now();
  const whose = {
    caller: options.caller,
    identity: options.identity,
    over: options.over,
    urgency: options.urgency,
    deadline,
  };

  async function once(route: string, request: Call): Promise<Attempt> {
    const left = timeLeft();
    if (left <= 0) {
      return {
        kind: 'failed',
        error: new UpstreamError('UPSTREAM_TIMEOUT', 'The time of the operation was over before the call.', {
          dispatched: false,
        }),
      };
    }
    const start = performance.now();
    const attempt = await http.send({ ...whose, ...request, timeoutMs: Math.min(timeoutMs, left) });
    onCall?.({
      method: request.method,
      route,
      path: request.path,
      cached: false,
      status: attempt.kind === 'answered' ? attempt.status : null,
      milliseconds: performance.now() - start,
      startedAt: start,
    });
    return attempt;
  }

  /** One call under the credential of the moment. Throws what `authorize` throws. */
  async function authorized(route: string, request: Call, mayRenew?: MayRenew): Promise<Attempt> {
    let credential = await options.authorize();
    for (let renewals = 0; ; renewals += 1) {
      const attempt = await once(route, { ...request, headers: { ...request.headers, ...credential } });
      if (!isRefusedCredential(attempt) || renewals === MAX_RENEWALS) return attempt;
      if (mayRenew?.(attempt) === false) return attempt;
      credential = await options.authorize(credential);
      if (credential === undefined) return attempt;
    }
  }

  /** One GET, repeated where that may help. */
  async function read(route: string, path: string): Promise<unknown> {
    const request = {
      method: 'GET' as const,
      path,
      headers: options.headers,
      ...(options.signal ? { signal: options.signal } : {}),
    };
    for (let tries = 1; ; tries += 1) {
      const attempt = await authorized(route, request);
      if (attempt.kind === 'answered' && isSuccess(attempt.status)) {
        if (attempt.body === undefined) {
          throw new UpstreamError('UPSTREAM_INVALID', `The service's answer to GET ${route} is not JSON.`);
        }
        return attempt.body;
      }
      const delay = retryDelay(attempt, tries, timeLeft(), Math.random());
      if (delay === undefined || options.signal?.aborted) {
        throw attempt.kind === 'failed' ? attempt.error : errorOfAnswer(attempt);
      }
      // Nobody waits for a caller who is gone: the next attempt ends at once.
      await sleep(delay, undefined, { signal: options.signal }).catch(() => undefined);
    }
  }

  return {
    clientId,
    served: (route) =>
      onCall?.({
        method: 'GET',
        route,
        path: route,
        cached: true,
        status: null,
        milliseconds: 0,
        startedAt: performance.now(),
      }),
    async get(route, { params = {}, query = {} } = {}) {
      const path = expandPath(route, { clientId, ...params }, query);
      const { coalesce } = options;
      return coalesce === undefined ? read(route, path) : coalesce({ route, path }, () => read(route, path));
    },
    async send(method, route, { params = {}, body, headers = {}, signal, over, mayRenew } = {}) {
      const path = expandPath(route, { clientId, ...params });
      try {
        const request = {
          method,
          path,
          headers: {
            ...options.headers,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(body === undefined ? {} : { body }),
          ...(signal ? { signal } : {}),
          ...(over === undefined ? {} : { over }),
        };
        return await authorized(route, request, mayRenew);
      } catch (error) {
        if (error instanceof UpstreamError) return { kind: 'failed', error };
        throw error;
      }
    },
    within: (work, message) => within(work, message, timeLeft(), options.signal),
    detached(ms) {
      const { signal: _signal, coalesce: _coalesce, onCall: _onCall, ...others } = options;
      const { onDetachedCall: onCall } = options;
      return createRest({
        ...others,
        deadline: Date.now() + ms,
        ...(onCall === undefined ? {} : { onCall }),
      });
    },
  };
}

async function within<T>(
  work: Promise<T>,
  message: string,
  timeLeftMs: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  const ended = new AbortController();
  const leave = () => ended.abort();
  signal?.addEventListener('abort', leave, { once: true });
  try {
    const over = sleep(Math.max(0, timeLeftMs), undefined, { signal: ended.signal }).then(
      () => undefined,
      () => undefined,
    );
    const first = await Promise.race([work.then((value) => ({ value })), over]);
    if (first !== undefined) return first.value;
    throw new UpstreamError('UPSTREAM_TIMEOUT', message, { dispatched: false });
  } finally {
    signal?.removeEventListener('abort', leave);
    ended.abort();
  }
}
