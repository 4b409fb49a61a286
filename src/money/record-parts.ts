import type { MoneyMutation } from './intent.ts';

/** How long the refund of a credit is the only one, from its sending on, in ms: as long as an open payment is looked for. */
export const ONLY_REFUND_MS = 48 * 60 * 60_000;

/** What a refund of a credit may have done: it is `done`, or its end is not known. */
export type CreditRefund = 'done' | 'open';

/** Another refund of the credit was sent within {@link ONLY_REFUND_MS}, and is not known to be refused. This one was not sent. */
export class OtherRefundError extends Error {
  constructor() {
    super('Another refund of the credit was sent.');
    this.name = 'OtherRefundError';
  }
}

/**
 * The answer to an intent, which every later call with its key gets.
 *
 * `done` and `refused` are answers of the upstream. `unknown` says that nothing may be sent under this key any more; a `done`
 * or `refused` that comes later replaces it.
 */
export interface StoredAnswer {
  readonly kind: 'done' | 'refused' | 'unknown';
  /** HTTP status and body text of the upstream's answer. */
  readonly status: number;
  readonly text: string;
  /** Where no answer came, and it was found by `evidence`: the journal says so. Undefined in what is read of a record. */
  readonly by?: 'evidence' | undefined;
  /**
   * The call that this is the answer to, where it says so only as the answer to a first request: it settles and closes nothing that another
   * has taken over. Undefined in what is read of a record.
   */
  readonly onlyOf?: string | undefined;
}

/** A request that has been sent to the upstream, or may have been. */
export interface Sent {
  /** The exact text that was handed to the network. */
  readonly body: string;
  /** Time of the sending, in ms since the epoch, by the clock of the store. Never later than the sending itself. */
  readonly sentAt: number;
  /** How long ago that was, in ms. If the store has reason to doubt its clock, the longest time that it can be. */
  readonly ageMs: number;
}

/** The order as a list of payments shows it: without names, account numbers and the caller's key. */
export interface OrderSummary {
  readonly operation: MoneyMutation;
  /** Pesos, with two decimals; null for a refund that names none. */
  readonly amount: string | null;
  /** Ids of instruments; null for a refund. */
  readonly source: string | null;
  readonly destination: string | null;
  /** The customer that the caller is narrowed to; null for the client itself. */
  readonly customerId: string | null;
  /** The caller: a subject, or a digest of the credential. */
  readonly requestedBy: string;
}

/** What a store keeps of a request besides its text, until the payment is settled. */
export interface SentDetails {
  /** The key by which the upstream recognises a repeat; null if it has none for this operation. */
  readonly upstreamKey: string | null;
  /** Id of the credit that a refund returns; null for anything else. */
  readonly original: string | null;
}

/** What begins a payment in the record: the order, and whose it is. */
export interface Begun {
  /** The order. A record of an earlier version, which lacks it, is given it. */
  readonly asked: OrderSummary;
  /** Id of the request, for the journal; undefined if there is none. */
  readonly requestId?: string | undefined;
  /** The owner of the key: `ownerDigest` of the intent. */
  readonly keyOwner: string;
  /** `twinOf` the intent, by which callers for the whole client find a customer's intent. */
  readonly twin: string;
  /**
   * True for a customer's claim: it writes the twin and looks for none. A claim for the whole client writes none; before it takes a
   * new key it looks for a customer's.
   */
  readonly isCustomers: boolean;
}

export interface Claim extends Begun {
  /** Names one call of one process. */
  readonly owner: string;
  /** The hash of mutation and input. */
  readonly inputHash: string;
  /** How long the key is the caller's, in ms from now. */
  readonly leaseMs: number;
  /** The other of the two names that this owner's record of the key may have (`recordName`). */
  readonly other: {
    /** {@link RecordName.hash} of it. */
    readonly hash: string;
    /** True if it is the first owner's; false if it is the name for this owner alone. */
    readonly isFirst: boolean;
  };
}
