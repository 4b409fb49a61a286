import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import type { Bank } from '../upstream/banks.ts';
import type { Optional } from '../upstream/call/json.ts';
import { argumentId } from './ids.ts';
import { textOf } from './values.ts';

/** The SPEI participant catalog, whole. */
export const banks = (context: Context): Promise<readonly Bank[]> => context.reads.session.banks.all();

/** @throws BadInputError for an id that is no UUID. */
export const bank = (id: string, context: Context): MaybePromise<Bank | null> =>
  context.reads.session.banks.find('id', argumentId('id', 'uuid', id));

/** The bank of something that names one. */
export function bankOf(holder: { readonly bankId?: Optional }, context: Context): MaybePromise<Bank | null> {
  const id = textOf(holder.bankId, 'bankId');
  return id === null ? null : context.reads.session.banks.find('id', id);
}
