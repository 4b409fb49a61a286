import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import { type Optional, present } from '../upstream/json.ts';
import type { Transaction, TransactionMatch } from '../upstream/transactions.ts';
import { argumentId } from './ids.ts';
import { openEnum } from './open-enum.ts';

export const transactionStatus = openEnum('TransactionStatus', ['INITIALIZED', 'LIQUIDATED', 'REFUNDED']);
export const transactionCategory = openEnum('TransactionCategory', ['DEBIT_TRANS', 'INTER_TRANS']);
export const transactionSubCategory = openEnum('TransactionSubCategory', [
  'SPEI_DEBIT',
  'SPEI_CREDIT',
  'INT_DEBIT',
  'INT_CREDIT',
]);

/** @throws BadInputError for a malformed id. */
export function transaction(
  id: string,
  match: TransactionMatch | null | undefined,
  context: Context,
): Promise<Transaction | null> {
  if (match?.bankId != null) argumentId('match.bankId', 'uuid', match.bankId);
  return context.session.transactions.get(argumentId('id', 'uuid', id), match ?? undefined);
}

/** The transaction that something names; null when it names none. */
export function transactionOf(id: Optional, context: Context): MaybePromise<Transaction | null> {
  const named = present(id);
  return named === null ? null : context.session.transactions.get(named);
}

/** A reference whose structure the spec does not show: a text as it is, anything else as its JSON. */
export function jsonReference(parent: Transaction): string | null {
  const value = parent.jsonReference;
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? present(value) : JSON.stringify(value);
}
