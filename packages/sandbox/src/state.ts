import { Things } from './things.ts';

/** When a thing was made and changed: ms since the epoch, undefined where it never happened. */
export interface Audit {
  createdAt: number;
  updatedAt: number;
  deletedAt?: number;
  blockedAt?: number;
}

export interface Client {
  id: string;
  name: string;
  rfc: string;
  apiKey: string;
  adapterId: string;
  credentials: Credential[];
  /** The instrument of the centralizing account. */
  centralizingInstrumentId: string;
}

export interface Credential extends Audit {
  id: string;
  secret: string;
  status: 'ACTIVE' | 'INACTIVE';
}

export interface Token {
  id: string;
  clientId: string;
  credentialId: string;
  token: string;
  /** Real time, not simulated. */
  createdAt: number;
  expiresAt: number;
}

export interface Customer extends Audit {
  id: string;
  clientId: string;
  name: string;
  rfc: string;
  representative: { name: string; rfc: string; phone: string; email: string };
  domain: string;
  alias: string;
  status: string;
  validationStatus: 'PENDING' | 'VALIDATED';
}

export interface Account extends Audit {
  id: string;
  /** The `account_id` of the request that opened it; no other thing refers to the account by it. */
  requestedId: string;
  instrumentId: string;
  clientId: string;
  ownerId: string;
  ownerType: 'CLIENT' | 'CUSTOMER';
  bankId: string;
  adapterId: string;
  accountNumber: string;
  clabeNumber: string;
  accountType: string;
  status: string;
}

export interface CardDetail {
  kind: 'card';
  cardNumber: string;
  expirationDate: string | undefined;
  holderName: string;
}

export interface ClabeDetail {
  kind: 'clabe';
  accountNumber: string;
  clabeNumber: string;
  holderName: string;
}

export interface Instrument extends Audit {
  id: string;
  bankId: string;
  clientId: string;
  ownerId: string;
  customerId: string | undefined;
  alias: string;
  type: 'RECEIVER' | 'SENDER_RECEIVER';
  status: 'ACTIVE' | 'INACTIVE' | 'BLOCKED';
  rfc: string;
  detail: CardDetail | ClabeDetail;
  /** The private account behind an internal instrument, by its `id`; undefined for an external one. */
  accountId: string | undefined;
}

export interface Cep {
  validationId: string;
  /** The `id_msg` of all its messages, where those share one. */
  messageId: string;
  status: 'PENDING' | 'DELAYED' | 'COMPLETED' | 'FAILED';
  createdAt: number;
  beneficiaryName?: string;
  beneficiaryRfc?: string;
  processedAt?: number;
  /** What somebody has asked of the receipt, over what its receiver says. */
  wish?: 'late' | 'never' | 'other-holder';
  /** A state that somebody wants shown, in place of PENDING and DELAYED, until the receipt ends. */
  shownAs?: string;
}

export interface Transaction extends Audit {
  id: string;
  bankId: string;
  clientId: string;
  externalReference: string;
  trackingId: string;
  description: string;
  amount: bigint;
  category: string;
  subCategory: string;
  status: string;
  source: Instrument;
  destination: Instrument;
  originalTransactionId?: string;
  /** Of a credit: the transfer of the sandbox's own that arrived by it. Its payer has the money again when the credit goes back. */
  comesFrom?: Transaction;
  cep?: Cep;
  /** Each state that it and its receipt have taken, oldest first. */
  trail: Step[];
}

/** A state, and when it was taken (ms since the epoch). */
export interface Step {
  at: number;
  of: 'transaction' | 'receipt';
  status: string;
}

export const WEBHOOK_TYPES = ['MONEY_IN', 'STATUS_UPDATE', 'CEP'] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number];

export interface Webhook extends Audit {
  id: string;
  clientId: string;
  url: string;
  token: string;
  type: WebhookType;
  authType: string;
  status: 'ACTIVE' | 'INACTIVE';
  deletedBy?: string;
}

export interface Bank {
  id: string;
  institutionCode: string;
  clabeCode: string;
  name: string;
}

/** Finds things that follow from a number. */
export interface Crowd {
  accountIdOfClabe(clabe: string): string | undefined;
  instrumentIdOfCustomer(customerId: string): string | undefined;
}

/** Everything that exists, by id, in the order of making. Money is in the ledger. */
export class State {
  readonly banks = new Map<string, Bank>();
  readonly clients = new Map<string, Client>();
  readonly customers = new Things<Customer>();
  readonly accounts = new Things<Account>();
  readonly instruments = new Things<Instrument>();
  readonly transactions = new Map<string, Transaction>();
  readonly webhooks = new Things<Webhook>();
  /** By the JWT itself. */
  readonly tokens = new Map<string, Token>();

  /** What finds things that follow from a number (crowd.ts); undefined where there are none. */
  crowd: Crowd | undefined;

  accountByClabe(clabe: string): Account | undefined {
    const numbered = this.crowd?.accountIdOfClabe(clabe);
    if (numbered !== undefined) return this.accounts.get(numbered);
    return this.accounts.values().find((account) => account.clabeNumber === clabe);
  }

  bankByInstitution(code: string): Bank | undefined {
    return this.banks.values().find((bank) => bank.institutionCode === code);
  }

  bankByClabe(clabe: string): Bank | undefined {
    return this.banks.values().find((bank) => bank.clabeCode === clabe.slice(0, 3));
  }

  /** Webhooks that would get a message of this type now. */
  activeWebhooks(clientId: string, type: WebhookType): Webhook[] {
    return this.webhooks
      .made(clientId)
      .filter(
        (webhook) => webhook.type === type && webhook.status === 'ACTIVE' && webhook.deletedAt === undefined,
      );
  }
}
