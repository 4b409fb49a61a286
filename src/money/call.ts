import type { Attempt, UpstreamAnswer } from '../common/attempt.ts';
import type { Logger } from '../common/logger.ts';
import type { Ambient } from './ambient.ts';
import type { MoneyIntent, RecordName } from './intent.ts';
import type { AnswerReading, UnknownReason } from './outcome.ts';
import type { Persistence } from './persist.ts';
import type { MoneyRecords } from './record.ts';
import type { SettlingCalls } from './settling/open-payment.ts';

/** The upstream as one intent sees it. `resolvers` implements it over REST. */
export interface MoneyCalls extends AnswerReading {
  /**
   * Sends the request: `body` as it is, with the same headers each time but for the credentials.
   *
   * @param number 1 for the first request under the key, more for a repeat.
   * @param signal aborts at the operation's deadline alone, never because the caller went away.
   * @param ownerDigest as in {@link Call}: the upstream's key is made of it too.
   */
  send(body: string, number: number, signal: AbortSignal, ownerDigest: string | undefined): Promise<Attempt>;
  /** What the caller is told of a refusal in one word. */
  codeOf(refusal: UpstreamAnswer): string;
  /** By which the upstream knows a repeat. Absent where it knows none. */
  upstreamKey?(ownerDigest: string | undefined): string;
}

export interface RefundCalls extends MoneyCalls {
  readonly originalId: string;
  /** Reads the credit that is to be refunded. */
  readOriginal(signal: AbortSignal): Promise<Attempt>;
  /** Whether what was read is a transaction. */
  isTransaction(original: UpstreamAnswer): boolean;
  isRefunded(original: UpstreamAnswer): boolean;
}

/** What settles an order after its call has ended, under its caller's own credential. */
export interface Later {
  readonly calls: () => SettlingCalls;
  /** Until when the credential holds, in ms since the epoch. */
  readonly until: number;
}

/** An intent together with the calls that carry it out. */
export type MoneyOrder = MoneyIntent & {
  /** Undefined where the gateway settles it under a credential of its own. */
  readonly later?: Later | undefined;
} & (
    | { readonly mutation: 'refundTransaction'; readonly calls: RefundCalls }
    | {
        readonly mutation: Exclude<MoneyIntent['mutation'], 'refundTransaction'>;
        readonly calls: MoneyCalls;
      }
  );

/** What the caller is told. */
export type MoneyResult =
  | { readonly kind: 'done' | 'refused'; readonly answer: UpstreamAnswer; readonly replayed: boolean }
  | UnknownResult
  /** Nothing moved by this call and the key is free: a top-level error, made from what happened. */
  | { readonly kind: 'nothing-moved'; readonly because: Attempt }
  /** The credit reads REFUNDED. Nothing was sent, and the key is free. */
  | { readonly kind: 'refund-not-allowed'; readonly original: UpstreamAnswer }
  | { readonly kind: 'conflict'; readonly code: 'IDEMPOTENCY_KEY_REUSED' | 'IDEMPOTENCY_IN_PROGRESS' };

export interface UnknownResult {
  readonly kind: 'unknown';
  readonly reason: UnknownReason;
  /** True when the same input under the same key cannot do it twice. */
  readonly safeToRetry: boolean;
  /** Until when that holds, in ms since the epoch; undefined when it does not. */
  readonly retryUntil: number | undefined;
  /** What became of the last request; undefined when this call sent none. */
  readonly last: Attempt | undefined;
  /** The upstream gave one and the same answer to a request and its repeat: most likely it will give it again. */
  readonly sameAnswerAgain: boolean;
  /** Of a refund: the credit as it reads now, where it could be read. */
  readonly original: UpstreamAnswer | undefined;
}

/** One call of `execute`, on its way. */
export interface Call {
  readonly order: MoneyOrder;
  readonly name: RecordName;
  /** The part of that name that tells the owners of one key apart; undefined for the first owner, whose name has none. */
  readonly ownerDigest: string | undefined;
  /** Names this call in the record. */
  readonly owner: string;
  /** In ms since the epoch. */
  readonly deadline: number;
  /** Aborts at the deadline. */
  readonly atDeadline: AbortSignal;
  /** Aborts at the deadline, or when the caller goes away. */
  readonly waiting: AbortSignal;
  readonly records: MoneyRecords;
  readonly persistence: Persistence;
  readonly ambient: Ambient;
  readonly logger: Logger;
  /** An answer was not the answer to its order. */
  readonly onMismatch: (mutation: MoneyIntent['mutation']) => void;
}
