import type { UnknownReason } from '../money/outcome.ts';
import type { Refusal } from '../upstream/call/errors.ts';
import type { Transaction } from '../upstream/transactions.ts';

/**
 * What a caller cannot correct: a top-level error whose message and `extensions.code` reach the caller as
 * they are (docs/graph.md, "Error codes"). Everything else that is thrown is masked.
 */
export abstract class PublicError extends Error {
  abstract readonly code: string;
}

/** An argument that cannot be what it should be; found before any call is made. */
export class BadInputError extends PublicError {
  override readonly name = 'BadInputError';
  readonly code = 'BAD_USER_INPUT';
}

/** The answer turns out to hold more than one operation may. */
export class TooManyItemsError extends PublicError {
  override readonly name = 'TooManyItemsError';
  readonly code = 'TOO_COMPLEX';

  /** @param limit the largest number of items. */
  constructor(limit: number) {
    super(`The answer holds more than ${limit} items. Ask for fewer with "first".`);
  }
}

/** The operation may read no more of the event log (docs/configuration.md, "Reading the event log"). */
export class LogReadingError extends PublicError {
  override readonly name = 'LogReadingError';
  readonly code = 'TOO_COMPLEX';

  /** @param reason what was too much. */
  constructor(reason: string) {
    super(`The operation is too large: ${reason}. Ask for fewer fields, or a shorter time.`);
  }
}

/** The position handed back as `after` was not made by the list that it is used in. */
export class PageCursorError extends PublicError {
  override readonly name = 'PageCursorError';
  readonly code = 'CURSOR_INVALID';
}

/** The caller is known and lacks the right that the field asks for. */
export class ForbiddenError extends PublicError {
  override readonly name = 'ForbiddenError';
  readonly code = 'FORBIDDEN';
}

/**
 * The record of payments cannot be reached, or may have forgotten what is asked for; or, before a refund, the event log cannot be read. A
 * mutation that ends so has sent nothing, and may be tried again with the same key.
 */
export class PaymentRecordError extends PublicError {
  override readonly name = 'PaymentRecordError';
  readonly code = 'STORE_UNAVAILABLE';
}

/** An operator has stopped all payments. Nothing was sent: the same input with the same key may be tried again later. */
export class PaymentsStoppedError extends PublicError {
  override readonly name = 'PaymentsStoppedError';
  readonly code = 'PAYMENTS_STOPPED';
}

/** The caller's own `x-api-key` is at fault, not its bearer token: the public form names the header. */
export abstract class ApiKeyError extends PublicError {
  readonly code = 'UNAUTHENTICATED';
  readonly header = 'x-api-key';
}

/** A field of the bootstrap is asked for without the caller's own `x-api-key`. */
export class ApiKeyRequiredError extends ApiKeyError {
  override readonly name = 'ApiKeyRequiredError';

  constructor() {
    super("This field needs the caller's own x-api-key header.");
  }
}

/** A second field of the bootstrap in one operation. */
export class OneBootstrapFieldError extends PublicError {
  override readonly name = 'OneBootstrapFieldError';
  readonly code = 'TOO_COMPLEX';

  constructor() {
    super('An operation asks for credentials, or for an access token, once.');
  }
}

/** The service refuses this key, or did a moment ago and is not asked again. */
export class ApiKeyRefusedError extends ApiKeyError {
  override readonly name = 'ApiKeyRefusedError';
}

/** The contract's `UserErrorCode`. */
export type UserErrorCode =
  | 'INVALID_INPUT'
  | 'AMOUNT_NOT_POSITIVE'
  | 'CURRENCY_UNSUPPORTED'
  | 'DESCRIPTION_INVALID'
  | 'EXTERNAL_REFERENCE_INVALID'
  | 'ACCOUNT_NOT_ACTIVE'
  | 'INSUFFICIENT_FUNDS'
  | 'PRECONDITION_FAILED'
  | 'NOT_FOUND'
  | 'DESTINATION_NOT_FOUND'
  | 'EXTERNAL_TRANSFER_NOT_ALLOWED'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'IDEMPOTENCY_IN_PROGRESS'
  | 'REFUND_NOT_ALLOWED'
  | 'REFUSED';

/** What a caller can correct or must accept: a member of a mutation's union, never a top-level error. */
export abstract class UserError extends Error {
  readonly code: UserErrorCode;
  /** Path of the input field at fault, outermost first, such as `['input', 'amount']`. */
  readonly field: readonly string[] | null;
  /** Set when it was the upstream that refused. */
  readonly upstream: Refusal | null;

  constructor(
    code: UserErrorCode,
    message: string,
    origin: { field?: readonly string[] | null; upstream?: Refusal } = {},
  ) {
    super(message);
    this.code = code;
    this.field = origin.field ?? null;
    this.upstream = origin.upstream ?? null;
  }
}

/** The input is at fault. */
export class ValidationError extends UserError {
  override readonly name = 'ValidationError';
}

/** The state of an account or a transaction forbids it. */
export class PreconditionError extends UserError {
  override readonly name = 'PreconditionError';
}

/** Something that the input names is not there, or is not the caller's. */
export class NotFoundError extends UserError {
  override readonly name = 'NotFoundError';
}

/** It collides with what is already there or under way. */
export class ConflictError extends UserError {
  override readonly name = 'ConflictError';
}

/** The upstream refused in a way that the spec does not document, or that the mutation's union has no class for. */
export class RefusedError extends UserError {
  override readonly name = 'RefusedError';
}

/** The request left and no clear answer came: neither success nor failure. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
  readonly reason: UnknownReason;
  readonly safeToRetry: boolean;
  /** RFC 3339. */
  readonly retryUntil: string | null;
  /** Of a refund: the credit as it reads now. */
  readonly original: Transaction | null;
  /** The caller's key; undefined where it is no payment. */
  readonly key: string | undefined;

  constructor(
    message: string,
    options: {
      reason: UnknownReason;
      safeToRetry: boolean;
      retryUntil?: string | null;
      original?: Transaction | null;
      key?: string;
    },
  ) {
    super(message);
    this.reason = options.reason;
    this.safeToRetry = options.safeToRetry;
    this.retryUntil = options.retryUntil ?? null;
    this.original = options.original ?? null;
    this.key = options.key;
  }
}
