/**
 * What the spec leaves open ("not shown") and the sandbox therefore had to choose, in one place. A program that works
 * against `defaultChoices` and against `alternativeChoices` depends on none of them. docs/sandbox.md lists each.
 */
export interface Choices {
  /** Names of the fields of an item of GET /v1/banks. */
  bankFields: { id: string; name: string; institutionCode: string; clabeCode: string };
  /** Which JWT claim names the client, whose id `sub` carries, and whether there is an `exp`. */
  tokenClaims: { client: string; subject: 'client' | 'credential'; expires: boolean };
  /** Life of an access token in real seconds. */
  tokenTtlSeconds: number;
  /** Whether issuing a token ends the client's older ones. */
  newTokenEndsOlder: boolean;
  /** Page size of the instrument list, and the largest that can be asked for with `per_page`. */
  instrumentPage: PageRule;
  /** The same for accounts, customers and webhooks, whose parameters are not documented. */
  openListPage: PageRule;
  /** The same for banks. */
  bankPage: PageRule;
  /** Status of a created instrument (reference and guide differ). */
  instrumentCreated: 200 | 201;
  /** Status of a created webhook, on both endpoints. */
  webhookCreated: 200 | 201;
  /** Status of a refund (guide and reference differ). */
  refundCreated: 200 | 201;
  /** How a timestamp that is absent is written. */
  absentTimestamp: null | 'None';
  /** How timestamps are written in general, and in the receipt (CEP) fields. */
  timestamps: { general: TimestampForm; cep: TimestampForm };
  /** Whether states, types and kinds beyond the values seen in the spec appear. */
  valuesBeyondTheSpec: boolean;
  /** Whether every object in an answer or a webhook carries fields that the spec does not know. */
  extraFields: boolean;
  /** Whether fields that an answer may lack are left out. */
  leaveOutOptional: boolean;
  /** Body of 401, 403, 404 and 409. */
  errorPages: 'json' | 'html';
  /** What a token gets for another client's id in a path or body. */
  otherClient: 403 | 404;
  /** Whether GET accounts lists customers' accounts too. */
  accountsIncludeCustomers: boolean;
  /** What `id` in the body of a CEP message is. */
  cepBodyId: 'transaction' | 'validation';
  /** Whether all CEP messages of one validation share an `id_msg`. */
  cepSharesMessageId: boolean;
  /** Simulated seconds for which a read shows dataCep INITIALIZED. */
  cepInitializedSeconds: number;
  /** Simulated seconds after which the CEP of an ordinary destination is issued. */
  cepIssuedAfterSeconds: number;
  /** Whether a penny validation is refused while no CEP webhook is active. */
  pennyValidationNeedsWebhook: boolean;
  /** How the registered token is presented on delivery. */
  deliveryToken: { header: string; prefix: string };
  /** Deliveries after the first that got no proper answer, and real milliseconds until one is given up. */
  deliveryRetries: number;
  deliveryTimeoutMs: number;
  /** Form of STATUS_UPDATE messages, which the spec does not show. */
  statusUpdateForm: 'envelope' | 'bare';
  /** Bodies of webhook GET, PATCH and DELETE. */
  webhookAnswers: 'plain' | 'wrapped';
  /** Whether a deleted webhook stays in the list, with deletedAt and INACTIVE. */
  deletedWebhooksListed: boolean;
  /** Whether a credit that was refunded can be refunded again. */
  repeatedRefund: 'refused' | 'performed';
  /** Limit of a money out's description. */
  moneyOutDescription: 'fewer than 40' | 'unlimited';
  /** Which instruments a money out and a penny validation may start from. */
  moneyOutSource: 'any internal' | 'centralizing only';
  /** Whether an internal transaction from an instrument to itself is accepted. */
  sameInstrumentTransfer: 'accepted' | 'refused';
  /** What "same body" means for an Idempotency-Key, and whether keys are per client. */
  idempotencyBody: 'bytes' | 'value';
  idempotencyScope: 'client' | 'global';
  /** Simulated seconds from money out INITIALIZED to LIQUIDATED. */
  moneyOutSeconds: number;
  /** Category of a received SPEI credit. */
  creditCategory: string;
  /** Fields of `virtual_clabe`. */
  virtualClabeFields: { bank: string; clabe: string; holder: string };
  /** Whether `instrumentKind` must accompany a card. */
  instrumentKindRequired: boolean;
  /** Body fields that must be present on endpoint 6. */
  customerAccountRequires: readonly CustomerAccountField[];
  /** Simulated seconds from a customer's creation to VALIDATED. */
  kybSeconds: number;
}

export interface PageRule {
  size: number;
  max: number;
  /** Query parameter that sets the size; null when the size is fixed. */
  sizeParameter: 'per_page' | 'page_size' | null;
}

/** `offset`: space and UTC offset; `plain`: space, no offset; `iso`: ISO 8601 with `T`. */
export type TimestampForm = 'offset' | 'plain' | 'iso';

type CustomerAccountField = 'client_id' | 'client_bank_adapter_id' | 'bank_id' | 'owner_id';

export const defaultChoices: Choices = {
  bankFields: { id: 'id', name: 'name', institutionCode: 'institutionCode', clabeCode: 'clabeCode' },
  tokenClaims: { client: 'client_id', subject: 'client', expires: true },
  tokenTtlSeconds: 86_400,
  newTokenEndsOlder: false,
  instrumentPage: { size: 20, max: 100, sizeParameter: 'per_page' },
  openListPage: { size: 50, max: 100, sizeParameter: 'per_page' },
  bankPage: { size: 200, max: 200, sizeParameter: 'page_size' },
  instrumentCreated: 201,
  webhookCreated: 201,
  refundCreated: 200,
  absentTimestamp: null,
  timestamps: { general: 'offset', cep: 'offset' },
  valuesBeyondTheSpec: false,
  extraFields: false,
  leaveOutOptional: false,
  errorPages: 'json',
  otherClient: 403,
  accountsIncludeCustomers: true,
  cepBodyId: 'transaction',
  cepSharesMessageId: false,
  cepInitializedSeconds: 5,
  cepIssuedAfterSeconds: 90,
  pennyValidationNeedsWebhook: false,
  deliveryToken: { header: 'authorization', prefix: 'Bearer ' },
  deliveryRetries: 8,
  deliveryTimeoutMs: 10_000,
  statusUpdateForm: 'envelope',
  webhookAnswers: 'plain',
  deletedWebhooksListed: false,
  repeatedRefund: 'refused',
  moneyOutDescription: 'fewer than 40',
  moneyOutSource: 'any internal',
  sameInstrumentTransfer: 'accepted',
  idempotencyBody: 'bytes',
  idempotencyScope: 'client',
  moneyOutSeconds: 30,
  creditCategory: 'CREDIT_TRANS',
  virtualClabeFields: { bank: 'destination_bank_id', clabe: 'clabe_number', holder: 'holder_name' },
  instrumentKindRequired: false,
  customerAccountRequires: [],
  kybSeconds: 3_600,
};

export const alternativeChoices: Choices = {
  bankFields: { id: 'bank_id', name: 'bank_name', institutionCode: 'legal_code', clabeCode: 'clabe_prefix' },
  tokenClaims: { client: 'cid', subject: 'credential', expires: false },
  tokenTtlSeconds: 43_200,
  newTokenEndsOlder: true,
  instrumentPage: { size: 5, max: 7, sizeParameter: 'per_page' },
  openListPage: { size: 2, max: 2, sizeParameter: null },
  bankPage: { size: 25, max: 25, sizeParameter: null },
  instrumentCreated: 200,
  webhookCreated: 200,
  refundCreated: 201,
  absentTimestamp: 'None',
  timestamps: { general: 'plain', cep: 'iso' },
  valuesBeyondTheSpec: true,
  extraFields: true,
  leaveOutOptional: true,
  errorPages: 'html',
  otherClient: 404,
  accountsIncludeCustomers: false,
  cepBodyId: 'validation',
  cepSharesMessageId: true,
  cepInitializedSeconds: 20,
  cepIssuedAfterSeconds: 100,
  pennyValidationNeedsWebhook: true,
  deliveryToken: { header: 'x-webhook-token', prefix: '' },
  deliveryRetries: 4,
  deliveryTimeoutMs: 8_000,
  statusUpdateForm: 'bare',
  webhookAnswers: 'wrapped',
  deletedWebhooksListed: true,
  repeatedRefund: 'performed',
  moneyOutDescription: 'unlimited',
  moneyOutSource: 'centralizing only',
  sameInstrumentTransfer: 'refused',
  idempotencyBody: 'value',
  idempotencyScope: 'global',
  moneyOutSeconds: 45,
  creditCategory: 'SPEI_TRANS',
  virtualClabeFields: { bank: 'bank_id', clabe: 'clabe', holder: 'beneficiary_name' },
  instrumentKindRequired: true,
  customerAccountRequires: ['client_id', 'client_bank_adapter_id', 'bank_id', 'owner_id'],
  kybSeconds: 7_200,
};
