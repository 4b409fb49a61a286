import { type Attempt, type Failed, GivenUpError, type UpstreamAnswer } from '../../common/attempt.ts';
import type { MoneyCalls, MoneyOrder, MoneyResult, UnknownResult } from '../../money/call.ts';
import { upstreamIdempotencyKey } from '../../money/idempotency-key.ts';
import { PaymentsHeldError, RecordsUnavailableError } from '../../money/record.ts';
import type { Context } from '../../operation/context.ts';
import type { MayRenew } from '../../upstream/call/credential.ts';
import { isDocumentedError } from '../../upstream/call/documented-error.ts';
import { errorOfAnswer, UpstreamError } from '../../upstream/call/errors.ts';
import {
  checkTransfer,
  isTransaction,
  sendInternalTransaction,
  sendMoneyOut,
  sendPennyValidation,
  type Transaction,
} from '../../upstream/transactions.ts';
import {
  ConflictError,
  OutcomeUnknown,
  PaymentRecordError,
  PaymentsStoppedError,
  PreconditionError,
  PublicError,
  UserError,
} from '../errors.ts';
import { type RefusalRules, refusalError } from '../service-refusal.ts';
import { compare } from './payment-answer.ts';
import {
  PENNY,
  type PennyValidationInput,
  type PreparedPayment,
  pennyValidation,
  type TransferInput,
  transfer,
} from './payment-input.ts';
import { TRANSFER_RULES } from './service-refusals.ts';
import { unknownWords } from './unknown-outcome.ts';

/** A movement that has been made. */
export interface Paid {
  readonly transaction: Transaction;
  /** Whether this is the answer to an earlier call with the same key. */
  readonly replayed: boolean;
}

/**
 * An attempt as the rules of payments see it. A 404 on a repeat does not mean that the first request failed.
 *
 * @param number 1 for the first under its key, more for a repeat.
 */
export function attemptOf(attempt: Attempt, number: number): Attempt {
  if (attempt.kind === 'failed' || attempt.synthesized !== true || number === 1) return attempt;
  return { kind: 'failed', error: new GivenUpError('kept from a narrowed caller', { dispatched: false }) };
}

/**
 * Whether the same request may be sent once more, with another credential, after a 401. It may where the service itself has given the 401,
 * as nothing moved then. A repeat of money out may after a 401 of anybody, as the service knows its key.
 *
 * @param number as in {@link attemptOf}
 */
export const renewal =
  (mutation: PreparedPayment['mutation'], number: number): MayRenew =>
  (refused) =>
    isDocumentedError(refused) || (mutation === 'createMoneyOut' && number > 1);

/** Sends an outbound SPEI transfer, at most once for its key. */
export function createMoneyOut(input: TransferInput, context: Context): Promise<Paid> {
  const { clientId, customerId } = context.identity.caller;
  const payment = transfer('createMoneyOut', clientId, input);
  const { rest } = context.reads.session;
  const keyOf = (ownerDigest: string | undefined) =>
    upstreamIdempotencyKey({ clientId, customerId, key: payment.key }, ownerDigest);
  const send: Send = (body, mayRenew, ownerDigest) => sendMoneyOut(rest, body, keyOf(ownerDigest), mayRenew);
  return pay('createMoneyOut', payment, context, input, input.amount, send, keyOf);
}

/** Moves money between two internal instruments, at most once for its key. */
export function createInternalTransaction(input: TransferInput, context: Context): Promise<Paid> {
  const payment = transfer('createInternalTransaction', context.identity.caller.clientId, input);
  const { rest } = context.reads.session;
  return pay('createInternalTransaction', payment, context, input, input.amount, (body, mayRenew) =>
    sendInternalTransaction(rest, body, mayRenew),
  );
}

/** Sends 0.01 MXN to learn who owns a CLABE, at most once for its key. */
export function createPennyValidation(input: PennyValidationInput, context: Context): Promise<Paid> {
  const payment = pennyValidation(context.identity.caller.clientId, input);
  const { rest } = context.reads.session;
  return pay('createPennyValidation', payment, context, input, PENNY, (body, mayRenew) =>
    sendPennyValidation(rest, body, mayRenew),
  );
}

type Send = (body: string, mayRenew: MayRenew, ownerDigest: string | undefined) => Promise<Attempt>;

async function pay(
  mutation: Exclude<PreparedPayment['mutation'], 'refundTransaction'>,
  payment: PreparedPayment,
  context: Context,
  input: { readonly sourceInstrumentId: string; readonly destinationInstrumentId: string },
  amount: string,
  send: Send,
  upstreamKey?: MoneyCalls['upstreamKey'],
): Promise<Paid> {
  const { clientId } = context.identity.caller;
  const { sourceInstrumentId, destinationInstrumentId } = input;
  const ordered = { mutation, clientId, amount, sourceInstrumentId, destinationInstrumentId };
  const calls: MoneyCalls = {
    check: () => notTheirs(checkTransfer(context.reads.session.rest, mutation, payment.body), TRANSFER_RULES),
    // A request that has left is bounded by the operation's deadline, which the session's calls keep by themselves.
    send: async (body, number, _signal, ownerDigest) =>
      attemptOf(await send(body, renewal(mutation, number), ownerDigest), number),
    compare: (answer) => compare(ordered, answer),
    isServiceError: isDocumentedError,
    codeOf: codeBy(TRANSFER_RULES),
    codeUnmoved,
    ...(upstreamKey === undefined ? {} : { upstreamKey }),
  };
  const order = { ...intentOf(payment, context), mutation, calls };
  const { answer, replayed } = await carryOut(order, context, TRANSFER_RULES);
  return { transaction: transactionIn(answer, payment.key), replayed };
}

/** What every order says of itself. */
export const intentOf = (
  { key, inputHash, body, shown }: PreparedPayment,
  { identity, services, requestId }: Context,
) => {
  const { caller, requestedBy } = identity;
  return {
    clientId: caller.clientId,
    customerId: caller.customerId,
    keyOwner: caller.keyOwner,
    key,
    inputHash,
    body,
    shown: { ...shown, requestedBy },
    requestId,
    later: services.settleLater?.(identity),
  };
};

/** What the caller is told of a refusal in one word, for the journal. */
export const codeBy =
  (rules: RefusalRules): MoneyCalls['codeOf'] =>
  (refusal) =>
    refusalError(refusal, rules).code;

/** Why the gateway sends nothing, where the caller is to get `cause`. */
export const notSent = (cause: UserError | PublicError): Failed => ({
  kind: 'failed',
  error: new GivenUpError(cause.message, { dispatched: false, cause }),
});

/** Why an order is not the caller's to make: what it names is told as something that nobody has. */
export async function notTheirs(
  found: Promise<Attempt | undefined>,
  rules: RefusalRules,
): Promise<Failed | undefined> {
  const attempt = await found;
  return attempt?.kind === 'answered' ? notSent(refusalError(attempt, rules)) : attempt;
}

/**
 * Carries an order out and tells which of three it is.
 *
 * @returns the upstream's answer: done.
 * @throws UserError of the union: refused by the service, or by the gateway, which has sent nothing.
 * @throws OutcomeUnknown
 * @throws UpstreamError when nothing moved, and the reason is none of these.
 * @throws GivenUpError when nothing was sent, because of a defect.
 * @throws PaymentRecordError when nothing was sent, as the record of payments is away.
 */
export async function carryOut(
  order: MoneyOrder,
  context: Context,
  rules: RefusalRules,
): Promise<{ readonly answer: UpstreamAnswer; readonly replayed: boolean }> {
  const { deadline, signal } = context.budget;
  const result = await context.services.money.execute(order, { deadline, signal }).catch(recordUnreachable);
  context.reads.forget();
  if (result.kind === 'done') return result;
  throw errorOf(result, order, rules);
}

function recordUnreachable(error: unknown): never {
  if (!(error instanceof RecordsUnavailableError)) throw error;
  if (error instanceof PaymentsHeldError && error.why !== 'put-back') {
    throw new PaymentsStoppedError(
      'Payments have been stopped by the operator of this service. This call has sent nothing. Try again later with the same key.',
      { cause: error },
    );
  }
  if (error instanceof PaymentsHeldError) {
    throw new PaymentRecordError(
      'Payments are held, as their record has been put back to an earlier state. This call has sent nothing. Try again with the same key when the operator has let them go on.',
      { cause: error },
    );
  }
  throw new PaymentRecordError(
    'The record of payments cannot be reached. This call has sent nothing; what an earlier one with the key has done is not known now. Try again with the same key.',
    { cause: error },
  );
}

const NOT_REFUNDED_BECAUSE = {
  refunded: 'The transaction has been refunded already.',
  'other-refund':
    'Another refund of the transaction was sent within the last 48 hours, under another key, or by a caller whose keys are not yours, and it may have returned the money. This call has sent nothing. Find out what became of the other: payments(operations: [REFUND]) lists it to callers for the whole client, and to one narrowed to a customer only if such a caller has sent it. The list does not name the credit of an open refund; to an operator `pasarela payments show` names it.',
} as const;

/** What the caller is told of all that is not done, which has been returned. */
function errorOf(result: MoneyResult, order: MoneyOrder, rules: RefusalRules): Error {
  switch (result.kind) {
    case 'done':
    case 'refused':
      return refusalError(result.answer, rules);
    case 'unknown':
      return unknownOutcome(result, order);
    case 'nothing-moved':
      return whyNothingMoved(result.because);
    case 'refund-not-allowed':
      return new PreconditionError('REFUND_NOT_ALLOWED', NOT_REFUNDED_BECAUSE[result.because], {
        field: ['input', 'transactionId'],
      });
    case 'conflict':
      return new ConflictError(
        result.code,
        result.code === 'IDEMPOTENCY_KEY_REUSED'
          ? 'The key was used before, for other contents, and this call has sent nothing. The payment of the key may have moved money: ask `payment(idempotencyKey:)` before you pay with another key.'
          : 'An earlier call with this key is still running. Ask again with the same key and contents.',
        { field: ['input', 'idempotencyKey'] },
      );
  }
}

function unknownOutcome(result: UnknownResult, { key }: MoneyOrder): OutcomeUnknown {
  const original = result.original?.body;
  return new OutcomeUnknown(unknownWords(result), {
    reason: result.reason,
    safeToRetry: result.safeToRetry,
    retryUntil: result.retryUntil === undefined ? null : new Date(result.retryUntil).toISOString(),
    original: isTransaction(original) ? original : null,
    key,
  });
}

/** What the caller is told in one word where nothing moved, for the log. */
export const codeUnmoved: MoneyCalls['codeUnmoved'] = (because) => {
  const why = whyNothingMoved(because);
  if (why instanceof UpstreamError) return why.publicCode;
  return isTold(why) ? why.code : 'INTERNAL';
};

const isTold = (cause: unknown): cause is UserError | PublicError =>
  cause instanceof UserError || cause instanceof PublicError;

/** Nothing moved: the error that stopped it, as it stands. A defect is told as `INTERNAL`, as no caller may read of it. */
function whyNothingMoved(because: Attempt): Error {
  if (because.kind === 'answered') return errorOfAnswer(because);
  const { error } = because;
  if (error instanceof UpstreamError) return error;
  if (isTold(error.cause)) return error.cause;
  if (error.cause !== undefined) return error;
  return new UpstreamError('UPSTREAM_TIMEOUT', 'The time of the operation was over before the call.', {
    dispatched: false,
  });
}

/**
 * Returns the transaction of a payment that is done. The engine has called it readable as it came; a record may have been damaged since.
 * An error at top level would say that nothing has moved, and an app pays again then.
 */
function transactionIn({ body }: UpstreamAnswer, key: string): Transaction {
  if (isTransaction(body)) return body;
  throw new OutcomeUnknown(
    'The payment of this key is recorded as made, and the record does not show its transaction. This call has sent nothing. Do not pay it in another way: `payment(idempotencyKey:)` and the provider say what became of it.',
    { reason: 'ANSWER_DOES_NOT_MATCH', safeToRetry: false, key },
  );
}
