import { z } from 'zod';

/*
 * The spec's tables, written down once more: docs/upstream-api.md, "Resources",
 * "Endpoints", "Events" and "Errors". What it lists is required here; what it does not list is refused by the strict form.
 */

const uuid = z.uuid();
/** `YYYY-MM-DD HH:MM:SS.ffffff-06:00`; some samples omit the offset, one has a `T` (Conventions). */
const timestamp = z.string().regex(/^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{6}([+-]\d\d:\d\d)?$/);
/** Absent ones: null or the text `None`. */
const maybeTimestamp = z.union([timestamp, z.null(), z.literal('None')]);
const amount = z.string().regex(/^\d+\.\d{2}$/);
const count = z.number().int().min(0);

/** The tables as schemas; strict ones refuse what the spec does not know. */
export function tables(strict: boolean) {
  const object = <S extends z.core.$ZodLooseShape>(shape: S): z.ZodObject<S> =>
    // A strict object reads to the same type.
    (strict ? z.strictObject(shape) : z.object(shape)) as z.ZodObject<S>;

  const audit = object({
    createdAt: timestamp,
    updatedAt: timestamp,
    deletedAt: maybeTimestamp,
    blockedAt: maybeTimestamp,
  });

  const credential = object({
    id: z.string(),
    client_id: z.string(),
    client_secret: z.string(),
    environment: z.enum(['staging', 'production']),
    status: z.enum(['ACTIVE', 'INACTIVE']),
    created_at: timestamp,
    updated_at: timestamp,
    deleted_at: maybeTimestamp,
  });

  const credentialToken = object({
    id: uuid,
    client_id: uuid,
    client_credential_id: uuid,
    token: z.string(),
    status: z.enum(['ACTIVE', 'INACTIVE']),
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
    deleted_at: maybeTimestamp,
  });

  const privateAccount = object({
    id: uuid,
    bankId: uuid,
    clientId: uuid,
    clientBankAdapterId: uuid,
    accountId: uuid,
    instrumentId: uuid,
    ownerId: uuid,
    ownerType: z.enum(['CLIENT', 'CUSTOMER']),
    accountNumber: z.string().regex(/^\d{12}$/),
    clabeNumber: z.string().regex(/^\d{18}$/),
    availableBalance: amount,
    accountType: z.string(),
    accountStatus: z.string(),
    audit: object({
      createdAt: timestamp,
      updatedAt: timestamp,
      deletedAt: maybeTimestamp,
      blockedAt: maybeTimestamp,
      activatedAt: maybeTimestamp,
      suspendedAt: maybeTimestamp,
    }),
    bankAdapter: z.string(),
  });

  const card = object({
    cardNumber: z.string().regex(/^\d{16}$/),
    expirationDate: z.string().nullable(),
    holderName: z.string(),
  });
  const clabe = object({
    accountNumber: z.string(),
    clabeNumber: z.string().regex(/^\d{18}$/),
    holderName: z.string(),
  });

  const instrument = object({
    id: z.string(),
    bankId: z.string(),
    clientId: z.string(),
    ownerId: z.string(),
    customerId: z.string().optional(),
    alias: z.string(),
    type: z.string(),
    rfc: z.string(),
    audit,
    instrumentDetail: z.union([card, clabe]),
  });

  const embedded = object({
    id: z.string(),
    bankId: z.string(),
    clientId: z.string(),
    ownerId: z.string(),
    instrumentAlias: z.string(),
    instrumentStatus: z.string(),
    instrumentType: z.string(),
    instrumentDetail: z.union([card, clabe]),
    rfc: z.string(),
  });

  const dataCep = object({
    cepUrl: z.url(),
    validationId: uuid,
    status: z.enum(['INITIALIZED', 'PENDING', 'DELAYED', 'COMPLETED', 'FAILED']),
    createdAt: timestamp,
    beneficiaryName: z.string().optional(),
    beneficiaryRfc: z.string().optional(),
    processedAt: timestamp.optional(),
  });

  const transactionFields = {
    id: uuid,
    bankId: uuid,
    clientId: uuid,
    externalReference: z.string().regex(/^\d{1,7}$/),
    trackingId: z.string(),
    description: z.string(),
    amount,
    currency: z.literal('MXN'),
    category: z.string(),
    subCategory: z.enum(['SPEI_DEBIT', 'INT_DEBIT', 'INT_CREDIT', 'SPEI_CREDIT']),
    transactionStatus: z.string(),
    audit,
    originalTransactionId: uuid.optional(),
    metadata: object({ dataCep }).optional(),
  };

  const webhook = object({
    id: z.string(),
    clientId: z.string(),
    url: z.url(),
    token: z.string(),
    webhookType: z.enum(['MONEY_IN', 'STATUS_UPDATE', 'CEP']),
    authType: z.string(),
    webhookStatus: z.enum(['ACTIVE', 'INACTIVE']),
    createdAt: timestamp,
    updatedAt: timestamp,
    deletedAt: maybeTimestamp,
    blockedAt: maybeTimestamp,
    deletedBy: z.string().nullable().optional(),
    blockedBy: z.string().nullable().optional(),
  });

  const customer = object({
    id: uuid,
    clientId: uuid,
    name: z.string(),
    rfc: z.string(),
    legalRepresentativeName: z.string(),
    legalRepresentativeRfc: z.string(),
    legalRepresentativePhone: z.string(),
    legalRepresentativeEmail: z.string(),
    domain: z.string(),
    customerAlias: z.string(),
    customerStatus: z.string(),
    customerValidationStatus: z.enum(['PENDING', 'VALIDATED']),
    audit,
  });

  const moneyIn = object({
    id_msg: uuid,
    msg_name: z.literal('MONEY_IN'),
    msg_date: z.iso.date(),
    body: object({
      id: uuid,
      beneficiary_account: z.string(),
      beneficiary_name: z.string(),
      beneficiary_rfc: z.string(),
      payer_account: z.string(),
      payer_name: z.string(),
      payer_rfc: z.string(),
      payer_institution: z.string(),
      amount,
      transaction_date: z.string().regex(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
      tracking_key: z.string(),
      payment_concept: z.string(),
      numeric_reference: z.string(),
      sub_category: z.enum(['SPEI_CREDIT', 'INT_CREDIT']),
      registered_at: z.iso.datetime({ offset: true }),
      owner_id: uuid,
    }),
  });

  const cep = object({
    client_id: uuid,
    payload: object({
      id_msg: uuid,
      msg_name: z.literal('CEP'),
      msg_date: z.iso.date(),
      body: object({
        id: uuid,
        tracking_key: z.string(),
        external_reference: z.string().optional(),
        payment_concept: z.string(),
        beneficiary_account: z.string(),
        beneficiary_name: z.string().nullable(),
        beneficiary_rfc: z.string().nullable(),
        status: z.enum(['PENDING', 'DELAYED', 'COMPLETED', 'FAILED']),
        processed_at: timestamp.nullable(),
      }),
    }),
    webhook_type: z.literal('CEP'),
  });

  return {
    credentials: object({ data: z.array(credential) }),
    credentialToken,
    banks: object({
      total_banks: count,
      page: count,
      page_size: count,
      banks: z.array(z.record(z.string(), z.unknown())),
    }),
    accounts: object({
      currentPage: count,
      perPage: count,
      totalItem: count,
      // The list promises less than the creation does.
      data: z.array(z.object(privateAccount.partial({ bankAdapter: true }).shape)),
    }),
    privateAccount,
    customers: object({ currentPage: count, perPage: count, totalItems: count, data: z.array(customer) }),
    instruments: object({ data: z.array(instrument), currentPage: count, perPage: count, totalItems: count }),
    instrument,
    newTransaction: object(transactionFields),
    transaction: object({
      ...transactionFields,
      jsonReference: z.string().optional(),
      sourceInstrument: embedded,
      destinationInstrument: embedded,
    }),
    webhooks: object({ currentPage: count, perPage: count, totalItem: count, data: z.array(webhook) }),
    webhook,
    moneyIn,
    cep,
  };
}

/** The error body of "Errors". */
export const errorBody = z.strictObject({
  code: z.number().int(),
  message: z.literal('API Error'),
  details: z.tuple([
    z.strictObject({
      '@type': z.string(),
      reason: z.string(),
      domain: z.literal('CORE'),
      metadata: z.strictObject({
        error_detail: z.string(),
        http_code: z.string(),
        module: z.string(),
        method_name: z.string(),
        error_code: z.literal('10-E4120'),
      }),
    }),
  ]),
});

const seededClient = z.object({
  clientId: uuid,
  apiKey: z.string(),
  clientSecret: z.string(),
  accessToken: z.string(),
  clientBankAdapterId: uuid,
  centralizingInstrumentId: uuid,
  customerIds: z.array(uuid),
  accountIds: z.array(uuid),
  internalInstrumentIds: z.array(uuid),
  blockedInstrumentIds: z.array(uuid),
  clabeInstrumentIds: z.array(uuid),
  cardInstrumentIds: z.array(uuid),
  lateReceiptInstrumentId: uuid.nullable(),
  noReceiptInstrumentId: uuid.nullable(),
  otherHolderInstrumentId: uuid.nullable(),
  bankIds: z.array(uuid),
  transactions: z.object({
    refundableCreditId: uuid,
    refundedCreditId: uuid,
    refundId: uuid,
    moneyOutId: uuid,
    internalTransactionId: uuid,
    pennyValidationId: uuid,
  }),
  customers: z.array(z.object({ id: uuid, name: z.string(), validationStatus: z.string() })),
  accounts: z.array(
    z.object({ id: uuid, instrumentId: uuid, ownerId: uuid, clabe: z.string(), availableBalance: amount }),
  ),
  instruments: z.array(z.object({ id: uuid, role: z.string(), alias: z.string(), ownerId: uuid })),
});

/** GET /sandbox. */
export const explored = seededClient.extend({ otherClients: z.array(seededClient) });

/** GET /sandbox/ledger. */
export const ledger = z.object({
  balanced: z.boolean(),
  balances: z.record(z.string(), z.string()),
  accounts: z.array(z.object({ id: uuid, instrumentId: uuid, balance: amount })),
  movements: z.array(
    z.object({
      transactionId: uuid,
      amount,
      lines: z.tuple([
        z.object({ account: z.string(), amount: z.string() }),
        z.object({ account: z.string(), amount: z.string() }),
      ]),
    }),
  ),
});

/** A delivery of GET /sandbox/deliveries. */
export const delivery = z.object({
  id: uuid,
  webhookType: z.string(),
  idMsg: uuid.nullable(),
  state: z.enum(['PENDING', 'ANSWERED', 'GIVEN_UP']),
  attempts: z.array(
    z.object({
      at: z.iso.datetime({ offset: true }),
      status: z.number().nullable(),
      body: z.string().nullable(),
      error: z.string().nullable(),
    }),
  ),
});
