import type { Audit } from './audit.ts';
import { identified, type Optional } from './call/json.ts';
import type { Loader } from './lists/loader.ts';
import type { ListDefinition } from './lists/reader.ts';

/** A Business Unit, as endpoint 7 lists it (docs/upstream-api.md, "Customer"). */
export interface Customer {
  readonly id: string;
  readonly clientId: string;
  readonly name: string;
  readonly rfc: string;
  readonly legalRepresentativeName?: Optional;
  readonly legalRepresentativeRfc?: Optional;
  readonly legalRepresentativePhone?: Optional;
  readonly legalRepresentativeEmail?: Optional;
  readonly domain?: Optional;
  readonly customerAlias?: Optional;
  readonly customerStatus: string;
  readonly customerValidationStatus: string;
  readonly audit?: Audit | null;
}

export const CUSTOMERS = '/v1/clients/{clientId}/customers';

/** All customers of the client (docs/upstream-api.md, endpoint 7). */
export const CUSTOMER_LIST: ListDefinition<Customer> = {
  route: CUSTOMERS,
  envelope: {
    items: 'data',
    total: 'totalItems',
    page: 'currentPage',
    size: 'perPage',
    pageParameter: 'page',
    sizeParameter: 'per_page',
  },
  keys: ['id'],
  identify: (item) => identified<Customer>(item, 'a customer'),
};

/** The client's customers. */
export type CustomerLoader = Loader<Customer>;
