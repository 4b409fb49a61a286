import { formatCents } from './amounts.ts';
import type { Choices, TimestampForm } from './choices.ts';
import { ledgerAccount } from './ledger.ts';
import type {
  RestAccount,
  RestAudit,
  RestBank,
  RestCep,
  RestCredential,
  RestCustomer,
  RestInstrument,
  RestNewTransaction,
  RestParty,
  RestToken,
  RestTransaction,
  RestWebhook,
} from './rest.ts';
import type {
  Account,
  Audit,
  Bank,
  Cep,
  Client,
  Credential,
  Customer,
  Instrument,
  Token,
  Transaction,
  Webhook,
} from './state.ts';
import { formatTimestamp } from './timestamps.ts';
import type { World } from './world.ts';

/** The name of the sandbox's bank adapter. */
const BANK_ADAPTER = 'SANDBOX_SPEI';

/** Adds, where the choices say so, fields to every object that no reader of the spec can know. */
export function withExtraFields(choices: Choices, value: unknown): unknown {
  if (!choices.extraFields) return value;
  if (Array.isArray(value)) return value.map((item) => withExtraFields(choices, item));
  if (typeof value !== 'object' || value === null) return value;
  const known = Object.entries(value).map(([name, field]) => [name, withExtraFields(choices, field)]);
  return { ...Object.fromEntries(known), xRevision: 7, x_links: [{ rel: 'self' }] };
}

export function viewCredential({ choices }: World, client: Client, credential: Credential): RestCredential {
  return {
    id: credential.id,
    client_id: client.id,
    client_secret: credential.secret,
    environment: 'staging',
    status: credential.status,
    created_at: stamp(choices, credential.createdAt),
    updated_at: stamp(choices, credential.updatedAt),
    deleted_at: stamp(choices, credential.deletedAt),
  };
}

export function viewToken({ choices }: World, token: Token): RestToken {
  return {
    id: token.id,
    client_id: token.clientId,
    client_credential_id: token.credentialId,
    token: token.token,
    status: 'ACTIVE',
    expires_at: stamp(choices, token.expiresAt),
    created_at: stamp(choices, token.createdAt),
    updated_at: stamp(choices, token.createdAt),
    deleted_at: stamp(choices, undefined),
  };
}

export function viewBank({ choices }: World, bank: Bank): RestBank {
  const names = choices.bankFields;
  const named: Record<string, string> = {
    [names.id]: bank.id,
    [names.name]: bank.name,
    [names.institutionCode]: bank.institutionCode,
    [names.clabeCode]: bank.clabeCode,
  };
  // The default choices name the fields as the type does.
  return named as object as RestBank;
}

/** Response of account creation: every field (docs/upstream-api.md, "PrivateAccount"). */
export function viewAccount({ choices, ledger }: World, account: Account): RestAccount {
  return {
    id: account.id,
    bankId: account.bankId,
    clientId: account.clientId,
    clientBankAdapterId: account.adapterId,
    accountId: account.requestedId,
    instrumentId: account.instrumentId,
    ownerId: account.ownerId,
    ownerType: account.ownerType,
    accountNumber: account.accountNumber,
    clabeNumber: account.clabeNumber,
    availableBalance: formatCents(ledger.balance(ledgerAccount(account.id))),
    accountType: account.accountType,
    accountStatus: account.status,
    audit: {
      ...viewAudit(choices, account),
      activatedAt: stamp(choices, account.createdAt),
      suspendedAt: stamp(choices, undefined),
    },
    bankAdapter: BANK_ADAPTER,
  };
}

/** Item of GET accounts, which the spec promises less of. */
export function viewListedAccount(world: World, account: Account): RestAccount {
  const view = viewAccount(world, account);
  if (!world.choices.leaveOutOptional) return view;
  const { bankAdapter: _adapter, ...rest } = view;
  return rest;
}

export function viewCustomer({ choices }: World, customer: Customer): RestCustomer {
  return {
    id: customer.id,
    clientId: customer.clientId,
    name: customer.name,
    rfc: customer.rfc,
    legalRepresentativeName: customer.representative.name,
    legalRepresentativeRfc: customer.representative.rfc,
    legalRepresentativePhone: customer.representative.phone,
    legalRepresentativeEmail: customer.representative.email,
    domain: customer.domain,
    customerAlias: customer.alias,
    customerStatus: customer.status,
    customerValidationStatus: customer.validationStatus,
    audit: viewAudit(choices, customer),
  };
}

export function viewInstrument({ choices }: World, instrument: Instrument): RestInstrument {
  return {
    id: instrument.id,
    bankId: instrument.bankId,
    clientId: instrument.clientId,
    ownerId: instrument.ownerId,
    ...(instrument.customerId === undefined ? {} : { customerId: instrument.customerId }),
    alias: instrument.alias,
    type: instrument.type,
    rfc: instrument.rfc,
    audit: viewAudit(choices, instrument),
    instrumentDetail: viewDetail(choices, instrument),
  };
}

/** What a POST answers: the transaction without what only reads carry. */
export function viewNewTransaction(world: World, transaction: Transaction): RestNewTransaction {
  const { choices } = world;
  return {
    id: transaction.id,
    bankId: transaction.bankId,
    clientId: transaction.clientId,
    externalReference: transaction.externalReference,
    trackingId: transaction.trackingId,
    description: transaction.description,
    amount: formatCents(transaction.amount),
    currency: 'MXN',
    category: transaction.category,
    subCategory: transaction.subCategory,
    transactionStatus: transaction.status,
    audit: viewAudit(choices, transaction),
    ...(transaction.originalTransactionId === undefined
      ? {}
      : { originalTransactionId: transaction.originalTransactionId }),
    ...(transaction.cep === undefined
      ? {}
      : { metadata: { dataCep: viewCep(world, transaction.cep, shownStatus(transaction.cep)) } }),
  };
}

/** What endpoint 15 answers. */
export function viewTransaction(world: World, transaction: Transaction): RestTransaction {
  const { choices } = world;
  return {
    ...viewNewTransaction(world, transaction),
    ...(choices.leaveOutOptional
      ? {}
      : { jsonReference: JSON.stringify({ trackingId: transaction.trackingId, channel: 'API' }) }),
    sourceInstrument: viewEmbedded(choices, transaction.source),
    destinationInstrument: viewEmbedded(choices, transaction.destination),
    ...(transaction.cep === undefined
      ? {}
      : { metadata: { dataCep: viewCep(world, transaction.cep, statusOnRead(world, transaction.cep)) } }),
  };
}

export function viewWebhook({ choices }: World, webhook: Webhook): RestWebhook {
  const none = choices.absentTimestamp;
  const view = {
    id: webhook.id,
    clientId: webhook.clientId,
    url: webhook.url,
    token: webhook.token,
    webhookType: webhook.type,
    authType: webhook.authType,
    webhookStatus: webhook.status,
    createdAt: stamp(choices, webhook.createdAt),
    updatedAt: stamp(choices, webhook.updatedAt),
    deletedAt: stamp(choices, webhook.deletedAt),
    blockedAt: stamp(choices, webhook.blockedAt),
    deletedBy: webhook.deletedBy ?? none,
    blockedBy: none,
  };
  if (!choices.leaveOutOptional) return view;
  const { deletedBy: _deletedBy, blockedBy: _blockedBy, ...rest } = view;
  return rest;
}

/** The transient INITIALIZED appears on reads alone (docs/upstream-api.md, "dataCep.status"). */
function statusOnRead({ choices, clock }: World, cep: Cep): string {
  const transient = clock.now() < cep.createdAt + choices.cepInitializedSeconds * 1000;
  const status = shownStatus(cep);
  return transient && status === 'PENDING' ? 'INITIALIZED' : status;
}

/** The state of a receipt that reads and messages show. */
export const shownStatus = ({ status, shownAs }: Cep): string =>
  status === 'COMPLETED' || status === 'FAILED' ? status : (shownAs ?? status);

function viewCep({ choices, origin }: World, cep: Cep, status: string): RestCep {
  const form = choices.timestamps.cep;
  return {
    cepUrl: `${origin}/cep/${cep.validationId}`,
    validationId: cep.validationId,
    // One that a test asked for may be none of those that the service documents.
    status: status as RestCep['status'],
    createdAt: formatTimestamp(cep.createdAt, form),
    ...(cep.processedAt === undefined
      ? {}
      : {
          beneficiaryName: cep.beneficiaryName,
          beneficiaryRfc: cep.beneficiaryRfc,
          processedAt: formatTimestamp(cep.processedAt, form),
        }),
  };
}

function viewEmbedded(choices: Choices, instrument: Instrument): RestParty {
  return {
    id: instrument.id,
    bankId: instrument.bankId,
    clientId: instrument.clientId,
    ownerId: instrument.ownerId,
    instrumentAlias: instrument.alias,
    instrumentStatus: instrument.status,
    instrumentType: instrument.type,
    instrumentDetail: viewDetail(choices, instrument),
    rfc: instrument.rfc,
  };
}

function viewDetail(choices: Choices, { detail }: Instrument): RestInstrument['instrumentDetail'] {
  if (detail.kind === 'clabe') {
    return {
      accountNumber: detail.accountNumber,
      clabeNumber: detail.clabeNumber,
      holderName: detail.holderName,
    };
  }
  return {
    cardNumber: detail.cardNumber,
    expirationDate: detail.expirationDate ?? choices.absentTimestamp,
    holderName: detail.holderName,
  };
}

function viewAudit(choices: Choices, audit: Audit): RestAudit {
  return {
    createdAt: stamp(choices, audit.createdAt),
    updatedAt: stamp(choices, audit.updatedAt),
    deletedAt: stamp(choices, audit.deletedAt),
    blockedAt: stamp(choices, audit.blockedAt),
  };
}

function stamp(choices: Choices, at: number | undefined): string | null {
  const form: TimestampForm = choices.timestamps.general;
  return at === undefined ? choices.absentTimestamp : formatTimestamp(at, form);
}
