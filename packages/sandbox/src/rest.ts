/*
 * The bodies of the REST service as TypeScript types, for programs that call it and for tests that read its answers. They
 * describe what is answered under the default choices (docs/sandbox.md, "What the spec leaves open"), and what builds an
 * answer returns these types.
 */

/** `2026-11-20 03:04:05.123000-06:00`, or a form of it that the choices name. */
export type Timestamp = string;
/** Absent ones are null or the text `None`. */
export type MaybeTimestamp = string | null;
/** Pesos with two decimals, `1250.00`. */
export type Amount = string;

export interface RestAudit {
  createdAt: MaybeTimestamp;
  updatedAt: MaybeTimestamp;
  deletedAt: MaybeTimestamp;
  blockedAt: MaybeTimestamp;
}

export interface RestCredential {
  id: string;
  client_id: string;
  client_secret: string;
  environment: string;
  status: 'ACTIVE' | 'INACTIVE';
  created_at: MaybeTimestamp;
  updated_at: MaybeTimestamp;
  deleted_at: MaybeTimestamp;
}

export interface RestToken {
  id: string;
  client_id: string;
  client_credential_id: string;
  /** The JWT. */
  token: string;
  status: 'ACTIVE' | 'INACTIVE';
  expires_at: MaybeTimestamp;
  created_at: MaybeTimestamp;
  updated_at: MaybeTimestamp;
  deleted_at: MaybeTimestamp;
}

/** Its fields have other names where the choice `bankFields` says so. */
export interface RestBank {
  id: string;
  name: string;
  institutionCode: string;
  clabeCode: string;
}

export interface RestAccount {
  id: string;
  bankId: string;
  clientId: string;
  clientBankAdapterId: string;
  accountId: string;
  instrumentId: string;
  ownerId: string;
  ownerType: 'CLIENT' | 'CUSTOMER';
  accountNumber: string;
  clabeNumber: string;
  availableBalance: Amount;
  accountType: string;
  accountStatus: string;
  audit: RestAudit & { activatedAt: MaybeTimestamp; suspendedAt: MaybeTimestamp };
  /** A list may leave it out. */
  bankAdapter?: string;
}

export interface RestCustomer {
  id: string;
  clientId: string;
  name: string;
  rfc: string;
  legalRepresentativeName: string;
  legalRepresentativeRfc: string;
  legalRepresentativePhone: string;
  legalRepresentativeEmail: string;
  domain: string;
  customerAlias: string;
  customerStatus: string;
  customerValidationStatus: 'PENDING' | 'VALIDATED';
  audit: RestAudit;
}

export interface RestClabe {
  accountNumber: string;
  clabeNumber: string;
  holderName: string;
}

export interface RestCard {
  cardNumber: string;
  expirationDate: string | null;
  holderName: string;
}

export interface RestInstrument {
  id: string;
  bankId: string;
  clientId: string;
  ownerId: string;
  customerId?: string;
  alias: string;
  type: 'RECEIVER' | 'SENDER_RECEIVER';
  rfc: string;
  audit: RestAudit;
  instrumentDetail: RestClabe | RestCard;
}

/** An instrument as a transaction shows it. */
export interface RestParty {
  id: string;
  bankId: string;
  clientId: string;
  ownerId: string;
  instrumentAlias: string;
  instrumentStatus: 'ACTIVE' | 'INACTIVE' | 'BLOCKED';
  instrumentType: 'RECEIVER' | 'SENDER_RECEIVER';
  instrumentDetail: RestClabe | RestCard;
  rfc: string;
}

/** The receipt (CEP) of a penny validation. */
export interface RestCep {
  cepUrl: string;
  validationId: string;
  status: 'INITIALIZED' | 'PENDING' | 'DELAYED' | 'COMPLETED' | 'FAILED';
  createdAt: Timestamp;
  beneficiaryName?: string | undefined;
  beneficiaryRfc?: string | undefined;
  processedAt?: Timestamp;
}

/** What a request that moves money answers. */
export interface RestNewTransaction {
  id: string;
  bankId: string;
  clientId: string;
  externalReference: string;
  trackingId: string;
  description: string;
  amount: Amount;
  currency: 'MXN';
  category: string;
  subCategory: string;
  /** `INITIALIZED`, `LIQUIDATED`, `REFUNDED`; others where the choice `valuesBeyondTheSpec` says so. */
  transactionStatus: string;
  audit: RestAudit;
  originalTransactionId?: string;
  metadata?: { dataCep: RestCep };
}

/** What a read of a transaction answers. */
export interface RestTransaction extends RestNewTransaction {
  jsonReference?: string;
  sourceInstrument: RestParty;
  destinationInstrument: RestParty;
}

export type RestWebhookType = 'MONEY_IN' | 'STATUS_UPDATE' | 'CEP';

export interface RestWebhook {
  id: string;
  clientId: string;
  url: string;
  token: string;
  webhookType: RestWebhookType;
  authType: string;
  webhookStatus: 'ACTIVE' | 'INACTIVE';
  createdAt: MaybeTimestamp;
  updatedAt: MaybeTimestamp;
  deletedAt: MaybeTimestamp;
  blockedAt: MaybeTimestamp;
  deletedBy?: string | null;
  blockedBy?: string | null;
}

/** The body of every refusal. */
export interface RestError {
  code: number;
  message: string;
  details: {
    '@type': string;
    reason: string;
    domain: string;
    metadata: {
      error_detail: string;
      http_code: string;
      module: string;
      method_name: string;
      error_code: string;
    };
  }[];
}

interface Parties {
  client_id: string;
  source_instrument_id: string;
  destination_instrument_id: string;
}

export interface RestTransfer extends Parties {
  transaction_request: {
    /** At most 7 digits. */
    external_reference: string;
    description: string;
    amount: Amount;
    currency: string;
  };
}

export interface RestPennyValidation extends Parties {
  description?: string | undefined;
  external_reference?: string | undefined;
}

export type RestRefund =
  | { amount: Amount; description: string }
  | { refundReason: string; amount?: undefined };

export interface RestNewAccount {
  bank_id: string;
  owner_id: string;
  client_bank_adapter_id: string;
  client_id: string;
  account_id: string;
}

export interface RestNewInstrument {
  source_bank_id: string;
  client_id: string;
  customer_id?: string | undefined;
  type: 'RECEIVER';
  rfc: string;
  alias: string;
  debit_card?: { destination_bank_id: string; card_number: string; holder_name: string } | undefined;
  /** By default `{ destination_bank_id, clabe_number, holder_name }`; see the choice `virtualClabeFields`. */
  virtual_clabe?: Record<string, unknown> | undefined;
  instrumentKind?: string | undefined;
}

export interface RestNewWebhook {
  client_id: string;
  url: string;
  token: string;
  webhook_type: RestWebhookType;
  auth_type?: string | undefined;
}

export interface RestWebhookChange {
  url?: string | undefined;
  token?: string | undefined;
  webhook_status?: 'ACTIVE' | 'INACTIVE' | undefined;
  auth_type?: string | undefined;
}
