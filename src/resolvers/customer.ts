import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import type { Account } from '../upstream/accounts.ts';
import type { Optional } from '../upstream/call/json.ts';
import { isUuid } from '../upstream/call/path.ts';
import type { Customer } from '../upstream/customers.ts';
import type { Instrument } from '../upstream/instruments.ts';
import { listOf, type Page, type PageArgs, pageOf } from './connection.ts';
import { argumentId } from './ids.ts';
import { instrumentPage } from './instrument.ts';
import { openEnum } from './open-enum.ts';
import { invalid, textOf } from './values.ts';

/** The states that the spec names for KYB. */
export const validationStatus = openEnum('CustomerValidationStatus', ['PENDING', 'VALIDATED']);

/** @throws BadInputError for an id that is no UUID. */
export const customer = (id: string, context: Context): MaybePromise<Customer | null> =>
  context.reads.session.customers.find('id', argumentId('id', 'uuid', id));

/** The customer of something that may name one. */
export function customerOf(
  holder: { readonly customerId?: Optional },
  context: Context,
): MaybePromise<Customer | null> {
  const id = textOf(holder.customerId, 'customerId');
  return id === null ? null : context.reads.session.customers.find('id', id);
}

/** The accounts that the upstream lists with this customer as their owner. */
export function customerAccounts(
  parent: Customer,
  args: PageArgs,
  context: Context,
): MaybePromise<Page<Account>> {
  const accounts = context.reads.session.accounts.where('ownerId', parent.id);
  const list = listOf(context.identity, `Customer ${parent.id} accounts`);
  const page = (all: readonly Account[]) => pageOf(list, all, args);
  return accounts instanceof Promise ? accounts.then(page) : page(accounts);
}

/** @throws UpstreamError `UPSTREAM_INVALID` for a customer whose id cannot be asked by. */
export async function customerInstruments(
  { id }: Customer,
  args: PageArgs,
  context: Context,
): Promise<Page<Instrument>> {
  if (!isUuid(id)) throw invalid('id', 'is no UUID');
  return instrumentPage(`Customer ${id} instruments`, args, context, id);
}
