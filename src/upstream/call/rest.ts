import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';
import { type Owner, Party } from '../../common/party.ts';
import type { Urgency } from '../../common/turns.ts';
import { isDocumentedError } from './documented-error.ts';
import { readRefusal, UpstreamError } from './errors.ts';
import type { Connections, HttpRequest } from './exchange.ts';
import type { Answered, Attempt, UpstreamHttp } from './http.ts';
import { expandPath } from './path.ts';
import { retryDelay } from './retry.ts';
import type { Asker, SharedWork } from './shared-work.ts';

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
   * A POST, PATCH or DELETE, sent once; once more with another credential after a 401 that `mayRenew` allows. Never throws but for
   * a malformed id.
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
      /** Where nothing is said, only after the service's own word that it has done nothing: others do not know what it did. */
      mayRenew?: MayRenew;
    },
  ): Promise<Attempt>;
  /**
   * Waits for something that other operations may wait for too, in the time that this one has.
   *
   * @throws UpstreamError `UPSTREAM_TIMEOUT` with this message when the time is over first.
   */
  within<T>(work: SharedWork<T>, message: string): Promise<T>;
  /**
   * The same caller's calls, for work that others may wait for too: they are theirs as well, and go on while one of them is there.
   * Answers of other operations do not serve them.
   *
   * @param isReported whether they are reported with this operation; work that may outlive it is not.
   */
  sharedBy(party: Party, isReported: boolean): Rest;
  /** Has work go on for so many milliseconds though nobody waits for it, as less pressing than what somebody waits for. */
  keep(work: Pick<SharedWork<unknown>, 'keep'>, ms: number): void;
}

export interface RestOptions {
  readonly http: UpstreamHttp;
  readonly clientId: string;
  /** Whose calls they are (http.ts). */
  readonly owner: Owner;
  readonly authorize: Authorize;
  /** Over which connections its calls go; undefined for those of reads. */
  readonly over?: Connections | undefined;
  /** How pressing they are; as operations are where nothing is said. */
  readonly urgency?: Urgency | undefined;
  /** Sent with every call, such as the request id. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Ends waiting for answers when the caller is gone. */
  readonly signal?: AbortSignal;
  readonly onCall?: (call: CallRecord) => void;
  /** Told of the calls of work that may outlive the operation. */
  readonly onDetachedCall?: ((call: CallRecord) => void) | undefined;
  /** May give the answer of the same read of another operation of the same caller; without it every GET is a call. */
  readonly coalesce?: (
    call: Pick<CallRecord, 'route' | 'path'>,
    asker: Asker,
    read: (party: Party) => Promise<unknown>,
  ) => Promise<unknown>;
  /** Who waits for all of its calls; undefined where the operation alone does. */
  readonly party?: Party;
}

type Call = Pick<HttpRequest, 'method' | 'path' | 'headers' | 'body' | 'party' | 'over'>;

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
  const place = { owner: options.owner, urgency: options.urgency ?? 'operations', deadline };
  const asker: Asker = { ...place, signal: options.signal };

  async function once(route: string, request: Call): Promise<Attempt> {
    const { party } = request;
    if (!party.isGone && party.deadline <= clock.now()) {
      return {
        kind: 'failed',
        error: new UpstreamError('UPSTREAM_TIMEOUT', 'The time of the operation was over before the call.', {
          dispatched: false,
        }),
      };
    }
    const start = clock.monotonic();
    const attempt = await http.send({ over: options.over, ...request, timeoutMs });
    onCall?.({
      method: request.method,
      route,
      path: request.path,
      cached: false,
      status: attempt.kind === 'answered' ? attempt.status : null,
      milliseconds: clock.monotonic() - start,
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

  /** One GET, repeated where that may help, while somebody waits for it. */
  async function read(route: string, path: string, party: Party): Promise<unknown> {
    const request = { method: 'GET' as const, path, headers: options.headers, party };
    for (let tries = 1; ; tries += 1) {
      const attempt = await authorized(route, request);
      if (attempt.kind === 'answered' && isSuccess(attempt.status)) {
        if (attempt.body === undefined) {
          throw new UpstreamError('UPSTREAM_INVALID', `The service's answer to GET ${route} is not JSON.`);
        }
        return attempt.body;
      }
      const delay = retryDelay(attempt, tries, party.deadline - clock.now(), entropy.random());
      if (delay !== undefined) await party.pause(delay);
      if (delay === undefined || party.isGone) {
        throw attempt.kind === 'failed' ? attempt.error : errorOfAnswer(attempt);
      }
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
        startedAt: clock.monotonic(),
      }),
    async get(route, { params = {}, query = {} } = {}) {
      const path = expandPath(route, { clientId, ...params }, query);
      const { coalesce, party } = options;
      if (coalesce !== undefined) return coalesce({ route, path }, asker, (all) => read(route, path, all));
      return party === undefined
        ? withParty(asker, (own) => read(route, path, own))
        : read(route, path, party);
    },
    async send(
      method,
      route,
      { params = {}, body, headers = {}, signal, over, mayRenew = isDocumentedError } = {},
    ) {
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
          ...(over === undefined ? {} : { over }),
        };
        return await withParty({ ...place, signal }, (party) =>
          authorized(route, { ...request, party }, mayRenew),
        );
      } catch (error) {
        if (error instanceof UpstreamError) return { kind: 'failed', error };
        throw error;
      }
    },
    within: (work, message) => work.wait(asker, message),
    sharedBy(party, isReported) {
      const { signal: _signal, coalesce: _coalesce, onCall: own, onDetachedCall, ...others } = options;
      const onCall = isReported ? own : onDetachedCall;
      return createRest({ ...others, party, ...(onCall === undefined ? {} : { onCall }) });
    },
    keep: (work, ms) => work.keep({ ...place, urgency: 'streams', deadline: clock.now() + ms }),
  };
}

/** Calls for one who asks alone, and may leave. */
async function withParty<T>({ signal, ...place }: Asker, calls: (party: Party) => Promise<T>): Promise<T> {
  const party = new Party();
  if (signal?.aborted) return calls(party);
  const own = party.join(place);
  const leave = (): void => party.leave(own);
  signal?.addEventListener('abort', leave, { once: true });
  try {
    return await calls(party);
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}
