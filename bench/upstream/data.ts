import { createHash } from 'node:crypto';

/** How large the client is whom the stub serves. */
export interface Sizes {
  readonly instruments: number;
  readonly customers: number;
}

const seeds = new Map<string, number>();

export const CLIENT_ID = '0f0e0d0c-0b0a-4908-8706-050403020100';
export const TRANSACTION_ID = uuid('transaction', 0);
/** A list that needs no client. */
export const BANKS_PATH = '/v1/banks';
const BANKS = 100;
const CREATED_AT = '2026-03-02 10:15:30.123456-06:00';

/** One of the 32-bit words that follow from a name and a number. */
function word(seed: number, index: number): string {
  let value = Math.imul(seed ^ index, 0x9e3779b1);
  value = Math.imul(value ^ (value >>> 15), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0).toString(16).padStart(8, '0');
}

function seedOf(kind: string): number {
  let seed = seeds.get(kind);
  if (seed === undefined) {
    seed = createHash('sha256').update(kind).digest().readUInt32BE();
    seeds.set(kind, seed);
  }
  return seed;
}

/** A UUID (version 4 in form) that follows from its name and number, so that every run serves the same bytes. */
export function uuid(kind: string, index: number): string {
  const seed = seedOf(kind);
  const [one, two, three] = [word(seed, index), word(seed + 1, index), word(seed + 2, index)];
  // The first word alone differs for each number: the mixing is a bijection.
  return `${one}-${two.slice(0, 4)}-4${two.slice(5)}-8${three.slice(1, 4)}-${three.slice(4)}${word(seed + 3, index)}`;
}

const digits = (prefix: string, index: number, length: number): string =>
  prefix + String(index).padStart(length - prefix.length, '0');

const audit = { createdAt: CREATED_AT, updatedAt: CREATED_AT, deletedAt: null, blockedAt: null };

/** The `banks` of endpoint 3, which the spec shows no fields of. */
export const banks = Array.from({ length: BANKS }, (_, index) => ({
  id: uuid('bank', index),
  name: `BANCO ${index}`,
  legal_code: digits('40', index, 5),
  short_name: `B${index}`,
}));

const range = <T>(from: number, to: number, make: (index: number) => T): T[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => make(from + index));

/** Instruments that follow each other in turn through the customers (docs/upstream-api.md, "Instrument", card form). */
export const instruments = (sizes: Sizes, from = 0, to = sizes.instruments) =>
  range(from, Math.min(to, sizes.instruments), (index) => {
    const owner = uuid('customer', index % sizes.customers);
    return {
      id: uuid('instrument', index),
      bankId: uuid('bank', index % BANKS),
      clientId: CLIENT_ID,
      ownerId: owner,
      customerId: owner,
      alias: `Proveedor ${index}`,
      type: 'RECEIVER',
      rfc: `XAXX${digits('01', index, 6)}AB1`,
      audit,
      instrumentDetail: {
        cardNumber: digits('4152', index, 16),
        expirationDate: 'None',
        holderName: `María Hernández ${index}`,
      },
    };
  });

/** Customers (docs/upstream-api.md, "Customer"). */
export const customers = (sizes: Sizes, from = 0, to = sizes.customers) =>
  range(from, Math.min(to, sizes.customers), (index) => ({
    id: uuid('customer', index),
    clientId: CLIENT_ID,
    name: `Comercializadora ${index} S.A. de C.V.`,
    rfc: `ABC${digits('01', index, 6)}AB1`,
    legalRepresentativeName: `José Pérez ${index}`,
    legalRepresentativeRfc: `PEPJ${digits('01', index, 6)}AB1`,
    legalRepresentativePhone: digits('55', index, 10),
    legalRepresentativeEmail: `representante${index}@example.mx`,
    domain: `empresa${index}.example.mx`,
    customerAlias: `empresa-${index}`,
    customerStatus: 'ACTIVE',
    customerValidationStatus: 'VALIDATED',
    audit,
  }));

/** One account for each customer (docs/upstream-api.md, "PrivateAccount"). */
export const accounts = (sizes: Sizes, from = 0, to = sizes.customers) =>
  range(from, Math.min(to, sizes.customers), (index) => ({
    id: uuid('account', index),
    bankId: uuid('bank', index % BANKS),
    clientId: CLIENT_ID,
    clientBankAdapterId: uuid('adapter', 0),
    accountId: uuid('base account', index),
    instrumentId: uuid('account instrument', index),
    ownerId: uuid('customer', index),
    ownerType: 'CUSTOMER',
    accountNumber: digits('1040', index, 12),
    clabeNumber: digits('646180', index, 18),
    availableBalance: `${1_000 + index}.50`,
    accountType: 'PRIVATE_ACCOUNT',
    accountStatus: 'ACTIVE',
    audit: { ...audit, activatedAt: CREATED_AT, suspendedAt: null },
    bankAdapter: 'STP',
  }));

const side = (name: string) => ({
  id: uuid(name, 0),
  bankId: uuid('bank', 1),
  clientId: CLIENT_ID,
  ownerId: CLIENT_ID,
  instrumentAlias: `Alias de ${name}`,
  instrumentStatus: 'ACTIVE',
  instrumentType: 'SENDER_RECEIVER',
  instrumentDetail: { accountNumber: '104000000012', clabeNumber: '646180110400000007', holderName: name },
  rfc: 'ND',
});

/** What each payment of the bench moves, in pesos. */
export const PAID = '1.00';

/** The one transaction (docs/upstream-api.md, "Transaction", as endpoint 15 reads it). */
export const transaction = {
  id: TRANSACTION_ID,
  bankId: uuid('bank', 1),
  clientId: CLIENT_ID,
  externalReference: '1234567',
  trackingId: '50118609TRANSFER0042',
  description: 'Factura 42',
  amount: '1250.00',
  currency: 'MXN',
  category: 'DEBIT_TRANS',
  subCategory: 'SPEI_DEBIT',
  transactionStatus: 'INITIALIZED',
  audit,
  jsonReference: '{}',
  sourceInstrument: side('source'),
  destinationInstrument: side('destination'),
};

/** What the one order of money between instruments is answered with (docs/upstream-api.md, "Transaction"). */
export const internalTransaction = (id: string) => ({
  ...transaction,
  id,
  amount: PAID,
  category: 'INTER_TRANS',
  subCategory: 'INT_DEBIT',
});

/** A penny validation whose receipt has not come (docs/upstream-api.md, "dataCep fields"), for any id. */
export const pennyValidation = (id: string) => ({
  ...transaction,
  id,
  amount: '0.01',
  trackingId: `50118609${id.slice(0, 8)}`,
  description: 'Validación',
  metadata: {
    dataCep: {
      cepUrl: '',
      validationId: uuid('validation of', Number.parseInt(id.slice(0, 8), 16)),
      status: 'PENDING',
      createdAt: CREATED_AT,
      beneficiaryName: null,
      beneficiaryRfc: null,
      processedAt: null,
    },
  },
});
