import type { Authenticator } from '../auth/authenticator.ts';
import { type Guesses, guessing } from '../auth/guesses.ts';
import { clock } from '../common/clock.ts';
import type { Party } from '../common/party.ts';
import type { EventLog } from '../events/log.ts';
import { type EventReads, sealedReads } from '../events/sealed-reads.ts';
import type { Coalescer, JoinedRead, ReadAnswer } from '../upstream/call/coalesce.ts';
import { fixedCredential } from '../upstream/call/credential.ts';
import type { Rest, SharedGet } from '../upstream/call/rest.ts';
import type { Asker } from '../upstream/call/shared-work.ts';
import type { ClientLists } from '../upstream/lists/client-lists.ts';
import {
  type BankCache,
  CLIENT_LISTS,
  createSession,
  type PrefetchList,
  type Session,
} from '../upstream/session/session.ts';
import type { Budget } from './budget.ts';
import { addressKey } from './caller-keys.ts';
import type { Calls, RestWays } from './calls.ts';
import type { Identity } from './identity.ts';
import type { Report } from './report.ts';

export interface ReadsOptions {
  readonly auth: Authenticator;
  readonly banks: BankCache;
  readonly lists: ClientLists;
  readonly listsMaxAgeMs: number;
  /** Offset of upstream timestamps that carry none, such as `-06:00`. */
  readonly utcOffset: string;
  readonly events: EventLog;
  /** Undefined where no operation shares the reads of another. */
  readonly reads: Coalescer | undefined;
  readonly keyGuesses: Guesses;
  /** Called with a caller's credential and upstream identity when it has changed something, and before it is told of an event. */
  readonly onInvalidate: (credential: string, upstreamIdentity: string) => void;
}

/** How long a page that is there waits for the lists prefetched, in milliseconds: to have them saves less than that. */
const AHEAD_MS = 10;

/** What the caller of one operation may read, and what the operation has read. */
export class Reads {
  readonly #options: ReadsOptions;
  readonly #identity: Identity;
  readonly #budget: Budget;
  readonly #report: Report;
  readonly #calls: Calls;
  #wanted: readonly PrefetchList[] = [];
  #arrivals: Promise<unknown> | undefined;
  #session: Session | undefined;

  constructor(options: ReadsOptions, identity: Identity, budget: Budget, report: Report, calls: Calls) {
    this.#options = options;
    this.#identity = identity;
    this.#budget = budget;
    this.#report = report;
    this.#calls = calls;
  }

  /** The caller's view of the REST service, with the loaders of this operation. Throws where nobody is identified. */
  get session(): Session {
    const { caller } = this.#identity;
    if (this.#session === undefined) {
      this.#session = this.#begin();
      this.#report.count(this.#session);
      // Relations that the caller may not follow read nothing.
      const mayRead = caller.scopes.has('graph:read');
      if (mayRead && this.#wanted.length > 0) this.#prefetch(this.#session);
    }
    return this.#session;
  }

  /** The log as the caller may read it. Throws where nobody is identified. */
  get events(): EventReads {
    const { customerId } = this.#identity.caller;
    return customerId === undefined ? this.#options.events : sealedReads(this.#options.events, customerId);
  }

  /** Names lists that the operation is going to need, before anything is read: they are read beside its first call. */
  prefetch(lists: readonly PrefetchList[]): void {
    this.#wanted = lists;
  }

  /**
   * Resolves once the lists prefetched have arrived, or failed: look-ups in them need no promise then. It resolves after
   * {@link AHEAD_MS} at the latest, as no row may need a list that does not come. Undefined where none is on its way.
   */
  get prefetched(): Promise<unknown> | undefined {
    const arrivals = this.#arrivals;
    if (arrivals === undefined) return undefined;
    return new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, AHEAD_MS);
      void arrivals.then(() => {
        clock.clearTimeout(timer);
        resolve();
      });
    });
  }

  /** REST calls under the caller's own `x-api-key`, for a client that it names (docs/upstream-api.md, "Authentication"). */
  underKey(key: string, clientId: string): Rest {
    const { requester, address } = this.#identity;
    const leaver = this.#budget.waiters;
    const authorize = fixedCredential({ 'x-api-key': key });
    const rest = this.#calls.rest(clientId, requester, authorize, { leaver, over: 'probes' });
    return guessing(rest, this.#options.keyGuesses, addressKey(address));
  }

  /**
   * Drops what the loaders remember, and gives the calls to come a deadline of their own: before each event of a stream.
   *
   * @throws UnauthenticatedError when the caller's credential has ended meanwhile: nothing is delivered any more.
   */
  renew(): void {
    this.#identity.assertHolds();
    this.#options.onInvalidate(this.#identity.credential, this.#identity.upstreamIdentity);
    this.#budget.recount();
    this.#budget.extend();
    this.end();
  }

  /** The caller is told of a change: what it asks from now on is read afresh. What the loaders remember stays. */
  noteTold(): void {
    this.#options.onInvalidate(this.#identity.credential, this.#identity.upstreamIdentity);
  }

  /** Lets go of what the loaders remember: nothing is left to do until the next event. */
  end(): void {
    this.#session = undefined;
    this.#report.clear();
  }

  /** Notes that an event names an item of a list: an index that lacks it is not believed any longer. */
  noteItem(route: string, key: string, value: string): void {
    this.#options.lists.noteItem(this.#identity.caller.clientId, route, key, value);
  }

  /** Drops what the loaders remember in the midst of an operation: after a call that has changed something. */
  forget(): void {
    this.#options.onInvalidate(this.#identity.credential, this.#identity.upstreamIdentity);
    this.#session = undefined;
  }

  /** Does the same after a call that may have opened an account: what is known of the client's lists may lack it. */
  forgetLists(): void {
    this.forget();
    this.#options.lists.markChanged(this.#identity.caller.clientId);
  }

  #prefetch(session: Session): void {
    const arrivals = session.prefetch(this.#wanted).then(() => {
      if (this.#arrivals === arrivals) this.#arrivals = undefined;
    });
    this.#arrivals = arrivals;
  }

  #begin(): Session {
    const { caller, requester, authorize, upstreamIdentity: identity } = this.#identity;
    const { clientId, customerId } = caller;
    const leaver = this.#budget.waiters;
    const { reads } = this.#options;
    const coalesce: RestWays['coalesce'] =
      reads && ((call, asker, read) => this.#read(reads, call, asker, read));
    const rest = this.#calls.rest(clientId, requester, authorize, { identity, leaver, coalesce });
    // What a payment has to read first waits in nobody's queue of reads, and is what the service says now.
    const beforePayments = () =>
      this.#calls.rest(clientId, requester, authorize, { leaver, over: 'money', urgency: 'money' });
    return createSession(rest, beforePayments, customerId, this.#options);
  }

  /** A read that another operation of the same caller has begun serves this one too. */
  #read(
    reads: Coalescer,
    { isFresh, ...call }: SharedGet,
    asker: Asker,
    read: (party: Party) => Promise<ReadAnswer>,
  ): Promise<ReadAnswer> {
    const { auth, listsMaxAgeMs } = this.#options;
    const joined = ({ startedAt, milliseconds, waits, isKept: cached }: JoinedRead) => {
      const { queuedMs, unreadMs } = waits;
      this.#report.addShared({
        method: 'GET',
        ...call,
        status: 200,
        milliseconds: milliseconds - queuedMs - unreadMs,
        startedAt: startedAt + queuedMs,
        ...waits,
        cached,
        identifies: false,
      });
    };
    // Where all callers are one to the service, each sees its part of a list that was read a moment ago for another.
    const keptMs = auth.sharesIdentity && CLIENT_LISTS.has(call.route) ? listsMaxAgeMs : 0;
    const caller = this.#identity.upstreamIdentity;
    return reads.read({ caller, path: call.path, asker, read, joined, keptMs, isFresh });
  }
}
