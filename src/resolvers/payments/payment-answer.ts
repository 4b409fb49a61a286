import { toAmount } from '../../common/amounts.ts';
import type { UpstreamAnswer } from '../../common/attempt.ts';
import type { MoneyMutation } from '../../money/intent.ts';
import type { Comparison } from '../../money/outcome.ts';
import { isObject, type Optional, present } from '../../upstream/call/json.ts';
import { isTransaction, type Transaction } from '../../upstream/transactions.ts';
import { saysCameBack, saysNotPaid } from './status-words.ts';

/** What an order says of the transaction that answers it. What is undefined may be anything. */
export interface Ordered {
  readonly mutation: MoneyMutation;
  readonly clientId: string;
  /** Pesos, with two decimals. */
  readonly amount: string | undefined;
  readonly sourceInstrumentId?: string;
  readonly destinationInstrumentId?: string;
  /** Of a refund: the credit that it returns. */
  readonly originalId?: string;
}

/** The documented kinds (docs/upstream-api.md, "Transaction"). That of a refund is not documented: it is no internal transaction. */
const CATEGORIES = ['DEBIT_TRANS', 'INTER_TRANS'];
const SUB_CATEGORIES = ['SPEI_DEBIT', 'INT_DEBIT', 'INT_CREDIT', 'SPEI_CREDIT'];
const SPEI_OUT = { categories: ['DEBIT_TRANS'], subCategories: ['SPEI_DEBIT'] };
const KINDS: Readonly<Record<MoneyMutation, { categories: string[]; subCategories: string[] }>> = {
  createMoneyOut: SPEI_OUT,
  createPennyValidation: SPEI_OUT,
  createInternalTransaction: { categories: ['INTER_TRANS'], subCategories: ['INT_DEBIT'] },
  refundTransaction: { categories: ['DEBIT_TRANS'], subCategories: ['SPEI_DEBIT', 'SPEI_CREDIT'] },
};

/**
 * Compares a 2xx answer with the order that it should answer, as far as it shows each: what it leaves out, and what the
 * documentation does not name, is no difference.
 */
export function compare(ordered: Ordered, { body }: UpstreamAnswer): Comparison {
  if (!isTransaction(body)) {
    // Without its id, or another field that each transaction has, it answers nothing.
    const looksLikeOne = isObject(body) && ['amount', 'transactionStatus'].every((field) => field in body);
    return looksLikeOne ? { kind: 'differs', fields: missing(body) } : { kind: 'unreadable' };
  }
  const fields = differences(ordered, body);
  return fields.length === 0 ? { kind: 'same' } : { kind: 'differs', fields };
}

function missing(body: Readonly<Record<string, unknown>>): readonly string[] {
  const wanted = ['id', 'currency', 'category', 'subCategory', 'transactionStatus'];
  const amount = toAmount(body['amount']) === undefined ? ['amount'] : [];
  return [...amount, ...wanted.filter((field) => typeof body[field] !== 'string')];
}

function differences(ordered: Ordered, found: Transaction): readonly string[] {
  const { originalId } = ordered;
  const { categories, subCategories } = KINDS[ordered.mutation];
  const id = present(found.id)?.toLowerCase();
  const wrong: Readonly<Record<string, boolean>> = {
    id: id === undefined || id === originalId?.toLowerCase(),
    clientId: isOther(found.clientId, ordered.clientId),
    amount: ordered.amount !== undefined && toAmount(found.amount) !== toAmount(ordered.amount),
    currency: isOther(found.currency, 'MXN'),
    category: CATEGORIES.includes(found.category) && !categories.includes(found.category),
    subCategory: SUB_CATEGORIES.includes(found.subCategory) && !subCategories.includes(found.subCategory),
    sourceInstrument: isOther(found.sourceInstrument?.id, ordered.sourceInstrumentId),
    destinationInstrument: isOther(found.destinationInstrument?.id, ordered.destinationInstrumentId),
    originalTransactionId: isOther(found.originalTransactionId, originalId),
    transactionStatus: saysNotPaid(found.transactionStatus) || saysCameBack(found.transactionStatus),
  };
  return Object.keys(wrong).filter((field) => wrong[field]);
}

/** Ids are compared without regard to case: they are UUIDs. */
const isOther = (found: Optional, wanted: string | undefined): boolean => {
  const shown = typeof found === 'string' ? present(found) : null;
  return shown !== null && wanted !== undefined && shown.toLowerCase() !== wanted.toLowerCase();
};
