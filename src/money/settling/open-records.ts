import type { RecordName } from '../intent.ts';
import type { OrderSummary, Sent, SentDetails, StoredAnswer } from '../record-parts.ts';

/** How long after it was sent a payment without an answer is due for the first time, in ms. Most calls have ended by then. */
export const FIRST_DUE_MS = 5_000;

/** A payment that has left, and is neither done nor refused. */
export interface OpenPayment extends Sent, SentDetails {
  readonly name: RecordName;
  readonly asked: OrderSummary;
  readonly inputHash: string;
  /**
   * By which the upstream knows a repeat. Null where the same must not be sent again without its caller: the upstream has no key for it,
   * the record has been put back since, or a version before has sent it.
   */
  readonly upstreamKey: string | null;
  /** Why nothing may be sent under its key any more; null where that may be. */
  readonly closed: StoredAnswer | null;
  /** How often it has been taken before. */
  readonly tries: number;
}

/** One that was taken: how often before tells it from the same, taken by somebody else. */
export type TakenPayment = Pick<OpenPayment, 'name' | 'tries'>;

/**
 * The payments that are open, as those who settle them without their callers find them: by when each is due to be looked at
 * again. A payment is due from soon after it was sent until it is settled, or is put off for ever.
 *
 * Guaranteed: of all who take one, in all processes, one gets it, and nobody else until its lease has ended or it is put off; none gets what a
 * call holds. Not guaranteed, as with every lease: that it excludes. It spares work; the outcome table decides.
 *
 * Every method rejects with `RecordsUnavailableError`, and with nothing else, when the store cannot be reached or written.
 */
export interface OpenRecords {
  /** Those that are due, the longest due first. Found by index. */
  due(clientId: string, limit: number): Promise<readonly RecordName[]>;
  /**
   * Takes one that is due, for so many ms. What a version before has settled is filed as such instead.
   *
   * @returns undefined where it is not due, settled, held by a call, or tells too little.
   */
  takeOpen(name: RecordName, owner: string, leaseMs: number): Promise<OpenPayment | undefined>;
  /**
   * Gives back what `takeOpen` gave, unless somebody else has taken it since.
   *
   * @param dueMs when it is due again, in ms from now; undefined for never
   * @param seen a word for what was seen of it
   */
  putOff(taken: TakenPayment, dueMs: number | undefined, seen: string): Promise<void>;
  /** Makes an open one due at once, whatever was seen of it, and lets it be sent again though its record was put back. */
  hasten(name: RecordName): Promise<void>;
  /** Brings what these are found by up to date with what versions before have written. */
  tidy(clientId: string): Promise<void>;
}
