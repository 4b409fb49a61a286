import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';
import type { Party, Requester, Waiter } from '../../common/party.ts';
import type { Urgency } from '../../common/turns.ts';
import { type Leaver, leaverOf } from '../../common/waiters.ts';
import { addWaits, type ReadAnswer, type ReadWaits } from './coalesce.ts';
import { type AuthHeaders, type Authorize, type MayRenew, underCredential } from './credential.ts';
import { isDocumentedError } from './documented-error.ts';
import { type Dropped, errorOfAnswer, UpstreamError, whyDropped } from './errors.ts';
import type { CallKind, HttpRequest } from './exchange.ts';
import type { Attempt, UpstreamHttp } from './http.ts';
import { expandPath } from './path.ts';
import { retryDelay } from './retry.ts';
import { type Asker, type SharedWork, withParty } from './shared-work.ts';

/** The query parameters of a GET; those of `undefined` are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>;
type Params = Readonly<Record<string, string>>;
type ChangeMethod = 'POST' | 'PATCH' | 'DELETE';

interface ReadOptions {
  readonly params?: Params;
  readonly query?: Query;
  /** True for no answer that has been kept of an earlier read: that of a read under way may serve. */
  readonly isFresh?: boolean;
}

export interface ChangeOptions {
  readonly params?: Params;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts the request. Payments are sent without one. */
  readonly signal?: AbortSignal;
  /** The kind of connection; that of all calls of this caller if it is absent. */
  readonly over?: CallKind;
  /**
   * By default only after a documented error of the service, which has done nothing then. A proxy's 401 does not say whether
   * it has.
   */
  readonly mayRenew?: MayRenew;
}

/** What is reported of one REST call, for `extensions.upstream` and for metrics. */
export interface CallRecord {
  readonly method: string;
  /** The route, with its parameters unfilled: no id is ever in it. */
  readonly route: string;
  /** Path and query as they were sent, with ids. Shown to the caller alone. */
  readonly path: string;
  /** Null if no answer came, or if no call was made. */
  readonly status: number | null;
  /** Why no answer came, where the service is not the reason. */
  readonly dropped?: Dropped | undefined;
  /** From when it left until its answer was read, without the waits below. Nearly 0 for a call that never left. */
  readonly milliseconds: number;
  /** When it left, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** How long it waited for a seat before it left, in milliseconds. */
  readonly queuedMs: number;
  /** How long its answer waited for its turn to be read, in milliseconds. */
  readonly unreadMs: number;
  /** True if no call was made, because the answer of an earlier operation served. */
  readonly cached: boolean;
  /** True if the call only finds out who is calling. */
  readonly identifies: boolean;
}

/**
 * The part of {@link Rest} that changes something. Reads go through the session, which narrows them
 * (upstream/session/session.ts).
 */
export interface RestChanges extends Pick<Rest, 'clientId' | 'send'> {
  /**
   * Returns the answer that `send` would give by itself, because the change is not the caller's to make or because that cannot be found
   * out. Undefined if the change may leave. Absent where every change may.
   */
  check?(method: ChangeMethod, route: string, options?: ChangeOptions): Promise<Attempt | undefined>;
}

/** A GET whose answer another operation may have. */
export interface SharedGet extends Pick<CallRecord, 'route' | 'path'> {
  readonly isFresh: boolean;
}

/** The REST service for one caller, within one operation. The nouns make their calls through this alone. */
export interface Rest {
  readonly clientId: string;
  /** Whom the service takes the caller for: the same for all who see the same of it. */
  readonly identity: string;
  /**
   * Makes a GET, and repeats it within the deadline if that may help (retry.ts).
   *
   * @param route a path template; `{clientId}` is filled in automatically.
   * @returns the parsed body of a 2xx.
   * @throws UpstreamError for any other answer; a 404 has the code `REFUSED` and `refusal.httpStatus` 404.
   */
  get(route: string, options?: ReadOptions): Promise<unknown>;
  /** Records that a GET without parameters was not needed, because an earlier operation has read its answer. */
  served(route: string): void;
  /**
   * Sends a POST, PATCH or DELETE once. After a 401 that `mayRenew` allows, sends it again with another credential. Never
   * throws, except for a malformed id.
   */
  send(method: ChangeMethod, route: string, options?: ChangeOptions): Promise<Attempt>;
  /**
   * Waits, within this operation's time, for work that other operations may wait for too.
   *
   * @throws UpstreamError `UPSTREAM_TIMEOUT` with this message if the time is over first.
   */
  within<T>(work: SharedWork<T>, message: string): Promise<T>;
  /**
   * Returns the same caller's calls, for work that others may join: the calls go on while one of those who wait is there.
   * They are never coalesced.
   *
   * @param isReported true to report them with this operation; false for work that may outlive it.
   */
  sharedBy(party: Party, isReported: boolean): Rest;
  /** Keeps work going for `ms` milliseconds although nobody waits for it, at the urgency of streams. */
  keep(work: Pick<SharedWork<unknown>, 'keep'>, ms: number): void;
}

export interface RestOptions {
  readonly http: UpstreamHttp;
  readonly clientId: string;
  /** Whom the service takes the caller for: a credential, in service mode the client. The client if it is absent. */
  readonly identity?: string | undefined;
  /** For whom the calls are made; each requester has its share of the connections (http.ts). */
  readonly requester: Requester;
  readonly authorize: Authorize;
  /** The kind of connection of its calls; undefined for that of reads. */
  readonly over?: CallKind | undefined;
  /** True if its calls only find out who is calling. */
  readonly identifies?: boolean | undefined;
  /** The urgency of the calls; that of operations if it is absent. */
  readonly urgency?: Urgency | undefined;
  /** Sent with every call, such as the request id. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Says when the caller is gone. That ends waiting for answers. */
  readonly leaver?: Leaver;
  readonly onCall?: (call: CallRecord) => void;
  /** Called as the operation begins to wait for work that others may wait for too. @returns called as that wait ends. */
  readonly onWait?: () => () => void;
  /** Called with each call of work that may outlive the operation. */
  readonly onDetachedCall?: ((call: CallRecord) => void) | undefined;
  /** May return the answer of the same read by another operation of the same caller. Without it every GET is a call. */
  readonly coalesce?: (
    call: SharedGet,
    asker: Asker,
    read: (party: Party) => Promise<ReadAnswer>,
  ) => Promise<ReadAnswer>;
  /** Who waits for all of its calls; undefined if only the operation does. */
  readonly party?: Party;
}

/** What it has waited is added to its `waits`. */
type Call = Omit<HttpRequest, 'timeoutMs' | keyof ReadWaits> & { readonly waits?: ReadWaits };

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** Binds the pool to one caller and one operation. */
export const createRest = (options: RestOptions): Rest => new CallerRest(options);

class CallerRest implements Rest {
  readonly clientId: string;
  readonly identity: string;
  readonly #options: RestOptions;
  readonly #waiter: Waiter;

  constructor(options: RestOptions) {
    const { requester, urgency = 'operations', deadline } = options;
    this.clientId = options.clientId;
    this.identity = options.identity ?? options.clientId;
    this.#options = options;
    this.#waiter = { requester, urgency, deadline };
  }

  get #asker(): Asker {
    return { ...this.#waiter, leaver: this.#options.leaver };
  }

  served(route: string): void {
    const startedAt = clock.monotonic();
    const waits = { queuedMs: 0, unreadMs: 0 };
    this.#note('GET', route, route, { cached: true, status: null, milliseconds: 0, startedAt, ...waits });
  }

  async get(route: string, { params = {}, query = {}, isFresh = false }: ReadOptions = {}): Promise<unknown> {
    const path = expandPath(route, { clientId: this.clientId, ...params }, query);
    const { coalesce, party } = this.#options;
    const read = (waiting: Party) => this.#read(route, path, waiting);
    const answered =
      coalesce !== undefined
        ? coalesce({ route, path, isFresh }, this.#asker, read)
        : party === undefined
          ? withParty(this.#asker, read)
          : read(party);
    return (await answered).body;
  }

  async send(method: ChangeMethod, route: string, options: ChangeOptions = {}): Promise<Attempt> {
    const { params = {}, body, headers = {}, signal, over, mayRenew = isDocumentedError } = options;
    const path = expandPath(route, { clientId: this.clientId, ...params });
    const request = {
      method,
      path,
      headers: {
        ...this.#options.headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(over === undefined ? {} : { over }),
    };
    try {
      return await withParty({ ...this.#waiter, leaver: signal && leaverOf(signal) }, (party) =>
        this.#authorized(route, { ...request, party }, mayRenew),
      );
    } catch (error) {
      if (error instanceof UpstreamError) return { kind: 'failed', error };
      throw error;
    }
  }

  within<T>(work: SharedWork<T>, message: string): Promise<T> {
    return work.wait(this.#asker, message).finally(this.#options.onWait?.());
  }

  sharedBy(party: Party, isReported: boolean): Rest {
    const { leaver: _leaver, coalesce: _coalesce, onCall: own, onDetachedCall, ...others } = this.#options;
    const onCall = isReported ? own : onDetachedCall;
    return new CallerRest({ ...others, party, ...(onCall === undefined ? {} : { onCall }) });
  }

  keep(work: Pick<SharedWork<unknown>, 'keep'>, ms: number): void {
    work.keep({ ...this.#waiter, urgency: 'streams', deadline: clock.now() + ms });
  }

  /** Makes one GET, and repeats it if that may help, while somebody waits for it. */
  async #read(route: string, path: string, party: Party): Promise<ReadAnswer> {
    const waits = { queuedMs: 0, unreadMs: 0 };
    const request = { method: 'GET' as const, path, headers: this.#options.headers, party, waits };
    for (let tries = 1; ; tries += 1) {
      const attempt = await this.#authorized(route, request);
      if (attempt.kind === 'answered' && isSuccess(attempt.status)) {
        if (attempt.body === undefined) {
          throw new UpstreamError('UPSTREAM_INVALID', `The service's answer to GET ${route} is not JSON.`);
        }
        return { body: attempt.body, bytes: attempt.bytes ?? 0, waits };
      }
      const delay = retryDelay(attempt, tries, party.deadline - clock.now(), entropy.random());
      if (delay !== undefined) await party.pause(delay);
      if (delay === undefined || party.isGone) {
        throw attempt.kind === 'failed' ? attempt.error : errorOfAnswer(attempt);
      }
    }
  }

  #authorized(route: string, request: Call, mayRenew?: MayRenew): Promise<Attempt> {
    const once = (credential: AuthHeaders | undefined) =>
      this.#once(route, { ...request, headers: { ...request.headers, ...credential } });
    return underCredential(this.#options.authorize, once, request.party, mayRenew);
  }

  async #once(route: string, { waits, ...request }: Call): Promise<Attempt> {
    const { party, method, path } = request;
    const { http, over, timeoutMs } = this.#options;
    if (!party.isGone && party.deadline <= clock.now()) {
      return {
        kind: 'failed',
        error: new UpstreamError('UPSTREAM_TIMEOUT', 'The time of the operation was over before the call.', {
          dispatched: false,
        }),
      };
    }
    const askedAt = clock.monotonic();
    const sent: HttpRequest = { over, ...request, timeoutMs };
    const attempt = await http.send(sent);
    const status = attempt.kind === 'answered' ? attempt.status : null;
    const dropped = attempt.kind === 'failed' ? whyDropped(attempt.error, party.isGone) : undefined;
    const { queuedMs = 0, unreadMs = 0 } = sent;
    if (waits !== undefined) addWaits(waits, queuedMs, unreadMs);
    const startedAt = askedAt + queuedMs;
    const milliseconds = clock.monotonic() - startedAt - unreadMs;
    const waited = { queuedMs, unreadMs };
    this.#note(method, route, path, { cached: false, status, dropped, milliseconds, startedAt, ...waited });
    return attempt;
  }

  #note(
    method: string,
    route: string,
    path: string,
    call: Omit<CallRecord, 'method' | 'route' | 'path' | 'identifies'>,
  ): void {
    this.#options.onCall?.({ method, route, path, identifies: this.#options.identifies === true, ...call });
  }
}
