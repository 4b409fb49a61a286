import type { Account } from './accounts.ts';
import { type Optional, present } from './call/json.ts';
import type { Customer } from './customers.ts';

/** The two fields in which the service names an instrument's owner. */
interface OwnedInstrument {
  readonly ownerId?: Optional;
  readonly customerId?: Optional;
}

/**
 * What a caller may see of the client's belongings: all, or those of one customer (docs/authentication.md, "customer_id"). It
 * alone decides; the session asks it about everything that it reads and changes.
 */
export interface CustomerScope {
  /** The customer that the caller is narrowed to, in lower case; undefined for all of the client. */
  readonly customerId: string | undefined;
  /** True if what this owner has is in scope. */
  owner(ownerId: Optional): boolean;
  account(account: Account): boolean;
  customer(customer: Customer): boolean;
  instrument(instrument: OwnedInstrument): boolean;
  /** True if the caller may see what belongs to no customer: the client's webhooks, and whatever names no owner. */
  readonly wholeClient: boolean;
}

/**
 * Returns the id of an instrument's owner; null if it names none. `ownerId` equals `customerId` when a customer owns it
 * (docs/upstream-api.md, "Instrument"), so an instrument that names two owners is nobody's.
 */
export function instrumentOwner({ ownerId, customerId }: OwnedInstrument): string | null {
  const [owner, customer] = [present(ownerId), present(customerId)];
  if (owner === null || customer === null) return owner ?? customer;
  return owner.toLowerCase() === customer.toLowerCase() ? owner : null;
}

/** @param customer UUID of the customer that the caller is narrowed to; undefined for none. */
export function customerScope(customer: string | undefined): CustomerScope {
  const customerId = customer?.toLowerCase();
  const owner = (id: Optional): boolean =>
    customerId === undefined || present(id)?.toLowerCase() === customerId;
  return {
    customerId,
    owner,
    account: ({ ownerId }) => owner(ownerId),
    customer: ({ id }) => owner(id),
    instrument: (instrument) => owner(instrumentOwner(instrument)),
    wholeClient: customerId === undefined,
  };
}
