import { toAmount } from '../../common/amounts.ts';
import type { Attempt, UpstreamAnswer } from '../../common/attempt.ts';
import type { RefundCalls } from '../../money/call.ts';
import type { Context } from '../../operation/context.ts';
import { isDocumentedError } from '../../upstream/call/documented-error.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import { checkRefund, isTransaction, sendRefund, type Transaction } from '../../upstream/transactions.ts';
import { NotFoundError, PreconditionError, type UserError, ValidationError } from '../errors.ts';
import { isNeverRefunded } from '../transaction.ts';
import { attemptOf, carryOut, codeBy, codeUnmoved, intentOf, notSent, notTheirs, renewal } from './paying.ts';
import { compare } from './payment-answer.ts';
import { type RefundInput, refund } from './payment-input.ts';
import { whyRejected } from './rejected-credit.ts';
import { REFUND_RULES } from './service-refusals.ts';

/** A credit that has been returned. */
export interface Refunded {
  /** Null where it is known from the credit alone. */
  readonly refund: Transaction | null;
  /** Id of the credit, which is read when it is asked for. */
  readonly originalId: string;
  readonly replayed: boolean;
}

/** Why the upstream must refuse to refund this, where its documentation says so. */
function whyNot(original: Transaction, input: RefundInput): UserError | undefined {
  if (isNeverRefunded(original)) {
    return new PreconditionError(
      'REFUND_NOT_ALLOWED',
      `Only received SPEI credits can be refunded; this transaction is ${original.subCategory}.`,
      { field: ['input', 'transactionId'] },
    );
  }
  const amount = input.as.amount?.amount;
  const received = toAmount(original.amount);
  if (amount !== undefined && received !== undefined && amount !== received) {
    return new ValidationError(
      'INVALID_INPUT',
      `input.as.amount.amount must equal the amount received, ${received}: refunds are in full.`,
      { field: ['input', 'as', 'amount', 'amount'] },
    );
  }
  return undefined;
}

/** Returns a received SPEI credit in full, at most once for its key. */
export async function refundTransaction(input: RefundInput, context: Context): Promise<Refunded> {
  const { rest } = context.reads.session;
  const payment = refund(input);
  const { transactionId } = input;
  const { clientId } = context.identity.caller;
  const mutation = 'refundTransaction';
  let amount = input.as.amount?.amount;
  const calls: RefundCalls = {
    originalId: transactionId,
    check: async () =>
      (await notTheirs(checkRefund(rest, transactionId), REFUND_RULES)) ??
      (await whyRejected(transactionId, context)),
    checkAgain: () => whyRejected(transactionId, context),
    send: async (body, number) =>
      attemptOf(await sendRefund(rest, transactionId, body, renewal(mutation, number)), number),
    compare: (answer) => compare({ mutation, clientId, amount, originalId: transactionId }, answer),
    isServiceError: isDocumentedError,
    codeOf: codeBy(REFUND_RULES),
    codeUnmoved,
    isTransaction: ({ body }) => isTransaction(body),
    readOriginal: async () => {
      const read = await readOriginal(input, context);
      // Refunds are in full.
      if (read.kind === 'answered' && isTransaction(read.body)) amount = read.body.amount;
      return read;
    },
    isRefunded: ({ body }: UpstreamAnswer) => isTransaction(body) && body.transactionStatus === 'REFUNDED',
  };
  const { answer, replayed } = await carryOut(
    { ...intentOf(payment, context), mutation, calls },
    context,
    REFUND_RULES,
  );
  // Where its answer was lost and the credit reads REFUNDED, no transaction is known.
  const refunded = isTransaction(answer.body) ? answer.body : null;
  return { refund: refunded, originalId: transactionId, replayed };
}

/** The credit as it reads now. One that cannot be refunded is told as a reason for which nothing was sent. */
async function readOriginal(input: RefundInput, context: Context): Promise<Attempt> {
  try {
    // Read afresh each time, and only as far as the caller may see.
    const original = await context.reads.session.original(input.transactionId);
    if (original === null) {
      return notSent(
        new NotFoundError('NOT_FOUND', 'There is no transaction of this id.', {
          field: ['input', 'transactionId'],
        }),
      );
    }
    const reason = whyNot(original, input);
    if (reason !== undefined) return notSent(reason);
    return {
      kind: 'answered',
      status: 200,
      body: original,
      text: JSON.stringify(original),
      retryAfterMs: undefined,
    };
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return { kind: 'failed', error };
  }
}
