import type { RecordName } from '../intent.ts';
import type { OrderSummary, Sent, SentDetails, StoredAnswer } from '../record-parts.ts';

/** How long after the sending a payment without an answer is due for the first time, in ms. Most calls have ended by then. */
export const FIRST_DUE_MS = 5_000;

/**
 * How long evidence is looked for after the sending, in ms, and then until a look has read all that may be it. It may come
 * late: webhooks are delivered again, and receipts take three hours.
 *
 * No variable. Whoever raises it keeps KEPT_MS (named-transactions) and TAKEN_MS (evidence) a day longer than it, raises MOST_IDS
 * (sightings) in proportion, and mends what `grep -rn '48 h\|two days' src docs deploy *.md` finds, but for the two days of DAYS_OF_ANSWERS.
 */
export const LOOKED_FOR_MS = 48 * 60 * 60_000;

/** A payment that was sent, and is neither done nor refused. */
export interface OpenPayment extends Sent, SentDetails {
  readonly name: RecordName;
  readonly asked: OrderSummary;
  readonly inputHash: string;
  /**
   * The key by which the upstream recognises a repeat. Null if the request must not be sent again without its caller: the
   * upstream has no key for it, the record was put back since, or an earlier version sent it.
   */
  readonly upstreamKey: string | null;
  /** False if the record was put back since it was sent, and no operator has hastened it since. */
  readonly isCurrent: boolean;
  /** The answer because of which nothing may be sent under its key any more; null if it may. */
  readonly closed: StoredAnswer | null;
  /** How often it was taken before. */
  readonly tries: number;
  /** As in `Claim`; null in a record of an earlier version. */
  readonly keyOwner: string | null;
  /** As in `Claim`; null for a payment of the whole client, and in a record of an earlier version. */
  readonly twin: string | null;
}

/** A payment that was taken. `tries` tells this taking from a later one. */
export type TakenPayment = Pick<OpenPayment, 'name' | 'tries'>;

/**
 * Finds open payments for the settler, by when each is due to be looked at again. A payment is due from soon after it was
 * sent until it is settled, or is put off for ever.
 *
 * Guaranteed: of all processes that take a payment, one gets it, and no other until its lease has ended or it is put off. A
 * payment that a call holds is not given. Not guaranteed, as with every lease: that it excludes. It spares work; the outcome
 * table decides.
 *
 * Every method rejects with `RecordsUnavailableError`, and with nothing else, when the store cannot be reached or written.
 */
export interface OpenRecords {
  /** Returns payments that are due, the longest due first. Uses an index. */
  due(clientId: string, limit: number): Promise<readonly RecordName[]>;
  /**
   * Takes a payment that is due, for `leaseMs`. If an earlier version has settled it, files it as settled instead.
   *
   * @param isAsked whether its caller has come. What is put off for longer than two leases, or for ever, is then due; not what may still be
   * sent again: what is open under a key, without an answer, and was sent less than `RETRY_WINDOW_MS` ago.
   * @returns undefined if it is not due, is settled, is held by a call, or lacks what is needed.
   */
  takeOpen(
    name: RecordName,
    owner: string,
    leaseMs: number,
    isAsked?: boolean,
  ): Promise<OpenPayment | undefined>;
  /**
   * Gives back a payment of `takeOpen`, unless another process has taken it since.
   *
   * @param dueMs when it is due again, in ms from now; undefined for never
   * @param seen a word for what was seen of it
   */
  putOff(taken: TakenPayment, dueMs: number | undefined, seen: string): Promise<void>;
  /**
   * Makes an open payment due at once, whatever was seen of it, and allows it to be sent again although its record was put
   * back.
   */
  hasten(name: RecordName): Promise<void>;
  /** Updates the index of open payments with what earlier versions have written. */
  tidy(clientId: string): Promise<void>;
}
