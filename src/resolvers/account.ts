import type { Context } from '../context.ts';
import type { Account } from '../upstream/accounts.ts';
import type { MaybePromise } from '../upstream/whole-list.ts';
import { BadInputError } from './errors.ts';
import { argumentId } from './ids.ts';

/** Exactly one of these is given. */
export interface AccountBy {
  readonly id?: string | null | undefined;
  readonly instrumentId?: string | null | undefined;
  readonly accountNumber?: string | null | undefined;
  readonly clabe?: string | null | undefined;
}

/**
 * The account that one of its four names finds in the client's list.
 *
 * @throws BadInputError for a malformed id.
 */
export function account(by: AccountBy, context: Context): MaybePromise<Account | null> {
  const { accounts } = context.session;
  if (by.id != null) return accounts.find('id', argumentId('by.id', 'uuid', by.id));
  if (by.instrumentId != null) {
    return accounts.find('instrumentId', argumentId('by.instrumentId', 'id', by.instrumentId));
  }
  if (by.accountNumber != null) return accounts.find('accountNumber', by.accountNumber);
  if (by.clabe != null) return accounts.find('clabeNumber', by.clabe);
  throw new BadInputError('Argument "by" must name one of id, instrumentId, accountNumber and clabe.');
}
