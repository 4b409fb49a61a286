import { makeClabe } from './clabe.ts';
import { controlEntries } from './control-reference.ts';
import type { ClientView } from './control-views.ts';
import type { Endpoint, PathParameter } from './endpoints.ts';
import type { Entry, ReferenceEntry } from './reference-entry.ts';

/** What there is at this moment to read, change or refund; empty where there is none. */
interface Present {
  webhookId: string;
  creditId: string;
}

/**
 * The service's endpoints in the order of its documents, then the sandbox's control. They can be sent in this order: what one names, an earlier
 * one has not used up.
 */
export function reference(demo: ClientView, { webhookId, creditId }: Present): ReferenceEntry[] {
  const parameters: Record<PathParameter, string> = {
    clientId: demo.clientId,
    customerId: demo.customerIds[0] ?? '',
    instrumentId: demo.clabeInstrumentIds[0] ?? '',
    transactionId: creditId,
    id: webhookId,
  };
  const values = new Map<string, string>(Object.entries(parameters));
  const make = (key: string, entry: Entry, auth: ReferenceEntry['auth']): ReferenceEntry => {
    const [method = '', path = ''] = key.split(' ');
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const { number, en, es, query = {}, body = null } = entry;
    const own = Object.fromEntries(names.map((name) => [name, values.get(name) ?? '']));
    return { number, method, path, summary: { en, es }, auth, parameters: own, query, body };
  };
  return [
    ...Object.entries(serviceEntries(demo)).map(([key, entry]) => make(key, entry, entry.auth ?? 'token')),
    ...Object.entries(controlEntries(demo)).map(([key, entry]) => make(key, entry, null)),
  ];
}

function serviceEntries(demo: ClientView): Record<Endpoint, Entry> {
  return {
    ...credentials(demo),
    ...accounts(demo),
    ...instruments(demo),
    ...payments(demo),
    ...webhooks(demo),
  };
}

type OfPath<Text extends string> = Extract<Endpoint, `${string} ${Text}`>;
type Payments = OfPath<`${string}/transactions${string}`>;
type Webhooks = OfPath<`${string}/webhooks${string}`>;
type Instruments = OfPath<`${string}/instruments${string}`>;
type Credentials = OfPath<`${string}/credential${string}`>;
type Accounts = Exclude<Endpoint, Payments | Webhooks | Instruments | Credentials>;

function credentials(demo: ClientView): Record<Credentials, Entry> {
  return {
    'GET /v1/clients/{clientId}/credentials': {
      number: 1,
      en: 'Lists the credentials of the client.',
      es: 'Lista las credenciales del cliente.',
      auth: 'key',
    },
    'POST /v1/clients/{clientId}/auth/credential-tokens': {
      number: 2,
      en: 'Issues an access token for a client and its secret.',
      es: 'Emite un token de acceso para un cliente y su secreto.',
      auth: 'key',
      body: { client_id: demo.clientId, client_secret: demo.clientSecret },
    },
  };
}

function accounts(demo: ClientView): Record<Accounts, Entry> {
  const { clientId: client_id, clientBankAdapterId: client_bank_adapter_id } = demo;
  const account = { client_id, client_bank_adapter_id, bank_id: demo.bankIds[0] ?? '' };
  return {
    'GET /v1/banks': {
      number: 3,
      en: 'Lists the SPEI participants.',
      es: 'Lista los participantes del SPEI.',
    },
    'GET /v1/clients/{clientId}/accounts': {
      number: 4,
      en: 'Lists the accounts, with their balances.',
      es: 'Lista las cuentas con sus saldos.',
    },
    'POST /v1/clients/{clientId}/private_accounts': {
      number: 5,
      en: 'Opens an account of the client.',
      es: 'Abre una cuenta del cliente.',
      body: { ...account, owner_id: client_id, account_id: demo.accountIds[0] },
    },
    'POST /v1/clients/{clientId}/customers/{customerId}/private_accounts': {
      number: 6,
      en: 'Opens an account of a customer.',
      es: 'Abre una cuenta de un cliente final.',
      body: { ...account, owner_id: demo.customerIds[0] ?? '' },
    },
    'GET /v1/clients/{clientId}/customers': {
      number: 7,
      en: 'Lists the customers.',
      es: 'Lista los clientes finales.',
    },
  };
}

function instruments({ clientId, bankIds }: ClientView): Record<Instruments, Entry> {
  const bank_id = bankIds[0] ?? '';
  return {
    'GET /v1/clients/{clientId}/instruments': {
      number: 8,
      en: 'Lists the instruments: accounts and cards that pay or are paid.',
      es: 'Lista los instrumentos: cuentas y tarjetas que pagan o reciben.',
      query: { page: '1', per_page: '20', customer_id: '' },
    },
    'GET /v1/clients/{clientId}/instruments/{instrumentId}': {
      number: 9,
      en: 'Reads one instrument.',
      es: 'Consulta un instrumento.',
    },
    'POST /v1/clients/{clientId}/instruments': {
      number: 10,
      en: 'Registers a receiver by CLABE or debit card.',
      es: 'Registra un beneficiario por CLABE o tarjeta de débito.',
      body: {
        source_bank_id: bank_id,
        client_id: clientId,
        type: 'RECEIVER',
        rfc: 'ND',
        alias: 'Proveedor nuevo',
        virtual_clabe: {
          destination_bank_id: bank_id,
          clabe_number: makeClabe('012', '180', '01234567890'),
          holder_name: 'Lucía Campos Ríos',
        },
      },
    },
  };
}

function payments(demo: ClientView): Record<Payments, Entry> {
  const source_instrument_id = demo.centralizingInstrumentId;
  const destination = (id: string | undefined) => ({
    client_id: demo.clientId,
    source_instrument_id,
    destination_instrument_id: id,
  });
  const transaction_request = {
    external_reference: '1234567',
    description: 'Pago de prueba',
    amount: '150.00',
    currency: 'MXN',
  };
  return {
    'POST /v1/transactions/money_out': {
      number: 11,
      en: 'Pays by SPEI. The header Idempotency-Key is optional: a UUID of version 5.',
      es: 'Paga por SPEI. El encabezado Idempotency-Key es opcional: un UUID versión 5.',
      body: { ...destination(demo.clabeInstrumentIds[0]), transaction_request },
    },
    'POST /v1/transactions/internal_transaction': {
      number: 12,
      en: 'Moves money between two accounts of the provider.',
      es: 'Mueve dinero entre dos cuentas del proveedor.',
      body: { ...destination(demo.internalInstrumentIds[1]), transaction_request },
    },
    'POST /v1/transactions/penny_validation': {
      number: 13,
      en: 'Sends 0.01 MXN to a CLABE, whose receipt (CEP) names the holder.',
      es: 'Envía 0.01 MXN a una CLABE, cuyo comprobante (CEP) revela al titular.',
      body: destination(demo.clabeInstrumentIds[0]),
    },
    'POST /v1/clients/{clientId}/transactions/{transactionId}/refund': {
      number: 14,
      en: 'Sends a received SPEI credit back, once.',
      es: 'Devuelve un abono SPEI recibido, una sola vez.',
      body: { refundReason: 'Devolucion' },
    },
    'GET /v1/clients/{clientId}/transactions/{transactionId}': {
      number: 15,
      en: 'Reads one transaction.',
      es: 'Consulta una transacción.',
      query: { transaction_status: '', tracking_id: '', transaction_category: '', bank_id: '' },
    },
  };
}

function webhooks(demo: ClientView): Record<Webhooks, Entry> {
  const url = 'http://127.0.0.1:9999/webhooks';
  const registration = { client_id: demo.clientId, url, token: 'a-token', webhook_type: 'MONEY_IN' };
  return {
    'GET /v1/clients/{clientId}/webhooks': {
      number: 16,
      en: 'Lists the webhooks.',
      es: 'Lista los webhooks.',
    },
    'POST /v1/clients/{clientId}/webhooks': {
      number: 17,
      en: 'Registers a webhook: MONEY_IN, STATUS_UPDATE or CEP.',
      es: 'Registra un webhook: MONEY_IN, STATUS_UPDATE o CEP.',
      body: { ...registration, auth_type: 'AUTH' },
    },
    'GET /v1/clients/{clientId}/webhooks/{id}': {
      number: 18,
      en: 'Reads one webhook.',
      es: 'Consulta un webhook.',
    },
    'PATCH /v1/clients/{clientId}/webhooks/{id}': {
      number: 18,
      en: 'Changes a webhook.',
      es: 'Modifica un webhook.',
      body: { webhook_status: 'ACTIVE' },
    },
    'DELETE /v1/clients/{clientId}/webhooks/{id}': {
      number: 18,
      en: 'Deletes a webhook.',
      es: 'Elimina un webhook.',
    },
    'POST /v1/webhooks': {
      number: 19,
      en: 'Registers a webhook; deprecated.',
      es: 'Registra un webhook; obsoleto.',
      body: registration,
    },
  };
}
