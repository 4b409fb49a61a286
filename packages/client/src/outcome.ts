import { ambient } from './ambient.ts';
import { Refused, refusalOf, refused } from './source.ts';

/** A result of one of the four mutations that move money. */
export interface PaymentResult {
  readonly __typename: string;
}

/** The successes among a mutation's results; all results, if the type does not tell them apart. */
type SuccessOf<Result> = [Extract<Result, { __typename: `${string}Success` }>] extends [never]
  ? Result
  : Extract<Result, { __typename: `${string}Success` }>;

export type Settled<Result extends PaymentResult> =
  | { readonly status: 'done'; readonly result: SuccessOf<Result> }
  /** Nothing has moved. `code` is a `UserErrorCode`, or the code of an error before the gateway looked at the payment. */
  | { readonly status: 'refused'; readonly code: string; readonly message: string }
  /**
   * It may have happened. With `safeToRetry`, the same call goes on asking. Without it nothing is sent until the gateway has
   * learned how it ended: the same call asks for that.
   */
  | {
      readonly status: 'unknown';
      readonly safeToRetry: boolean;
      readonly message: string;
      /**
       * Why the last call was refused, by a `UserError` or at top level, while an earlier one, of which no answer came, may still move
       * money. With `IDEMPOTENCY_KEY_REUSED`, the key is that of a payment with another input, which may have moved money.
       */
      readonly code?: string | undefined;
      /** Why it is unknown, if the mutation selects `reason`. */
      readonly reason?: string | undefined;
      /** Until when it may still be made, if the gateway has said so. */
      readonly retryUntil?: string | undefined;
      /** The error of the connection, or of the store, if that is the reason. */
      readonly cause?: unknown;
    };

export type Unknown = Extract<Settled<PaymentResult>, { readonly status: 'unknown' }>;

export const unknown = (
  message: string,
  safeToRetry = false,
  more?: Partial<Unknown>,
): Settled<PaymentResult> => ({ status: 'unknown', safeToRetry, message, ...more });

/**
 * No answer came that says that the payment has ended.
 *
 * @param cause the error of the connection, or of the gateway, if that is the reason
 * @param code of an error that says that its call has moved nothing
 */
export const lost = (cause?: unknown, code?: string): Settled<PaymentResult> =>
  unknown((cause instanceof Refused ? cause : refusalOf(cause))?.message ?? 'No answer came.', true, {
    code,
    cause,
  });

/**
 * Codes of top-level errors by which a gateway says that a call has moved nothing: those of docs/graph.md but `INTERNAL`, and
 * those of GraphQL for documents. Any other may come from a proxy that had sent the call on.
 */
const MOVED_NOTHING: readonly string[] = [
  'BAD_USER_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'PERSISTED_QUERY_NOT_SUPPORTED',
  'TOO_COMPLEX',
  'CURSOR_INVALID',
  'EVENTS_GAP',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_INVALID',
  'RATE_LIMITED',
  'STORE_UNAVAILABLE',
  'PAYMENTS_STOPPED',
  'DRAINING',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
];

/** True if an error says that its call has moved nothing. One within the result says that the mutation was executed. */
export const hasMovedNothing = (cause: unknown): cause is Refused =>
  cause instanceof Refused && MOVED_NOTHING.includes(cause.code) && cause.path?.[1] === undefined;

/** The answer lacks what tells how the payment ended. Asking again with this document is of no use. */
export const incomplete = (): Settled<PaymentResult> =>
  lost(refused('Select `__typename`, `code` and `safeToRetry`, under these names.'));

/** True if another call may tell more. */
export const isUnclear = (told: Settled<PaymentResult> | undefined): told is Unknown | undefined =>
  told === undefined || (told.status === 'unknown' && told.safeToRetry);

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads a result. Returns undefined if there is none, or if it does not say enough: only an error with its `code` says that
 * nothing has moved, because a conflict may mean that an earlier call is under way.
 */
export function settle(result: unknown): Settled<PaymentResult> | undefined {
  const { __typename = '', code, message = '', safeToRetry, retryUntil, reason } = Object(result) as Fields;
  const name = String(__typename);
  if (name.endsWith('Success')) return { status: 'done', result: result as never };
  if (name === 'OutcomeUnknown' && typeof safeToRetry === 'boolean') {
    const isOver = typeof retryUntil === 'string' && Date.parse(retryUntil) <= ambient.now();
    return unknown(String(message), safeToRetry && !isOver, { reason, retryUntil } as Partial<Unknown>);
  }
  return name !== '' && typeof code === 'string'
    ? { status: 'refused', code, message: String(message) }
    : undefined;
}
