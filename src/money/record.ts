import type { isRepeatable, MoneyMutation, RecordName } from './intent.ts';
import type { JournalStore } from './journal/store.ts';
import type { ReadingStore } from './reconciling/reading-store.ts';
import type { OrderSummary, Sent, SentDetails, StoredAnswer } from './record-parts.ts';
import type { OpenRecords } from './settling/open-records.ts';

export type { OrderSummary, Sent, StoredAnswer } from './record-parts.ts';

/** How long a record is kept after it was last written, in ms: 30 days. */
export const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;

/** A record as it is read, without taking its key. Times are in ms since the epoch, by the clock of the store. */
export interface PaymentRecord {
  /** {@link RecordName.hash} of it. */
  readonly hash: string;
  /** As in {@link Claim}; null in a record of a version before. */
  readonly keyOwner: string | null;
  /** Null in a record of a version before, whose caller has not come back since. */
  readonly asked: OrderSummary | null;
  readonly state: 'claimed' | 'sent' | 'answered';
  /** Whether a call holds the key now. */
  readonly isHeld: boolean;
  readonly createdAt: number;
  /** Null where nothing has left. */
  readonly sent: Pick<Sent, 'sentAt' | 'ageMs'> | null;
  /** What has left, until it is settled; null before and after. */
  readonly body: string | null;
  /** When it was done or refused; null before, and in a record of a version before. */
  readonly settledAt: number | null;
  readonly attempts: number;
  /** Null until it is answered. */
  readonly answer: StoredAnswer | null;
  /** As in {@link SentDetails}; null once it is settled. */
  readonly original: string | null;
  /** What the gateway has seen of it while it looked by itself (open-payment.ts); null where it has not looked. */
  readonly seen?: string | null;
}

/** Where a payment stands among the others of its client. */
export interface PaymentPosition {
  readonly createdAt: number;
  readonly hash: string;
}

/** `open` is all that is neither done nor refused. */
export const PAYMENT_CLASSES = ['open', 'done', 'refused'] as const;
export type PaymentClass = (typeof PAYMENT_CLASSES)[number];

/** Which payments are looked for. */
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
  /** Only what is older than this, or newer where `isBack`. */
  readonly beyond: PaymentPosition | undefined;
  /** The oldest first, instead of the newest. */
  readonly isBack: boolean;
  readonly limit: number;
}

/** What a search has come upon. */
export interface PaymentsFound {
  readonly records: readonly PaymentRecord[];
  /** Where to look on; undefined where nothing is left. */
  readonly next: PaymentPosition | undefined;
}

export interface Claim {
  /** What is asked for. A record of a version before, which does not have it, is given it. */
  readonly asked: OrderSummary;
  /** Of the request that asks for it, for the journal; undefined where nobody asks. */
  readonly requestId?: string | undefined;
  /** Names one call of one process. */
  readonly owner: string;
  /** The hash of mutation and input. */
  readonly inputHash: string;
  /** How long the key is the caller's, in ms from now. */
  readonly leaseMs: number;
  /** Whose the key is: `ownerDigest` of the intent. */
  readonly keyOwner: string;
  /** `twinOf` the intent: where a customer's intent is found by callers that act for the whole client. */
  readonly twin: string;
  /** Whether it is a customer's, and is to be found there; else the claim looks there before it takes a key afresh. */
  readonly isCustomers: boolean;
}

/**
 * What a claim found.
 *
 * - `claimed`: the key is the caller's, and nothing has left under it.
 * - `sent`: an earlier call may have sent this. The key is now the caller's where the same may be sent again ({@link isRepeatable}). Any
 *   other payment stays with the earlier call, which may still release it.
 * - `busy`: another call holds the key, and its lease runs.
 * - `answered`: the intent is settled.
 * - `other-input`: the key names another intent.
 * - `not-yours`: somebody else of the same client or customer uses this key under this name. Records of versions before, which
 *   name nobody, are everybody's.
 * - `customers`: a customer of the client has sent the same under the same key. Its answer; undefined where none is known.
 */
export type Claimed =
  | { readonly state: 'claimed' }
  | ({ readonly state: 'sent' } & Sent)
  | { readonly state: 'busy' }
  | { readonly state: 'answered'; readonly answer: StoredAnswer }
  | { readonly state: 'other-input' }
  | { readonly state: 'not-yours' }
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
 * - A record that is `sent` never goes back to `claimed`. It vanishes only by `release` of its own owner.
 * - The first `done` or `refused` stays. Any process that learns it may write it, also after its lease was taken over: an answer is a fact about
 *   the intent, not about who holds it.
 * - Every step may be repeated with the same arguments: it does nothing the second time.
 *
 * Not guaranteed:
 * - That a lease excludes. A process that stalls past its lease is taken over while it still runs. What each does then is
 *   decided by the outcome table, not by the lease: the lease only spares work and answers sooner.
 * - Anything of clocks but that of the store, which gives every time: callers may disagree on theirs. Where the clock of Redis
 *   leaps, leases end early or late, and an age is wrong by as much. The embedded store keeps a clock that does not leap
 *   (sqlite-record.ts says for what).
 * - That a step which failed has not happened: the store may have done it and lost the reply.
 * - Anything once the store lost acknowledged writes: a Redis without `appendfsync always`, one that was flushed or put back
 *   to an earlier copy, or a failover to a replica that had been taken for lost (docs/operations.md says when that is).
 *
 * Every other method rejects with {@link RecordsUnavailableError}, and with nothing else, when the store cannot be reached or
 * written.
 */
export interface MoneyRecords extends OpenRecords {
  /** Takes the key when it is free, or when its holder's lease has ended. Otherwise tells what is there. */
  claim(name: RecordName, claim: Claim): Promise<Claimed>;
  /**
   * Notes that the request is about to leave. Nothing may be sent before this has resolved with true.
   * False: the key is no longer the owner's, and nothing may be sent.
   *
   * @param body the very text that will be handed to the network
   * @throws {PaymentsHeldError} while payments are held: nothing may be sent.
   */
  markSent(name: RecordName, owner: string, body: string, details?: SentDetails): Promise<boolean>;
  /** Lets the owner's lease end in so many ms from now; 0 gives the key to the next call. */
  renew(name: RecordName, owner: string, leaseMs: number): Promise<void>;
  /**
   * Settles the intent, unless it is settled. `inputHash` as in the claim.
   *
   * @param transactionId of what was done; undefined for anything else
   * @param code what it was refused with, for the journal
   * @returns false where the transaction is known as another payment's, one of the last two days at least: nothing was written.
   */
  answer(
    name: RecordName,
    inputHash: string,
    answer: StoredAnswer,
    transactionId?: string,
    code?: string,
  ): Promise<boolean>;
  /**
   * Counts that the same is sent once more. It need not outlive the store.
   *
   * @param requestId of the request for which it is; undefined where nobody asks
   */
  sentAgain(name: RecordName, requestId?: string): Promise<void>;
  /** The record of this name, without taking its key; undefined where there is none. */
  read(name: RecordName): Promise<PaymentRecord | undefined>;
  /** The record whose payment this transaction is; undefined where there is none. */
  readByTransaction(clientId: string, transactionId: string): Promise<PaymentRecord | undefined>;
  /** Records that were sent, by when they were asked for, and among those of one time by their hashes. Found by index. */
  search(search: PaymentSearch): Promise<PaymentsFound>;
  /** The clients whose payments this store is known to hold. */
  clients(): Promise<readonly string[]>;
  /** What happened, line by line. Each method above that changes a record adds its line in the same step. */
  readonly journal: JournalStore;
  /** What was read of the balances of accounts, to be compared with what has moved. */
  readonly readings: ReadingStore;
  /** 32 random bytes that this store keeps for a client, made when they are asked for first. */
  idKey(clientId: string): Promise<Buffer>;
  /**
   * Forgets the key, when it is still the owner's: it knows that nothing moved. Compare and delete, so that a release
   * that comes late never frees what somebody else has taken over.
   *
   * @returns whether nothing is recorded under the key now; false where somebody else has it, or it is answered.
   */
  release(name: RecordName, owner: string): Promise<boolean>;
  /** Whether a request could be noted as sent now, as far as is known. Never fails. */
  isAvailable(): Promise<boolean>;
  /** Since when payments are held; undefined when they are not. Rejects when that cannot be read. */
  held(): Promise<Hold | undefined>;
  /**
   * Holds payments: nothing is sent, and nothing sent again, until {@link resume}. An operator has decided that. Rejects also where
   * it is done, but a failover may forget it.
   */
  holdPayments(): Promise<void>;
  /** Lets payments go on, whatever is missing. An operator has decided that. */
  resume(): Promise<void>;
  /** Closes the store. */
  stop(): Promise<void>;
}

/**
 * Why payments are held.
 *
 * - `put-back`: the store has been put back to an earlier state, and would let payments that it has forgotten be made again.
 *   What was sent, and is known, may be sent again.
 * - `stopped`: an operator has stopped all payments, by a command.
 * - `off`: likewise, by the configuration of this process.
 */
type HoldReason = 'put-back' | 'stopped' | 'off';

/** Payments are held. */
export interface Hold {
  /** The gravest reason: `put-back` before the others. */
  readonly why: HoldReason;
  /** Ms since the epoch, by the clock of the store. */
  readonly since: number;
  /** How many payments at least are known to be missing; 0 where that is not known. */
  readonly missing: number;
}

/** The store could not be reached or written. Before `markSent` that means: no call was made, and nothing moved by it. */
export class RecordsUnavailableError extends Error {
  readonly code = 'STORE_UNAVAILABLE';
  /** Whether it is certain that the step was not done. */
  readonly isUndone: boolean;

  constructor(step: string, cause: unknown, isUndone = false) {
    super(`The record of payments could not be reached (${step}).`, { cause });
    this.name = 'RecordsUnavailableError';
    this.isUndone = isUndone;
  }
}

/** Nothing was sent, and nothing will be until an operator says so. */
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
