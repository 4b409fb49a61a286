import type { Audit } from './audit.ts';
import type { Attempt } from './call/http.ts';
import { identified, type Optional } from './call/json.ts';
import type { RestChanges } from './call/rest.ts';
import type { Loader } from './lists/loader.ts';
import type { ListDefinition } from './lists/reader.ts';

/** A private account with its CLABE and balance (docs/upstream-api.md, "PrivateAccount"). */
export interface Account {
  readonly id: string;
  readonly bankId?: Optional;
  readonly clientId: string;
  readonly clientBankAdapterId: string;
  readonly accountId: string;
  readonly instrumentId?: Optional;
  readonly ownerId: string;
  readonly ownerType?: Optional;
  readonly accountNumber: string;
  readonly clabeNumber: string;
  /** Pesos, a decimal string with two places. */
  readonly availableBalance: string;
  readonly accountType: string;
  readonly accountStatus: string;
  readonly audit?: Audit | null;
  readonly bankAdapter?: Optional;
}

export interface PrivateAccountBody {
  readonly bank_id: string;
  readonly owner_id: string;
  readonly client_bank_adapter_id: string;
  readonly client_id: string;
  readonly account_id: string;
}

/** Which of the fields are required is not shown: absent ones are left out (docs/assumptions.md). */
export interface CustomerPrivateAccountBody {
  readonly client_id: string;
  readonly client_bank_adapter_id?: string;
  readonly bank_id?: string;
  readonly owner_id?: string;
}

export const ACCOUNTS = '/v1/clients/{clientId}/accounts';
export const PRIVATE_ACCOUNTS = '/v1/clients/{clientId}/private_accounts';
export const CUSTOMER_PRIVATE_ACCOUNTS = '/v1/clients/{clientId}/customers/{customerId}/private_accounts';

/** All accounts that the upstream lists for the client (docs/upstream-api.md, endpoint 4). */
export const ACCOUNT_LIST: ListDefinition<Account> = {
  route: ACCOUNTS,
  envelope: {
    items: 'data',
    total: 'totalItem',
    page: 'currentPage',
    size: 'perPage',
    pageParameter: 'page',
    sizeParameter: 'per_page',
  },
  keys: ['id', 'instrumentId', 'accountNumber', 'clabeNumber', 'ownerId'],
  identify: (item) => identified<Account>(item, 'an account'),
};

/** The client's accounts. */
export type AccountLoader = Loader<Account>;

/** Creates an account of the client (docs/upstream-api.md, endpoint 5). */
export const createPrivateAccount = (rest: RestChanges, body: PrivateAccountBody): Promise<Attempt> =>
  rest.send('POST', PRIVATE_ACCOUNTS, { body: JSON.stringify(body) });

/** Creates an account of one of its customers (docs/upstream-api.md, endpoint 6). */
export const createCustomerPrivateAccount = (
  rest: RestChanges,
  customerId: string,
  body: CustomerPrivateAccountBody,
): Promise<Attempt> =>
  rest.send('POST', CUSTOMER_PRIVATE_ACCOUNTS, { params: { customerId }, body: JSON.stringify(body) });
