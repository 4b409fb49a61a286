import type { isRepeatable, MoneyMutation, RecordName } from './intent.ts';
import type { JournalStore } from './journal/store.ts';
import type { ReadingStore } from './reconciling/reading-store.ts';
import type { Begun, Claim, OrderSummary, Sent, SentDetails, StoredAnswer } from './record-parts.ts';
import type { OpenRecords } from './settling/open-records.ts';

export type { Begun, Claim, OrderSummary, Sent, StoredAnswer } from './record-parts.ts';

/**
 * For how many days a record is kept after its key was claimed, after its payment was sent first, and after an answer was stored.
 * Repeats, looks and `payments settle` do not prolong that.
 *
 * No variable. Apps rely on it, and a key that is used after that pays again: CONTRIBUTING.md, "How long a record of a payment is kept",
 * has what depends on it, and in which order to change it.
 */
export const RETENTION_DAYS = 30;
/** The same in ms. */
export const RETENTION_MS = RETENTION_DAYS * 24 * 60 * 60 * 1000;

/** A record as it is read, without taking its key. Times are in ms since the epoch, by the clock of the store. */
export interface PaymentRecord {
  /** {@link RecordName.hash} of it. */
  readonly hash: string;
  /** As in {@link Claim}; null in a record of an earlier version. */
  readonly keyOwner: string | null;
  /** Null in a record of an earlier version whose caller has not come back since. */
  readonly asked: OrderSummary | null;
  readonly state: 'claimed' | 'sent' | 'answered';
  /** True if a call holds the key now. */
  readonly isHeld: boolean;
  readonly createdAt: number;
  /** Null if nothing has been sent. */
  readonly sent: Pick<Sent, 'sentAt' | 'ageMs'> | null;
  /** The text that was sent, until the payment is settled; null before and after. */
  readonly body: string | null;
  /** When it became done or refused; null before, and in a record of an earlier version. */
  readonly settledAt: number | null;
  /** 1 once it is recorded as sent, and 1 more for each {@link MoneyRecords.sentAgain}; 0 before. */
  readonly attempts: number;
  /** Null until it is answered. */
  readonly answer: StoredAnswer | null;
  /** As in {@link SentDetails}; null once it is settled. */
  readonly original: string | null;
  /** What the settler saw at its last look (open-payment.ts); null if it has not looked. */
  readonly seen?: string | null;
}

/** The position of a payment among those of its client. */
export interface PaymentPosition {
  readonly createdAt: number;
  readonly hash: string;
}

/** `open` payments are neither done nor refused. */
export const PAYMENT_CLASSES = ['open', 'done', 'refused'] as const;
export type PaymentClass = (typeof PAYMENT_CLASSES)[number];

/** The conditions of a search for payments. */
export interface PaymentSearch {
  readonly clientId: string;
  /** Only this customer's; undefined for all of the client's. */
  readonly customerId: string | undefined;
  readonly operations: readonly MoneyMutation[];
  readonly classes: readonly PaymentClass[];
  /** Only those that were asked for at this time or later, in ms since the epoch. */
  readonly from: number | undefined;
  /** Only those that were asked for before this time. */
  readonly to: number | undefined;
  /** Only payments older than this position, or newer ones if `isBack`. */
  readonly beyond: PaymentPosition | undefined;
  /** True to get the oldest first, instead of the newest. */
  readonly isBack: boolean;
  readonly limit: number;
}

/** The result of a search. */
export interface PaymentsFound {
  readonly records: readonly PaymentRecord[];
  /** Where the search goes on; undefined if nothing is left. */
  readonly next: PaymentPosition | undefined;
}

/**
 * The result of a claim.
 *
 * - `claimed`: the caller holds the key, and nothing has been sent under it.
 * - `sent`: an earlier call may have sent this. If the same may be sent again ({@link isRepeatable}), the caller now holds
 *   the key. Any other payment stays with the earlier call, which may still release it.
 * - `busy`: another call holds the key, and its lease has not ended.
 * - `answered`: the intent is settled.
 * - `other-input`: something was sent under the key for another input, or a call that holds the key is about to send it.
 * - `not-yours`: the record of this owner has, or will have, the other name: another owner of the same client or customer uses this
 *   one, or this owner has used the other one before. Records of earlier versions, which name no owner, belong to everybody.
 * - `customers`: a customer of the client has sent the same under the same key. Has its answer; undefined if none is known.
 * - `passed-over`: a customer's claim had let its lease end before it sent anything, a call for the whole client then found it, and may
 *   have paid the same.
 */
export type Claimed =
  | { readonly state: 'claimed' }
  | ({ readonly state: 'sent' } & Sent)
  | { readonly state: 'busy' }
  | { readonly state: 'answered'; readonly answer: StoredAnswer }
  | { readonly state: 'other-input' }
  | { readonly state: 'not-yours' }
  | { readonly state: 'passed-over' }
  | { readonly state: 'customers'; readonly answer: StoredAnswer | undefined };

/**
 * The record of each intent to pay: `claimed` → `sent` → `answered`.
 *
 * Guaranteed, across all processes on one store:
 * - Of all callers of `claim` on a fresh name, one gets `claimed`; and between a `claim` and the `markSent` of its owner
 *   nobody else's `markSent` succeeds. So one call alone sends first.
 * - Once `markSent` has resolved with true, every later `claim` learns of it, with the body, until it is answered or
 *   released, also after the death of every process and of the store's own. Where Redis has replicas, each that could be
 *   promoted has it too.
 * - A claim for the whole client takes a new key only if no customer's same payment may have moved, whichever of them made it. In the
 *   same step it takes customers' claims whose lease has ended from their calls: their `markSent` fails, and their next claim gets
 *   `passed-over` while the client's payment may have moved.
 * - A record that is `sent` never goes back to `claimed`. It vanishes only by `release` of its own owner.
 * - The first `done` or `refused` stays. Any process that learns it may write it, also after its lease was taken over: an answer is a fact about
 *   the intent, not about who holds it. The exception is one that says so only as the answer to a first request (`onlyOf`).
 * - Every step may be repeated with the same arguments: it does nothing the second time.
 *
 * Not guaranteed:
 * - That a lease excludes. A process that stalls past its lease is taken over while it still runs. What each does then is
 *   decided by the record and the outcome table: `markSent` refuses whoever lost its claim. The lease spares work and answers sooner.
 * - That times are right where the clock of Redis leaps. The store gives every time, so the clocks of its callers may disagree. Where
 *   the store's own leaps, leases end early or late, and an age is wrong by as much. The embedded store keeps a clock that does not
 *   leap (sqlite-record.ts says for what).
 * - That a step which failed has not happened: the store may have done it and lost the reply.
 * - Anything once the store lost acknowledged writes: a Redis without `appendfsync always`, one that was flushed or put back
 *   to an earlier copy, a key that was evicted, or a failover to a replica that had been taken for lost (docs/redis.md says when that is).
 *
 * Every other method rejects with {@link RecordsUnavailableError}, and with nothing else, when the store cannot be reached or
 * written.
 */
export interface MoneyRecords extends OpenRecords {
  /** Takes the key if it is free, or if its holder's lease has ended. Otherwise returns what is recorded under it. */
  claim(name: RecordName, claim: Claim): Promise<Claimed>;
  /**
   * Records that the request is about to be sent. Nothing may be sent before this has resolved with true. If it resolves with
   * false, the owner no longer holds the key, and nothing may be sent.
   *
   * @param body the exact text that will be handed to the network
   * @throws {PaymentsHeldError} while payments are held: nothing may be sent.
   * @throws {OtherRefundError} if another record has a refund of the same credit that may have moved: nothing may be sent.
   */
  markSent(name: RecordName, owner: string, body: string, details?: SentDetails): Promise<boolean>;
  /** Makes the owner's lease end in `leaseMs` from now; 0 gives the key to the next call. */
  renew(name: RecordName, owner: string, leaseMs: number): Promise<void>;
  /**
   * Settles the intent, unless it is settled already. `inputHash` is that of the claim.
   *
   * @param transactionId of a payment that is done; undefined otherwise
   * @param code of a refusal, for the journal
   * @param begun what a call has claimed by. Another call may have released the record since, or the store has lost it: it is begun
   *   again then, so that the answer is the owner's and no stranger's. Without it such a record says nothing of its order and its owner.
   * @returns false if nothing was written: the transaction is known as another payment's, of the last two days at least; or the answer is
   *   {@link StoredAnswer.onlyOf} a call from which another has taken the payment over, or somebody has settled it otherwise.
   */
  answer(
    name: RecordName,
    inputHash: string,
    answer: StoredAnswer,
    transactionId?: string,
    code?: string,
    begun?: Begun,
  ): Promise<boolean>;
  /**
   * Counts that the same request is sent once more. The count need not survive a loss of the store.
   *
   * @param requestId of the request that sends it; undefined if there is none
   */
  sentAgain(name: RecordName, requestId?: string): Promise<void>;
  /** Returns the record of this name, without taking its key; undefined if there is none. */
  read(name: RecordName): Promise<PaymentRecord | undefined>;
  /** Returns, for each of these transactions, the record of the payment that became it; undefined if there is none. */
  readByTransactions(
    clientId: string,
    transactionIds: readonly string[],
  ): Promise<readonly (PaymentRecord | undefined)[]>;
  /**
   * Resolves if the store, from which a client's records were read before, is the one that is written. Rejects where it may have been
   * replaced by a failover: what was not found in it may be in the other.
   */
  confirmReads(clientId: string): Promise<void>;
  /** Returns what is known of a refund of this credit that is recorded; undefined where none is, or the service has refused it. */
  refundOf(clientId: string, credit: string): Promise<'done' | 'open' | undefined>;
  /**
   * Returns records that were sent, ordered by when they were asked for, and those of one time by their hashes. Uses an
   * index.
   */
  search(search: PaymentSearch): Promise<PaymentsFound>;
  /** Returns the clients whose payments this store is known to hold. */
  clients(): Promise<readonly string[]>;
  /** The journal. Each method above that changes a record adds its line in the same step. */
  readonly journal: JournalStore;
  /** The readings of account balances, for the comparison with what has moved. */
  readonly readings: ReadingStore;
  /** Returns 32 random bytes that this store keeps for a client. They are made when they are first asked for. */
  idKey(clientId: string): Promise<Buffer>;
  /**
   * Deletes the record if the owner still holds the key: the owner knows that nothing moved. Compares and deletes in one
   * step, so that a late release never frees a key that another call has taken over.
   *
   * @returns true if nothing is recorded under the key now; false if another call holds it, or it is answered.
   */
  release(name: RecordName, owner: string): Promise<boolean>;
  /** Resolves with true if a request could be recorded as sent now, as far as is known. Never fails. */
  isAvailable(): Promise<boolean>;
  /**
   * Why it was not available when that was asked last, as a sentence for the operator; undefined where it was. With Redis always undefined:
   * the event log in the same Redis says why.
   */
  problem(): string | undefined;
  /**
   * Resolves with each reason for which payments are held, an operator's first; with none while they are not held. Rejects if
   * that cannot be read.
   */
  held(): Promise<readonly Hold[]>;
  /**
   * Compares what the store counts of a client with what this process knows. Resolves with true if the store was put back to an earlier state;
   * payments are held from then on. Rejects if that cannot be read.
   */
  isPutBack(clientId: string): Promise<boolean>;
  /**
   * Stops payments, because an operator has decided so: nothing is sent, and nothing sent again, until {@link resume}.
   * Rejects also if it is done, but a failover may forget it.
   */
  holdPayments(): Promise<void>;
  /**
   * Lets payments go on, because an operator has decided so.
   *
   * @param isCompared whether the operator has compared what a store that was put back lacks: then they go on however many are missing
   * @throws {PaymentsHeldError} if the store was put back, and that is false: nothing was changed
   */
  resume(isCompared: boolean): Promise<void>;
  /** Closes the store. */
  stop(): Promise<void>;
}

/**
 * Why payments are held.
 *
 * - `put-back`: the store was put back to an earlier state. It would let payments that it has forgotten be made again.
 *   Payments that were sent, and that it knows, may be sent again.
 * - `stopped`: an operator has stopped all payments, by a command.
 * - `off`: the configuration of this process stops them.
 */
type HoldReason = 'put-back' | 'stopped' | 'off';

/** One reason for which payments are held, and since when. */
export interface Hold {
  readonly why: HoldReason;
  /** Ms since the epoch, by the clock of the store. */
  readonly since: number;
  /**
   * How many payments are missing that were counted as sent, as far as the processes know that have compared; 0 if that is not known. Some
   * of them may have moved nothing: a payment that was given back unsent is counted too.
   */
  readonly missing: number;
  /** Of a store that was put back: the time of the newest line that the copy had; undefined if nothing says it. Payments since may be missing. */
  readonly copied: number | undefined;
  /** True of what a command alone has found, by the counts in its folder: no gateway holds payments for it yet, and `since` is now. */
  readonly isUnnoted?: boolean;
}

/**
 * The store could not be reached or written. Thrown by `markSent` or before it, it means that no request was sent and nothing
 * moved.
 */
export class RecordsUnavailableError extends Error {
  readonly code = 'STORE_UNAVAILABLE';
  /** True if it is certain that the step was not done. */
  readonly isUndone: boolean;

  constructor(step: string, cause: unknown, isUndone = false) {
    super(`The record of payments could not be reached (${step}).`, { cause });
    this.name = 'RecordsUnavailableError';
    this.isUndone = isUndone;
  }
}

/** Payments are held: nothing was sent, and nothing will be until an operator lets them go on. */
export class PaymentsHeldError extends RecordsUnavailableError {
  readonly why: HoldReason;

  constructor(why: HoldReason) {
    super('sent', undefined, true);
    this.message =
      why === 'put-back'
        ? 'Payments are held: their record has been put back to an earlier state.'
        : 'Payments are held: an operator has stopped them.';
    this.name = 'PaymentsHeldError';
    this.why = why;
  }
}
