import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import type { Optional } from '../upstream/call/json.ts';
import { idKey } from '../upstream/call/path.ts';
import type { Customer } from '../upstream/customers.ts';
import { Client } from './client.ts';
import { textOf } from './values.ts';

export type Owner = Client | Customer;

/** The client or the customer that an owner's id names; null when it names neither. */
export function ownerOf(
  holder: { readonly ownerId?: Optional },
  context: Context,
): MaybePromise<Owner | null> {
  const id = textOf(holder.ownerId, 'ownerId');
  if (id === null) return null;
  const { session } = context.reads;
  return idKey(id) === idKey(session.clientId)
    ? new Client(session.clientId)
    : session.customers.find('id', id);
}
