import { isRounded } from '../common/long-numbers.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import { type Optional, present } from '../upstream/call/json.ts';
import type { Transaction, TransactionMatch } from '../upstream/transactions.ts';
import { BadInputError } from './errors.ts';
import { argumentId } from './ids.ts';
import { openEnum } from './open-enum.ts';
import { invalid, namedId } from './values.ts';

export const transactionStatus = openEnum('TransactionStatus', ['INITIALIZED', 'LIQUIDATED', 'REFUNDED']);
export const transactionCategory = openEnum('TransactionCategory', ['DEBIT_TRANS', 'INTER_TRANS']);
export const transactionSubCategory = openEnum('TransactionSubCategory', [
  'SPEI_DEBIT',
  'SPEI_CREDIT',
  'INT_DEBIT',
  'INT_CREDIT',
]);

/** Sub-categories that `refundTransaction` cannot refund: external SPEI credits alone can be (docs/upstream-api.md, endpoint 14). */
const NEVER_REFUNDED = ['SPEI_DEBIT', 'INT_DEBIT', 'INT_CREDIT'];

/** Whether the service says that `refundTransaction` is not for a transaction. */
export const isNeverRefunded = ({ subCategory }: Transaction): boolean =>
  NEVER_REFUNDED.includes(subCategory);

/** Sub-categories for which no documented state follows LIQUIDATED. A transfer out may still be returned (docs/assumptions.md, "final states"). */
const FINAL_ONCE_LIQUIDATED = ['SPEI_DEBIT', 'INT_DEBIT', 'INT_CREDIT'];

/**
 * Whether the status of a transaction can no longer change, as far as the spec says: a refund alone is documented to follow
 * LIQUIDATED (docs/assumptions.md, "final states").
 */
export function isSettled(transaction: Transaction): boolean {
  const { transactionStatus: status } = transaction;
  return (
    status === 'REFUNDED' ||
    (status === 'LIQUIDATED' && FINAL_ONCE_LIQUIDATED.includes(transaction.subCategory))
  );
}

/** @throws BadInputError for a malformed id, and for what the service could not be asked by. */
export function transaction(
  id: string,
  match: TransactionMatch | null | undefined,
  context: Context,
): Promise<Transaction | null> {
  if (match?.bankId != null) argumentId('match.bankId', 'uuid', match.bankId);
  for (const name of ['status', 'trackingId', 'category'] as const) {
    const value = match?.[name];
    if (value === '') throw new BadInputError(`Argument "match.${name}" must not be empty.`);
    // It goes into an address, which can hold none.
    if (value?.isWellFormed() === false)
      throw new BadInputError(`Argument "match.${name}" must hold no half of a surrogate pair.`);
  }
  return context.reads.session.transactions.get(argumentId('id', 'uuid', id), match ?? undefined);
}

/** The transaction that something names; null when it names none. */
export function transactionOf(id: Optional, context: Context): MaybePromise<Transaction | null> {
  const named = namedId(id, 'transactionId');
  return named === null ? null : context.reads.session.transactions.get(named);
}

/**
 * A reference whose structure the spec does not show: a text as it is, anything else as its JSON.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` where that holds a number of which digits are lost: it would name something else.
 */
export function jsonReference(parent: Transaction): string | null {
  const value = parent.jsonReference;
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return present(value);
  return JSON.stringify(value, (_name, part: unknown) => {
    if (isRounded(part)) throw invalid('jsonReference', 'holds a number of more digits than are read');
    return part;
  });
}
