import type { Attempt, Failed, UpstreamAnswer } from '../common/attempt.ts';
import type { Logger } from '../common/logger.ts';
import type { Ambient } from './ambient.ts';
import type { MoneyIntent, RecordName } from './intent.ts';
import type { AnswerReading, UnknownReason } from './outcome.ts';
import type { Persistence } from './persist.ts';
import type { MoneyRecords } from './record.ts';
import type { SettlingCalls } from './settling/open-payment.ts';
import type { UnreadLog } from './unread-log.ts';

/** The upstream calls of one intent. `resolvers` implements them over REST. */
export interface MoneyCalls extends AnswerReading {
  /**
   * Sends the request: `body` unchanged, with the same headers each time except for the credentials.
   *
   * @param number 1 for the first request under the key, more for a repeat.
   * @param signal aborts at the operation's deadline, never because the caller left.
   * @param ownerDigest as in {@link Call}; a part of the upstream's key.
   */
  send(body: string, number: number, signal: AbortSignal, ownerDigest: string | undefined): Promise<Attempt>;
  /**
   * Finds out whether the gateway refuses this, before the record says that it was sent: what is recorded as sent, the gateway may send by
   * itself. Asked after each claim under which nothing has been sent. Absent if nothing is to be found out.
   *
   * @returns why nothing is sent: the caller gets its error, or the `UserError` that is the cause of that; undefined if the request may be sent.
   */
  check?(): Promise<Failed | undefined>;
  /** Returns the code of a refusal that the caller gets. */
  codeOf(refusal: UpstreamAnswer): string;
  /** Returns the code of the error that the caller gets where this has kept the request from moving anything. */
  codeUnmoved(because: Attempt): string;
  /** Returns the key by which the upstream recognises a repeat. Absent if it has no key for this operation. */
  upstreamKey?(ownerDigest: string | undefined): string;
}

export interface RefundCalls extends MoneyCalls {
  readonly originalId: string;
  /**
   * Asks again what a delivery of the credit may have changed since `check`: whether that is answered 422, by which the service returns it.
   * Asked once the record says that the refund is sent, which the ingress asks before each 422: one of the two sees the other.
   */
  checkAgain(): Promise<Failed | undefined>;
  /** Reads the credit that is to be refunded. */
  readOriginal(signal: AbortSignal): Promise<Attempt>;
  /** True if the answer is a transaction. */
  isTransaction(original: UpstreamAnswer): boolean;
  isRefunded(original: UpstreamAnswer): boolean;
}

/** The calls that settle an order after its call has ended, under its caller's own credential. */
export interface Later {
  readonly calls: () => SettlingCalls;
  /** Tells the credential from others of the client. */
  readonly credential: string;
  /** When the credential ends, in ms since the epoch. */
  readonly until: number;
}

/** An intent together with the calls that carry it out. */
export type MoneyOrder = MoneyIntent & {
  /** Undefined if the gateway settles it under its own credential. */
  readonly later?: Later | undefined;
} & (
    | { readonly mutation: 'refundTransaction'; readonly calls: RefundCalls }
    | {
        readonly mutation: Exclude<MoneyIntent['mutation'], 'refundTransaction'>;
        readonly calls: MoneyCalls;
      }
  );

/** The result that the caller gets. */
export type MoneyResult =
  | { readonly kind: 'done' | 'refused'; readonly answer: UpstreamAnswer; readonly replayed: boolean }
  | UnknownResult
  /**
   * This call has moved nothing, and the key is free. The caller gets a top-level error, made from `because`, or the `UserError` that is its
   * cause.
   */
  | { readonly kind: 'nothing-moved'; readonly because: Attempt }
  /** The credit reads REFUNDED, or another refund of it may have moved. Nothing was sent, and the key is free. */
  | {
      readonly kind: 'refund-not-allowed';
      readonly because: 'refunded' | 'other-refund';
      readonly original: UpstreamAnswer;
    }
  | { readonly kind: 'conflict'; readonly code: 'IDEMPOTENCY_KEY_REUSED' | 'IDEMPOTENCY_IN_PROGRESS' };

export interface UnknownResult {
  readonly kind: 'unknown';
  readonly reason: UnknownReason;
  /** True if sending the same input under the same key cannot move money twice. */
  readonly safeToRetry: boolean;
  /** Until when that holds, in ms since the epoch; undefined if it does not. */
  readonly retryUntil: number | undefined;
  /** The outcome of the last request; undefined if this call sent none. */
  readonly last: Attempt | undefined;
  /** True if the upstream gave the same answer to a request and to its repeat. It will most likely give it again. */
  readonly sameAnswerAgain: boolean;
  /** Of a refund: the credit as it reads now, if it could be read. */
  readonly original: UpstreamAnswer | undefined;
}

/** One call of `execute` that is under way. */
export interface Call {
  readonly order: MoneyOrder;
  readonly name: RecordName;
  /** The part of that name that tells owners of one key apart; undefined for the first owner, whose name has no such part. */
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
  /** Called when an answer is not the answer to its order. */
  readonly onMismatch: (mutation: MoneyIntent['mutation']) => void;
  readonly onUnread: UnreadLog;
  /** Called for each request of this call that has left, or may have. */
  readonly onSent: () => void;
}
