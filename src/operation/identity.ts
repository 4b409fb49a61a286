import { hash } from 'node:crypto';
import { type Authenticator, UnauthenticatedError } from '../auth/authenticator.ts';
import type { Caller } from '../auth/caller.ts';
import { assertHolds } from '../auth/credential-expiry.ts';
import type { ExpiryWatch } from '../auth/expiry-watch.ts';
import type { AlarmClock } from '../common/alarms.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Requester } from '../common/party.ts';
import type { Urgency } from '../common/turns.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { Budget } from './budget.ts';
import { addressKey, type CallerKeys, requesterOf, requesterOfAddress } from './caller-keys.ts';
import type { Calls } from './calls.ts';
import type { Incoming } from './incoming.ts';

export interface IdentityOptions {
  readonly auth: Authenticator;
  readonly callerKeys: CallerKeys;
  /** The credentials of all sockets and streams. */
  readonly expiries: ExpiryWatch;
  readonly clock: AlarmClock;
}

/** Characters of a subject that is recorded as it is. Redis reads none of half a character. */
const MAX_SUBJECT = 128;

/** Who is calling, asked of the upstream at most once per operation. */
export class Identity {
  /** The caller's own `x-api-key`, for the two bootstrap fields alone. */
  readonly apiKey: string | undefined;
  /** The caller's bearer token; undefined where it brought none. */
  readonly token: string | undefined;
  readonly #options: IdentityOptions;
  readonly #incoming: Incoming;
  readonly #urgency: Urgency;
  readonly #budget: Budget;
  readonly #calls: Calls;
  #identified: MaybePromise<Caller> | undefined;
  #caller: Caller | undefined;
  #requester: Requester | undefined;
  /** For whom it runs until then. */
  #stranger: Requester | undefined;
  #awaiting: (() => void)[] = [];
  #mayChange = false;
  #awaitingChange: (() => void)[] = [];
  /** Whether it was found to stand for nobody. */
  #isRefused = false;

  constructor(options: IdentityOptions, incoming: Incoming, urgency: Urgency, budget: Budget, calls: Calls) {
    this.apiKey = incoming.apiKey;
    this.token = options.callerKeys.tokenOf(incoming.authorization);
    this.#options = options;
    this.#incoming = incoming;
    this.#urgency = urgency;
    this.#budget = budget;
    this.#calls = calls;
  }

  /**
   * Finds out who is calling; no promise when that is known already. Rejects with an error of code `UNAUTHENTICATED`. Root
   * fields ask through their rights, so that below them the caller is there.
   *
   * @param again true to ask again, whatever was found before.
   */
  identify(again = false): MaybePromise<Caller> {
    if (again) this.#identified = undefined;
    this.#identified ??= this.#incoming.caller ?? this.#ask(again);
    if (this.#identified instanceof Promise) {
      return this.#identified.then(
        (caller) => this.#know(caller),
        (error: unknown) => {
          this.#isRefused ||= error instanceof UnauthenticatedError;
          throw error;
        },
      );
    }
    return this.#know(this.#identified);
  }

  /** Whether a root field has asked for the caller, and somebody it is. */
  get isIdentified(): boolean {
    return this.#caller !== undefined;
  }

  /** Runs work once somebody is identified; at once where that has happened, and never where it does not. */
  onceIdentified(work: () => void): void {
    if (this.#caller === undefined) this.#awaiting.push(work);
    else work();
  }

  /** Notes that the caller has the right to a change that it asks for, which is about to be made. */
  noteMayChange(): void {
    this.#mayChange = true;
    for (const work of this.#awaitingChange.splice(0)) work();
  }

  /** Runs work once the caller is known to have that right; at once where it is, and never where it has none. */
  onceMayChange(work: () => void): void {
    if (this.#mayChange) work();
    else this.#awaitingChange.push(work);
  }

  /** The identified caller. Throws when no root field has asked for it. */
  get caller(): Caller {
    if (this.#caller === undefined) throw new Error('The caller is used before it is identified.');
    return this.#caller;
  }

  /** For whom the operation runs: a verified caller, else its network address, for the client that its token names. */
  get requester(): Requester {
    // A credential counts once it has been verified: a stranger could make up as many as it likes.
    this.#requester ??=
      this.token === undefined ? undefined : this.#options.callerKeys.find(this.token)?.requester;
    if (this.#requester !== undefined) return this.#requester;
    this.#stranger ??=
      this.token === undefined
        ? requesterOfAddress(this.address)
        : this.#options.auth.strangerOf(this.token, addressKey(this.address));
    return this.#stranger;
  }

  /** Whether nobody has verified its token so far. */
  get isStranger(): boolean {
    return this.requester === this.#stranger;
  }

  /** What the operation takes turns by. */
  get turnKey(): string {
    const known = this.token === undefined ? undefined : this.#options.callerKeys.find(this.token);
    return known?.turnKey ?? addressKey(this.address);
  }

  /**
   * Who is calling: the token, however its `Authorization` is written, else what was brought in its place. The API key is no part
   * of it, as no socket brings one: what a caller is told over a socket holds for its requests over HTTP too.
   */
  get credential(): string {
    return this.token ?? this.#incoming.authorization ?? '';
  }

  /** The same for all whom the REST service takes for one. Throws like `caller`. */
  get upstreamIdentity(): string {
    return this.#options.auth.upstreamIdentity(this.credential, this.caller.clientId);
  }

  /** Who asks, for the record of payments: the subject of the caller's token, or a digest of its credential. Throws like `caller`. */
  get requestedBy(): string {
    const { subject } = this.caller;
    if (subject !== undefined && subject.length <= MAX_SUBJECT && subject.isWellFormed()) return subject;
    return `sha256:${hash('sha256', subject ?? this.token ?? '', 'base64url')}`;
  }

  /** The network address that the request came from; undefined where it is not known. */
  get address(): string | undefined {
    return this.#incoming.addressOf?.();
  }

  /** Whether the two bootstrap fields are served at all: not where the gateway holds the credentials. */
  get servesBootstrap(): boolean {
    return this.#options.auth.servesBootstrap;
  }

  /** Whether the caller may be told of REST calls: not one narrowed to a customer, who sees a part of what they read. */
  get seesCalls(): boolean {
    // Where the gateway holds the credentials, who is not identified may be a caller narrowed to a customer.
    return this.#caller === undefined ? this.servesBootstrap : this.#caller.customerId === undefined;
  }

  /** What calls in the caller's name carry. Throws like `caller`. */
  get authorize(): Authorize {
    const { clientId } = this.caller;
    // Several credentials share the stream: nobody in particular asks, whatever token the gateway has of its own.
    if (this.token === undefined)
      throw new Error('A stream of several callers has no credential for REST calls.');
    return this.#options.auth.authorize(this.token, clientId);
  }

  /** Whether the operation came over a WebSocket: that is closed when its credential ends. Over HTTP each stream ends with an error. */
  get isOverSocket(): boolean {
    return this.#incoming.closeSockets !== undefined;
  }

  /** @throws UnauthenticatedError when the caller's credential has ended; over a socket, all sockets and streams of it end as well. */
  assertHolds(): void {
    try {
      assertHolds(this.caller, this.#options.clock.now());
    } catch (error) {
      this.#incoming.closeSockets?.();
      throw error;
    }
  }

  /**
   * Resolves with the reason when the caller's credential holds no longer; undefined once the signal is aborted. Rejects
   * when the caller cannot be identified to begin with.
   */
  async untilExpiry(until: AbortSignal): Promise<Error | undefined> {
    const caller = await this.identify();
    if (until.aborted) return undefined;
    const { expiries } = this.#options;
    const { authorization } = this.#incoming;
    return new Promise((resolve) => {
      const stream = { expiresAt: undefined, expired: resolve };
      expiries.watch(stream, authorization, caller);
      until.addEventListener('abort', () => {
        expiries.leave(stream, authorization);
        resolve(undefined);
      });
    });
  }

  /**
   * Asks about the credential again, as the service has refused it for one reading. All its sockets and streams are told if it has ended; a
   * refusal by one endpoint alone, or by a proxy for one call, does not end it.
   *
   * @returns whether it has ended.
   */
  hasEnded(): Promise<boolean> {
    return this.#options.expiries.doubt(this.#incoming.authorization);
  }

  /** Has the credential asked about again where it has been refused in this operation, whatever the operation made of that. */
  doubtIfRefused(): void {
    const { auth, expiries } = this.#options;
    const isWatched = () => expiries.isWatched(this.#incoming.authorization);
    // Where the gateway has credentials of its own, a call is never refused for the caller's.
    if ((this.#calls.wereRefused && !auth.sharesIdentity) || (this.#isRefused && isWatched()))
      void this.hasEnded();
  }

  #know(caller: Caller): Caller {
    this.#caller = caller;
    if (this.#requester === undefined) {
      // Without a token it is a stream of several callers who may see the same.
      this.#requester =
        this.token === undefined
          ? requesterOf(caller, '')
          : this.#options.callerKeys.note(this.token, caller).requester;
    }
    if (this.#awaiting.length > 0) for (const work of this.#awaiting.splice(0)) work();
    return caller;
  }

  #ask(fresh: boolean): MaybePromise<Caller> {
    if (this.token === undefined) {
      return Promise.reject(
        new UnauthenticatedError(
          this.#incoming.authorization === undefined
            ? 'An access token is needed: Authorization: Bearer <token>; over WebSocket, connectionParams.authorization.'
            : 'Authorization must have the form: Bearer <token>.',
        ),
      );
    }
    const { refusal } = this.#incoming;
    if (refusal !== undefined) return Promise.reject(refusal);
    const restFor = (clientId: string, authorize: Authorize) =>
      this.#calls.rest(clientId, this.requester, authorize, { over: 'probes', identifies: true });
    const { auth, callerKeys } = this.#options;
    const asker = {
      requester: this.requester,
      urgency: this.#urgency,
      deadline: this.#budget.deadline,
      leaver: this.#budget.waiters,
    };
    const isKnown = callerKeys.find(this.token) !== undefined;
    return auth.identify(this.token, restFor, fresh, asker, isKnown ? undefined : addressKey(this.address));
  }
}

/** An operation's context, for what asks only whether its caller has been identified so far. */
export interface IdentifiedContext {
  readonly identity: Pick<Identity, 'isIdentified'>;
}
