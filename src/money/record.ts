import type { RecordName } from './intent.ts';

/** How long a record is kept after it was last written, in ms: 30 days. */
export const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;

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
  /** When, in ms since the epoch, by the clock of the process that sent first. Never later than the sending itself. */
  readonly sentAt: number;
}

export interface Claim {
  /** Names one call of one process. */
  readonly owner: string;
  /** The hash of mutation and input. */
  readonly inputHash: string;
  /** Both in ms since the epoch, by the caller's clock. */
  readonly now: number;
  readonly leaseUntil: number;
}

/**
 * What a claim found.
 *
 * - `claimed`: the key is the caller's, and nothing has left under it.
 * - `sent`: the key is the caller's, and somebody before it may have sent this.
 * - `busy`: another call holds the key, and its lease runs.
 * - `answered`: the intent is settled.
 * - `other-input`: the key names another intent.
 */
export type Claimed =
  | { readonly state: 'claimed' }
  | ({ readonly state: 'sent' } & Sent)
  | { readonly state: 'busy' }
  | { readonly state: 'answered'; readonly answer: StoredAnswer }
  | { readonly state: 'other-input' };

/**
 * The record of each intent to pay: `claimed` → `sent` → `answered`.
 *
 * Guaranteed, across all processes on one store:
 * - Of all callers of `claim` on a fresh name, one gets `claimed`; and between a `claim` and the `markSent` of its owner
 *   nobody else's `markSent` succeeds. So one call alone sends first.
 * - Once `markSent` has resolved with true, every later `claim` learns of it, with the body, until it is answered or
 *   released, also after the death of every process and of the store's own. Where Redis has replicas, one has it too.
 * - A record that is `sent` never goes back to `claimed`. It vanishes only by `release` of its own owner.
 * - The first `done` or `refused` stays. Any process that learns it may write it, also after its lease was taken over: an answer is a fact about
 *   the intent, not about who holds it.
 * - Every step may be repeated with the same arguments: it does nothing the second time.
 *
 * Not guaranteed:
 * - That a lease excludes. A process that stalls past its lease is taken over while it still runs. What each does then is
 *   decided by the outcome table, not by the lease: the lease only spares work and answers sooner.
 * - That clocks agree. A clock that is off by more than a lease makes a waiting call give up waiting too early or too
 *   late. It never makes anything be sent twice.
 * - That a step which failed has not happened: the store may have done it and lost the reply.
 * - Anything once the store lost acknowledged writes: a Redis without `appendfsync always`, a failover past the replica
 *   that acknowledged, or one past a primary that had been alone for longer than half a minute.
 *
 * Every method rejects with {@link StoreUnavailableError}, and with nothing else, when the store cannot be reached or
 * written.
 */
export interface MoneyRecords {
  /** Takes the key when it is free, or when its holder's lease has ended. Otherwise tells what is there. */
  claim(name: RecordName, claim: Claim): Promise<Claimed>;
  /**
   * Notes that the request is about to leave. Nothing may be sent before this has resolved with true.
   * False: the key is no longer the owner's, and nothing may be sent.
   */
  markSent(name: RecordName, owner: string, sent: Sent): Promise<boolean>;
  /** Moves the end of the owner's lease; a time that has passed gives the key to the next call. */
  renew(name: RecordName, owner: string, leaseUntil: number): Promise<void>;
  /** Settles the intent, unless it is settled. `inputHash` as in the claim, `at` in ms since the epoch. */
  answer(name: RecordName, inputHash: string, answer: StoredAnswer, at: number): Promise<void>;
  /**
   * Forgets the key, when it is still the owner's: it knows that nothing moved. Compare and delete, so that a release
   * that comes late never frees what somebody else has taken over.
   */
  release(name: RecordName, owner: string): Promise<void>;
  /** Closes the store. */
  stop(): Promise<void>;
}

/** The store could not be reached or written. Before `markSent` that means: no call was made, and nothing moved by it. */
export class StoreUnavailableError extends Error {
  readonly code = 'STORE_UNAVAILABLE';

  constructor(step: string, cause: unknown) {
    super(`The record of payments could not be reached (${step}).`, { cause });
    this.name = 'StoreUnavailableError';
  }
}
