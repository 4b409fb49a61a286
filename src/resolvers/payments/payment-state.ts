import { toAmount } from '../../common/amounts.ts';
import type { UpstreamAnswer } from '../../common/attempt.ts';
import { parsed } from '../../money/answers.ts';
import { RETRY_WINDOW_MS } from '../../money/backoff.ts';
import { reasonOf } from '../../money/dispatch.ts';
import type { MoneyMutation } from '../../money/intent.ts';
import type { UnknownReason } from '../../money/outcome.ts';
import type { RecordedPayment } from '../../money/payment-reads.ts';
import type { OrderSummary, PaymentClass, PaymentRecord } from '../../money/record.ts';
import { isDocumentedError } from '../../upstream/call/documented-error.ts';
import { isTransaction, type Transaction } from '../../upstream/transactions.ts';
import { refusalError } from '../service-refusal.ts';
import { REFUND_RULES, TRANSFER_RULES } from './service-refusals.ts';
import { unknownWords } from './unknown-outcome.ts';

/** The contract's `PaymentState`. */
export type PaymentState = 'IN_FLIGHT' | 'DONE' | 'REFUSED' | 'UNKNOWN';

/** The contract's `PaymentOperation`. */
export type PaymentOperation = keyof typeof OPERATIONS;

export const OPERATIONS = {
  MONEY_OUT: 'createMoneyOut',
  INTERNAL_TRANSACTION: 'createInternalTransaction',
  PENNY_VALIDATION: 'createPennyValidation',
  REFUND: 'refundTransaction',
} as const satisfies Readonly<Record<string, MoneyMutation>>;

const NAMES: Readonly<Record<MoneyMutation, PaymentOperation>> = {
  createMoneyOut: 'MONEY_OUT',
  createInternalTransaction: 'INTERNAL_TRANSACTION',
  createPennyValidation: 'PENNY_VALIDATION',
  refundTransaction: 'REFUND',
};

/** The class that holds the payments of a state. */
export const CLASSES: Readonly<Record<PaymentState, PaymentClass>> = {
  IN_FLIGHT: 'open',
  UNKNOWN: 'open',
  DONE: 'done',
  REFUSED: 'refused',
};

/** One intent to pay, as the graph shows it. Times are RFC 3339. */
export interface Payment {
  readonly id: string;
  readonly operation: PaymentOperation;
  readonly state: PaymentState;
  readonly amount: { readonly amount: string; readonly currency: string } | null;
  readonly sourceInstrumentId: string | null;
  readonly destinationInstrumentId: string | null;
  readonly requestedAt: string;
  readonly sentAt: string | null;
  readonly settledAt: string | null;
  readonly attempts: number;
  readonly requestedBy: string;
  readonly code: string | null;
  readonly message: string | null;
  readonly safeToRetry: boolean;
  readonly retryUntil: string | null;
  readonly transactionId: string | null;
  readonly position: { readonly createdAt: number; readonly hash: string };
}

/** What became of a payment: the same table by which its caller is told. */
export function stateOf({ state, isHeld, answer }: PaymentRecord): PaymentState {
  if (answer === null) return isHeld || state === 'claimed' ? 'IN_FLIGHT' : 'UNKNOWN';
  if (answer.kind === 'done') return 'DONE';
  // Versions before stored as a refusal what somebody on the way had said.
  return answer.kind === 'refused' && isDocumentedError(readAnswer(answer)) ? 'REFUSED' : 'UNKNOWN';
}

/** @param now in ms since the epoch */
export function paymentOf(record: RecordedPayment & { readonly asked: OrderSummary }, now: number): Payment {
  const { asked, sent } = record;
  const state = stateOf(record);
  const transaction = state === 'DONE' ? transactionOf(record) : null;
  const amount = asked.amount ?? amountOf(record) ?? null;
  return {
    id: record.id,
    operation: NAMES[asked.operation],
    state,
    amount: amount === null ? null : { amount, currency: 'MXN' },
    sourceInstrumentId: asked.source,
    destinationInstrumentId: asked.destination,
    requestedAt: written(record.createdAt),
    sentAt: sent === null ? null : written(sent.sentAt),
    settledAt: record.settledAt === null ? null : written(record.settledAt),
    attempts: record.attempts,
    requestedBy: asked.requestedBy,
    transactionId: transaction?.id ?? null,
    position: { createdAt: record.createdAt, hash: record.hash },
    ...adviceOn(record, asked, state, now),
  };
}

type Advice = Pick<Payment, 'code' | 'message' | 'safeToRetry' | 'retryUntil'>;

function adviceOn(record: PaymentRecord, asked: OrderSummary, state: PaymentState, now: number): Advice {
  const nothing: Advice = { code: null, message: null, safeToRetry: false, retryUntil: null };
  if (state === 'REFUSED' && record.answer !== null) {
    const rules = asked.operation === 'refundTransaction' ? REFUND_RULES : TRANSFER_RULES;
    const { code, message } = refusalError(readAnswer(record.answer), rules);
    return { ...nothing, code, message };
  }
  const until = retryUntilOf(record, asked, now);
  const retry = { safeToRetry: until !== undefined, retryUntil: until === undefined ? null : written(until) };
  if (state === 'IN_FLIGHT') return { ...nothing, ...retry };
  if (state !== 'UNKNOWN') return nothing;
  const reason = reasonFor(record, asked, retry.safeToRetry);
  return { code: reason, message: unknownWords({ reason, ...retry, seen: record.seen }), ...retry };
}

/** Until when the same may be sent again; undefined where it may not, or that is over. */
function retryUntilOf({ sent, answer }: PaymentRecord, asked: OrderSummary, now: number): number | undefined {
  if (asked.operation !== 'createMoneyOut' || answer !== null || sent === null) return undefined;
  const until = Math.min(sent.sentAt, now - sent.ageMs) + RETRY_WINDOW_MS;
  return now < until ? until : undefined;
}

/** By what the service has answered, to its caller or to the gateway since. */
function reasonFor(
  { answer, seen }: PaymentRecord,
  asked: OrderSummary,
  safeToRetry: boolean,
): UnknownReason {
  if (answer !== null) return reasonOf(answer.kind, answer.status);
  if (seen === 'mismatch') return 'ANSWER_DOES_NOT_MATCH';
  if (seen === 'still-processing') return 'STILL_PROCESSING';
  return asked.operation === 'createMoneyOut' && !safeToRetry ? 'TOO_LATE_TO_ASK' : 'NO_ANSWER';
}

function transactionOf({ answer }: PaymentRecord): Transaction | null {
  const body = answer === null ? undefined : readAnswer(answer).body;
  return isTransaction(body) ? body : null;
}

/** That of the credit, where a refund is done that names no amount and no transaction. */
function amountOf({ answer }: PaymentRecord): string | undefined {
  return answer?.kind === 'done' ? toAmount(Object(readAnswer(answer).body)['amount']) : undefined;
}

const readAnswer = ({ status, text }: NonNullable<PaymentRecord['answer']>): UpstreamAnswer => ({
  status,
  text,
  body: parsed(text),
});

const written = (time: number): string => new Date(time).toISOString();
