import type { MoneyMutation } from './intent.ts';

/**
 * The answer to an intent, as it is replayed to every later call with its key.
 *
 * `done` and `refused` are what the upstream said. `unknown` says that nothing may be sent under this key any more; it
 * gives way to a `done` or `refused` that is learnt late.
 */
export interface StoredAnswer {
  readonly kind: 'done' | 'refused' | 'unknown';
  /** HTTP status and body text of the upstream's answer. */
  readonly status: number;
  readonly text: string;
}

/** What left, or may have left, for the upstream. */
export interface Sent {
  /** The very text that was handed to the network. */
  readonly body: string;
  /** When, in ms since the epoch, by the clock of the store. Never later than the sending itself. */
  readonly sentAt: number;
  /** How long ago that was, in ms; where the store has reason to doubt its clock, at most. */
  readonly ageMs: number;
}

/** What was asked for, as a list of payments shows it. No names, no numbers of accounts, and not the caller's key. */
export interface OrderSummary {
  readonly operation: MoneyMutation;
  /** Pesos, with two decimals; null for a refund that names none. */
  readonly amount: string | null;
  /** Ids of instruments; null for a refund. */
  readonly source: string | null;
  readonly destination: string | null;
  /** The customer that the caller is narrowed to; null for the client itself. */
  readonly customerId: string | null;
  /** Who asked: a subject, or a digest of the credential. */
  readonly requestedBy: string;
}

/** What a store keeps of a request besides its text, until the payment is settled. */
export interface SentDetails {
  /** By which the upstream knows a repeat; null where it knows none. */
  readonly upstreamKey: string | null;
  /** Id of the credit that a refund returns; null for anything else. */
  readonly original: string | null;
}
