import type {
  RestAccount,
  RestBank,
  RestCredential,
  RestCustomer,
  RestInstrument,
  RestNewAccount,
  RestNewInstrument,
  RestNewTransaction,
  RestNewWebhook,
  RestPennyValidation,
  RestRefund,
  RestToken,
  RestTransaction,
  RestTransfer,
  RestWebhook,
  RestWebhookChange,
} from './rest.ts';

/** One page of a list; `totalItems` counts all of it. */
export interface RestPage<T> {
  currentPage: number;
  perPage: number;
  totalItems: number;
  data: T[];
}

/** As {@link RestPage}, in the lists that write `totalItem`. */
export interface RestItemPage<T> {
  currentPage: number;
  perPage: number;
  totalItem: number;
  data: T[];
}

export interface RestBankPage {
  total_banks: number;
  page: number;
  page_size: number;
  banks: RestBank[];
}

/** What each endpoint answers when it does as it is asked, under the default choices. */
export interface RestAnswers {
  'GET /v1/clients/{clientId}/credentials': { data: RestCredential[] };
  'POST /v1/clients/{clientId}/auth/credential-tokens': RestToken;
  'GET /v1/banks': RestBankPage;
  'GET /v1/clients/{clientId}/accounts': RestItemPage<RestAccount>;
  'POST /v1/clients/{clientId}/private_accounts': RestAccount;
  'POST /v1/clients/{clientId}/customers/{customerId}/private_accounts': RestAccount;
  'GET /v1/clients/{clientId}/customers': RestPage<RestCustomer>;
  'GET /v1/clients/{clientId}/instruments': RestPage<RestInstrument>;
  'GET /v1/clients/{clientId}/instruments/{instrumentId}': RestInstrument;
  'POST /v1/clients/{clientId}/instruments': RestInstrument;
  'POST /v1/transactions/money_out': RestNewTransaction;
  'POST /v1/transactions/internal_transaction': RestNewTransaction;
  'POST /v1/transactions/penny_validation': RestNewTransaction;
  'POST /v1/clients/{clientId}/transactions/{transactionId}/refund': RestNewTransaction;
  'GET /v1/clients/{clientId}/transactions/{transactionId}': RestTransaction;
  'GET /v1/clients/{clientId}/webhooks': RestItemPage<RestWebhook>;
  'POST /v1/clients/{clientId}/webhooks': RestWebhook;
  'GET /v1/clients/{clientId}/webhooks/{id}': RestWebhook;
  'PATCH /v1/clients/{clientId}/webhooks/{id}': RestWebhook;
  'DELETE /v1/clients/{clientId}/webhooks/{id}': undefined;
  'POST /v1/webhooks': RestWebhook;
}

/** What is sent to each endpoint that takes a body. */
export interface RestBodies {
  'POST /v1/clients/{clientId}/auth/credential-tokens': { client_id: string; client_secret: string };
  'POST /v1/clients/{clientId}/private_accounts': RestNewAccount;
  'POST /v1/clients/{clientId}/customers/{customerId}/private_accounts': Partial<RestNewAccount>;
  'POST /v1/clients/{clientId}/instruments': RestNewInstrument;
  'POST /v1/transactions/money_out': RestTransfer;
  'POST /v1/transactions/internal_transaction': RestTransfer;
  'POST /v1/transactions/penny_validation': RestPennyValidation;
  'POST /v1/clients/{clientId}/transactions/{transactionId}/refund': RestRefund;
  'POST /v1/clients/{clientId}/webhooks': RestNewWebhook;
  'PATCH /v1/clients/{clientId}/webhooks/{id}': RestWebhookChange;
  'POST /v1/webhooks': RestNewWebhook;
}

/** An endpoint by its method and its path, as docs/upstream-api.md writes them and `requests()` counts them. */
export type Endpoint = keyof RestAnswers;

type NamesIn<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** The names of the parameters in the paths of all endpoints. */
export type PathParameter = NamesIn<Endpoint>;
