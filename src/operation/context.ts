import { hash } from 'node:crypto';
import { type Authenticator, UnauthenticatedError } from '../auth/authenticator.ts';
import type { Caller } from '../auth/caller.ts';
import { assertHolds, type Clock, untilExpiry } from '../auth/credential-expiry.ts';
import { type Guesses, guessing } from '../auth/guesses.ts';
import type { RefusedKeys } from '../auth/refused-keys.ts';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Owner, Party } from '../common/party.ts';
import type { Turns, Urgency } from '../common/turns.ts';
import type { Waiters } from '../common/waiters.ts';
import type { EventLog, EventType } from '../events/log.ts';
import { type EventReads, sealedReads } from '../events/sealed-reads.ts';
import type { Money } from '../money/execute.ts';
import type { Coalescer } from '../upstream/call/coalesce.ts';
import { type Authorize, fixedCredential } from '../upstream/call/credential.ts';
import type { UpstreamHttp } from '../upstream/call/http.ts';
import { type CallRecord, createRest, type Rest, type RestOptions } from '../upstream/call/rest.ts';
import type { Asker } from '../upstream/call/shared-work.ts';
import type { ClientLists } from '../upstream/lists/client-lists.ts';
import type { Patience } from '../upstream/session/patience.ts';
import type { Polls } from '../upstream/session/polls.ts';
import {
  type BankCache,
  CLIENT_LISTS,
  createSession,
  type PrefetchList,
  type Session,
} from '../upstream/session/session.ts';
import { type CallerKeys, laneOfAddress, ownerOf, ownerOfAddress, tokenOf } from './caller-keys.ts';
import { LogReading } from './log-reading.ts';
import { type Kept, type StreamOwner, type StreamRefusal, streamOwner } from './streams.ts';

/** What one GraphQL operation carries. A subscription has one context, whose `session` is replaced for every event. */
export interface Context {
  readonly requestId: string;
  readonly logger: Logger;
  /**
   * Who is calling, asked of the upstream at most once per operation; no promise when that is known already. Rejects with
   * an error of code `UNAUTHENTICATED`. Root fields ask through their auth scope, so that below them `caller` and
   * `session` are there.
   *
   * @param again true to ask again, whatever was found before.
   */
  identify(again?: boolean): MaybePromise<Caller>;
  /** Whether a root field has asked for the caller, and somebody it is. */
  readonly isIdentified: boolean;
  /** Whose operation it is, for a fair share of what can be done at once: a verified caller, else the peer. */
  readonly owner: Owner;
  /** The identified caller. Throws when no root field has asked for it. */
  readonly caller: Caller;
  /** The caller's view of the REST service, with the loaders of this operation. Throws like `caller`. */
  readonly session: Session;
  /** Names lists that the operation is going to need, before anything is read: they are read beside its first call. */
  prefetch(lists: readonly PrefetchList[]): void;
  /** Resolves once the lists prefetched have arrived, or failed: look-ups in them need no promise then. */
  readonly prefetched: Promise<unknown> | undefined;
  /**
   * Drops what the loaders remember, and gives the calls to come a deadline of their own: before each event.
   *
   * @throws UnauthenticatedError when the caller's credential has ended meanwhile: nothing is delivered any more.
   */
  renewSession(): void;
  /** Lets go of what the loaders remember: nothing is left to do until the next event. */
  endSession(): void;
  /** Whether the socket that carries the operation is closed when the credential ends. */
  readonly endsWithSocket: boolean;
  /**
   * Resolves with the reason when the caller's credential holds no longer; undefined once the signal is aborted. Rejects
   * when the caller cannot be identified to begin with.
   */
  untilExpiry(signal: AbortSignal): Promise<Error | undefined>;
  /** Drops what the loaders remember in the midst of an operation: after a call that has changed something. */
  forgetReads(): void;
  /** Offset of upstream timestamps that carry none, also where nobody is identified. */
  readonly utcOffset: string;
  /** Who asks, for the record of payments: the subject of the caller's token, or a digest of its credential. Throws like `caller`. */
  readonly requestedBy: string;
  /** The caller's own `x-api-key`, for the two bootstrap fields alone. */
  readonly apiKey: string | undefined;
  /** Whether those two are served at all: not where the gateway holds the credentials. */
  readonly servesBootstrap: boolean;
  /** What was refused of the API keys that came before. */
  readonly refusedKeys: RefusedKeys;
  /** The network address that the request came from; undefined where it is not known. */
  readonly address: string | undefined;
  /** Counts a stream that is about to begin for the identified caller, and what it keeps. Says why it may not begin. */
  openStream(kept: Kept): StreamRefusal | undefined;
  /** REST calls under the caller's own `x-api-key`, for a client that it names (docs/upstream-api.md, "Authentication"). */
  bootstrapRest(apiKey: string, clientId: string): Rest;
  /** The log as the caller may read it. Throws like `caller`. */
  readonly events: EventReads;
  /** What the operation may read of the log. */
  readonly reading: LogReading;
  /** Finds out whose receipts events are. */
  readonly receiptOwner: ReceiptOwner;
  /** The readings of transactions that are made again, of all operations. */
  readonly polls: Polls;
  /** The cursor that a stream continues from when its `after` is older: what the client itself saw last. */
  readonly lastEventId: string | undefined;
  /** Whether a stream begins with what comes, whatever its `after` says. */
  readonly startsNow: boolean;
  readonly money: Money;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Aborted when nobody waits for the result any more. */
  readonly signal: AbortSignal;
  /** What long waits are measured by. */
  readonly clock: Clock;
  readonly ingress: IngressAddresses;
  /** The REST calls made so far, in the order in which they were answered. */
  readonly calls: readonly CallRecord[];
  /** Whether the caller may be told of them: not one narrowed to a customer, who sees a part of what they read. */
  readonly showsCalls: boolean;
  /** Calls of another operation, in the same words and of the same caller, whose result this one shares. */
  readonly sharedCalls: readonly CallRecord[];
  shareCalls(calls: readonly CallRecord[]): void;
  /** How many look-ups each list's route has answered so far. */
  lookUps(): ReadonlyMap<string, number>;
  /** Adds to the items that the answer's pages hold. Returns how many they are by now. */
  countItems(count: number): number;
  /** Drops what has been counted, as the operation is executed a second time. */
  recount(): void;
  /** How many they may be. */
  readonly maxItems: number;
}

/** An event that tells of a receipt (CEP). */
interface ReceiptEvent {
  readonly id: string;
  /** RFC 3339. */
  readonly receivedAt: string;
  /** The `id` of the message's body. */
  readonly bodyId: string | null;
}

/** Who wants to know whose receipts are. */
export interface ReceiptReader {
  readonly patience: Patience;
  /** Whose the REST calls are that this takes. */
  readonly owner: Owner;
  /** Whether it may have the REST service asked once more: called before each such reading. Without it, it may. */
  readonly mayAsk?: (() => boolean) | undefined;
}

/**
 * Finds the owner of what paid for a receipt; null where that is nobody, or could not be found out in time.
 *
 * @throws an error with a public code where it may not.
 */
export type ReceiptOwner = (
  clientId: string,
  event: ReceiptEvent,
  reader: ReceiptReader,
) => Promise<string | null>;

/** The gateway's own receiver of webhooks, as the graph needs to know it. */
export interface IngressAddresses {
  /** Where the provider reaches it for this client and type; undefined when `PUBLIC_URL` is not set. */
  url(clientId: string, type: EventType): string | undefined;
  /** The token that a webhook feeding it is registered with. */
  token(clientId: string, type: EventType): string;
  /** Whether deliveries to this address reach it. */
  feeds(url: string): boolean;
  /** The address with its signature masked; any other address as it is. */
  mask(url: string): string;
}

/** What a request brings, whichever transport it came over. */
export interface Incoming {
  /**
   * Who is calling, where that is known: a stream for several credentials whose callers may see the same. It has none of
   * these credentials, so that what it reads of the REST service under a caller's own token is refused.
   */
  readonly caller?: Caller | undefined;
  /** The header `Last-Event-ID` of a stream that is taken up again (WHATWG HTML, 9.2); a cursor. */
  readonly lastEventId: string | undefined;
  /** Whether a stream is to begin with what comes, whatever its `after` says: it is shared by those who ask for that. */
  readonly startsNow?: boolean | undefined;
  readonly requestId: string;
  /** The value of `Authorization`, from the header or from `connectionParams`. */
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
  /** Who waits for the result; undefined where it is not told when they are gone. */
  readonly waiters: Waiters | undefined;
  /** The network address that it came from; undefined where it is not known. */
  readonly addressOf?: (() => string | undefined) | undefined;
  /** Counts a stream of a caller, or says why it may not begin. Undefined where the socket is counted. */
  readonly openStream?: ((owner: StreamOwner, kept: Kept) => StreamRefusal | undefined) | undefined;
  /** Closes the socket that carries the operation, as its credential has ended; undefined over HTTP. */
  readonly closeSocket: (() => void) | undefined;
}

export interface ContextOptions {
  readonly http: UpstreamHttp;
  readonly auth: Authenticator;
  readonly banks: BankCache;
  readonly lists: ClientLists;
  readonly listsMaxAgeMs: number;
  /** How many items the pages of one answer may hold. */
  readonly maxItems: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly events: EventLog;
  readonly money: Money;
  readonly ingress: IngressAddresses;
  readonly logger: Logger;
  readonly upstreamTimeoutMs: number;
  readonly operationTimeoutMs: number;
  readonly utcOffset: string;
  readonly clock: Clock;
  /** When a batch of work begins, of all callers. */
  readonly turns: Pick<Turns, 'turn'>;
  readonly onCall: (call: CallRecord) => void;
  readonly reads: Coalescer;
  readonly refusedKeys: RefusedKeys;
  readonly keyGuesses: Guesses;
  readonly callerKeys: CallerKeys;
  readonly polls: Polls;
  /** Called with a caller's credential when it has changed something, and before it is told of an event. */
  readonly onInvalidate: (credential: string) => void;
  readonly receiptOwner: ReceiptOwner;
}

/** Characters of a subject that is recorded as it is. */
const MAX_SUBJECT = 128;

/** @param urgency how pressing it is to go on with each answer of the REST service. */
export type ContextFactory = (incoming: Incoming, urgency?: Urgency) => Context;

/** Makes the contexts of a server's operations. */
export const createContextFactory =
  (options: ContextOptions): ContextFactory =>
  (incoming, urgency = 'operations') =>
    new OperationContext(incoming, urgency, options);

/** How an operation makes its REST calls, where that is not the same for all of them. */
interface RestWays extends Pick<RestOptions, 'coalesce' | 'over'> {
  readonly signal?: AbortSignal | undefined;
  readonly urgency?: Urgency;
}

/** A class, because an object literal with accessors costs a hidden class of its own each time one is made. */
class OperationContext implements Context {
  readonly requestId: string;
  readonly apiKey: string | undefined;
  readonly lastEventId: string | undefined;
  readonly startsNow: boolean;
  calls: CallRecord[] = [];
  sharedCalls: readonly CallRecord[] = [];
  #lookUps: Map<string, number> | undefined;
  readonly #options: ContextOptions;
  readonly #urgency: Urgency;
  readonly #incoming: Incoming;
  readonly #token: string | undefined;
  #owner: Owner | undefined;
  #items = 0;
  #reading: LogReading | undefined;
  #deadline: number;
  #prefetched: readonly PrefetchList[] = [];
  #arrivals: Promise<unknown> | undefined;
  #identified: MaybePromise<Caller> | undefined;
  #caller: Caller | undefined;
  #session: Session | undefined;

  constructor(incoming: Incoming, urgency: Urgency, options: ContextOptions) {
    this.#urgency = urgency;
    this.requestId = incoming.requestId;
    this.apiKey = incoming.apiKey;
    this.lastEventId = incoming.lastEventId;
    this.startsNow = incoming.startsNow === true;
    this.#options = options;
    this.#incoming = incoming;
    this.#token = tokenOf(incoming.authorization);
    this.#deadline = this.#newDeadline();
  }

  get logger(): Logger {
    return this.#options.logger;
  }

  get events(): EventReads {
    const { customerId } = this.caller;
    return customerId === undefined ? this.#options.events : sealedReads(this.#options.events, customerId);
  }

  get reading(): LogReading {
    this.#reading ??= new LogReading({
      turn: () => this.#options.turns.turn(this.#urgency, this.#lane),
      deadline: () => this.#deadline,
      signal: this.signal,
    });
    return this.#reading;
  }

  /** In which it takes turns. */
  get #lane(): string {
    const known = this.#token === undefined ? undefined : this.#options.callerKeys.find(this.#token);
    return known?.lane ?? laneOfAddress(this.address);
  }

  get receiptOwner(): ReceiptOwner {
    return this.#options.receiptOwner;
  }

  get money(): Money {
    return this.#options.money;
  }

  get ingress(): IngressAddresses {
    return this.#options.ingress;
  }

  get utcOffset(): string {
    return this.#options.utcOffset;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  get servesBootstrap(): boolean {
    return this.#options.auth.servesBootstrap;
  }

  get refusedKeys(): RefusedKeys {
    return this.#options.refusedKeys;
  }

  get address(): string | undefined {
    return this.#incoming.addressOf?.();
  }

  openStream(kept: Kept): StreamRefusal | undefined {
    return this.#incoming.openStream?.(streamOwner(this.caller), kept);
  }

  get polls(): Polls {
    return this.#options.polls;
  }

  get deadline(): number {
    return this.#deadline;
  }

  get owner(): Owner {
    // A credential counts once it has been verified: a stranger could make up as many as it likes.
    this.#owner ??= this.#token === undefined ? undefined : this.#options.callerKeys.find(this.#token)?.owner;
    return this.#owner ?? ownerOfAddress(this.address);
  }

  get credential(): string {
    const { authorization = '', apiKey } = this.#incoming;
    return apiKey === undefined ? authorization : `${authorization} ${apiKey}`;
  }

  get requestedBy(): string {
    const { subject } = this.caller;
    if (subject !== undefined && subject.length <= MAX_SUBJECT) return subject;
    return `sha256:${hash('sha256', subject ?? this.#token ?? '', 'base64url')}`;
  }

  get waiters(): Waiters | undefined {
    return this.#incoming.waiters;
  }

  get signal(): AbortSignal {
    return this.waiters?.signal ?? new AbortController().signal;
  }

  get endsWithSocket(): boolean {
    return this.#incoming.closeSocket !== undefined;
  }

  identify(again = false): MaybePromise<Caller> {
    if (again) this.#identified = undefined;
    this.#identified ??= this.#incoming.caller ?? this.#ask(again);
    if (this.#identified instanceof Promise) return this.#identified.then((caller) => this.#know(caller));
    return this.#know(this.#identified);
  }

  #know(caller: Caller): Caller {
    this.#caller = caller;
    if (this.#owner === undefined) {
      // Without a token it is a stream of several callers who may see the same.
      this.#owner =
        this.#token === undefined
          ? ownerOf(caller, '')
          : this.#options.callerKeys.note(this.#token, caller).owner;
    }
    return caller;
  }

  async untilExpiry(until: AbortSignal): Promise<Error | undefined> {
    const again = () => {
      this.#deadline = this.#newDeadline();
      return this.#ask(true);
    };
    return untilExpiry(await this.identify(), again, this.clock, until);
  }

  get isIdentified(): boolean {
    return this.#caller !== undefined;
  }

  get caller(): Caller {
    if (this.#caller === undefined) throw new Error('The caller is used before it is identified.');
    return this.#caller;
  }

  get session(): Session {
    const { clientId, customerId } = this.caller;
    if (this.#session === undefined) {
      const { auth } = this.#options;
      const signal = this.waiters?.signal;
      const authorize = auth.authorize(this.#token ?? '');
      const rest = this.#rest(clientId, authorize, {
        signal,
        coalesce: (call, asker, read) => this.#read(call, asker, read),
      });
      // What a payment has to read first waits in nobody's queue of reads, and is what the service says now.
      const beforePayments = () =>
        this.#rest(clientId, authorize, { signal, over: 'money', urgency: 'money' });
      this.#session = createSession(rest, beforePayments, customerId, this.#options);
      // Relations that the caller may not follow read nothing.
      const mayRead = this.caller.scopes.has('graph:read');
      if (mayRead && this.#prefetched.length > 0) this.#arrivals = this.#session.prefetch(this.#prefetched);
    }
    return this.#session;
  }

  prefetch(lists: readonly PrefetchList[]): void {
    this.#prefetched = lists;
  }

  get prefetched(): Promise<unknown> | undefined {
    return this.#arrivals;
  }

  renewSession(): void {
    try {
      assertHolds(this.caller, this.clock.now());
    } catch (error) {
      this.#incoming.closeSocket?.();
      throw error;
    }
    this.#options.onInvalidate(this.credential);
    this.recount();
    this.#deadline = this.#newDeadline();
    this.endSession();
  }

  endSession(): void {
    this.#session = undefined;
    this.#arrivals = undefined;
    if (this.calls.length > 0) this.calls = [];
    this.#lookUps = undefined;
  }

  forgetReads(): void {
    this.#options.onInvalidate(this.credential);
    this.#options.lists.doubt(this.caller.clientId);
    this.#lookUps = new Map(this.lookUps());
    this.#session = undefined;
  }

  get showsCalls(): boolean {
    // Where the gateway holds the credentials, who is not identified may be a caller narrowed to a customer.
    return this.#caller === undefined ? this.servesBootstrap : this.#caller.customerId === undefined;
  }

  shareCalls(calls: readonly CallRecord[]): void {
    this.sharedCalls = calls;
  }

  countItems(count: number): number {
    this.#items += count;
    return this.#items;
  }

  recount(): void {
    this.#items = 0;
    this.#reading = undefined;
  }

  get maxItems(): number {
    return this.#options.maxItems;
  }

  lookUps(): ReadonlyMap<string, number> {
    const sum = new Map(this.#lookUps ?? []);
    for (const [route, count] of this.#session?.lookUps() ?? [])
      sum.set(route, (sum.get(route) ?? 0) + count);
    return sum;
  }

  bootstrapRest(key: string, clientId: string): Rest {
    const signal = this.waiters?.signal;
    const rest = this.#rest(clientId, fixedCredential({ 'x-api-key': key }), { signal, over: 'probes' });
    return guessing(rest, this.#options.keyGuesses, laneOfAddress(this.address));
  }

  #ask(fresh: boolean): MaybePromise<Caller> {
    if (this.#token === undefined) {
      return Promise.reject(
        new UnauthenticatedError(
          this.#incoming.authorization === undefined
            ? 'An access token is needed: Authorization: Bearer <token>; over WebSocket, connectionParams.authorization.'
            : 'Authorization must have the form: Bearer <token>.',
        ),
      );
    }
    const restFor = (clientId: string, authorize: Authorize) =>
      this.#rest(clientId, authorize, { over: 'probes' });
    const { auth, callerKeys } = this.#options;
    const asker = {
      owner: this.owner,
      urgency: this.#urgency,
      deadline: this.#deadline,
      signal: this.waiters?.signal,
    };
    const isKnown = callerKeys.find(this.#token) !== undefined;
    return auth.identify(
      this.#token,
      restFor,
      fresh,
      asker,
      isKnown ? undefined : laneOfAddress(this.address),
    );
  }

  /** A read that another operation of the same caller has begun serves this one too. */
  #read(
    call: Pick<CallRecord, 'route' | 'path'>,
    asker: Asker,
    read: (party: Party) => Promise<unknown>,
  ): Promise<unknown> {
    const start = clock.monotonic();
    const { auth, reads, listsMaxAgeMs } = this.#options;
    const joined = () => {
      const milliseconds = clock.monotonic() - start;
      this.sharedCalls = [
        ...this.sharedCalls,
        { method: 'GET', ...call, status: 200, milliseconds, startedAt: start, cached: false },
      ];
    };
    // Where all callers are one to the service, each sees its part of a list that was read a moment ago for another.
    const keptMs = auth.sharesIdentity && CLIENT_LISTS.has(call.route) ? listsMaxAgeMs : 0;
    const caller = auth.upstreamIdentity(this.credential);
    return reads.read({ caller, path: call.path, asker, read, joined, keptMs });
  }

  #rest(
    clientId: string,
    authorize: Authorize,
    { signal, coalesce, over, urgency = this.#urgency }: RestWays,
  ): Rest {
    return createRest({
      http: this.#options.http,
      clientId,
      owner: this.owner,
      authorize,
      headers: { 'x-request-id': this.requestId, accept: 'application/json' },
      timeoutMs: this.#options.upstreamTimeoutMs,
      deadline: this.#deadline,
      over,
      urgency,
      ...(signal === undefined ? {} : { signal }),
      ...(coalesce === undefined ? {} : { coalesce }),
      onCall: (call) => {
        this.calls.push(call);
        if (!call.cached) this.#options.onCall(call);
      },
      onDetachedCall: this.#options.onCall,
    });
  }

  #newDeadline(): number {
    return clock.now() + this.#options.operationTimeoutMs;
  }
}
