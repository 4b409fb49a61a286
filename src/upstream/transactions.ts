import DataLoader from 'dataloader';
import { toAmount } from '../common/amounts.ts';
import type { Audit } from './audit.ts';
import type { MayRenew } from './call/credential.ts';
import { UpstreamError } from './call/errors.ts';
import type { Attempt } from './call/http.ts';
import { identified, identifiedBy, isObject, type Optional, present } from './call/json.ts';
import { isId } from './call/path.ts';
import type { Rest, RestChanges } from './call/rest.ts';
import type { CustomerScope } from './customer-scope.ts';
import type { InstrumentDetail, InstrumentLoader } from './instruments.ts';

/** A movement of money (docs/upstream-api.md, "Transaction"). */
export interface Transaction {
  readonly id: string;
  readonly bankId?: Optional;
  readonly clientId?: Optional;
  readonly externalReference?: Optional;
  readonly trackingId?: Optional;
  readonly description?: Optional;
  /** Pesos, a decimal string with two places. */
  readonly amount: string;
  readonly currency: string;
  readonly category: string;
  readonly subCategory: string;
  readonly transactionStatus: string;
  readonly audit?: Audit | null;
  readonly originalTransactionId?: Optional;
  readonly jsonReference?: unknown;
  readonly sourceInstrument?: TransactionInstrument | null;
  readonly destinationInstrument?: TransactionInstrument | null;
  readonly metadata?: { readonly dataCep?: DataCep | null } | null;
}

/** An instrument as a transaction embeds it: other names than the instrument's own (docs/upstream-api.md, "Instrument"). */
export interface TransactionInstrument {
  readonly id: string;
  readonly bankId?: Optional;
  readonly clientId?: Optional;
  readonly ownerId?: Optional;
  readonly instrumentAlias?: Optional;
  readonly instrumentStatus?: Optional;
  readonly instrumentType?: Optional;
  readonly instrumentDetail?: InstrumentDetail | null;
  readonly rfc?: Optional;
}

/** The receipt of a penny validation (docs/upstream-api.md, "dataCep fields"). */
export interface DataCep {
  readonly cepUrl?: Optional;
  readonly validationId?: Optional;
  readonly status: string;
  readonly createdAt?: Optional;
  readonly beneficiaryName?: Optional;
  readonly beneficiaryRfc?: Optional;
  readonly processedAt?: Optional;
}

/** The look-up's own query parameters (docs/upstream-api.md, endpoint 15). */
export interface TransactionMatch {
  readonly status?: string | null | undefined;
  readonly trackingId?: string | null | undefined;
  readonly category?: string | null | undefined;
  readonly bankId?: string | null | undefined;
}

const TRANSACTION = '/v1/clients/{clientId}/transactions/{transactionId}';
export const REFUND = '/v1/clients/{clientId}/transactions/{transactionId}/refund';
export const MONEY_OUT = '/v1/transactions/money_out';
export const INTERNAL_TRANSACTION = '/v1/transactions/internal_transaction';
export const PENNY_VALIDATION = '/v1/transactions/penny_validation';

/** Whether a value is a transaction: an object with the fields that every transaction has (docs/upstream-api.md, "Transaction"). */
export const isTransaction = (value: unknown): value is Transaction =>
  isObject(value) &&
  ['id', 'currency', 'category', 'subCategory', 'transactionStatus'].every(
    (field) => typeof value[field] === 'string',
  ) &&
  toAmount(value['amount']) !== undefined;

/**
 * Reads a transaction (docs/upstream-api.md, endpoint 15).
 *
 * @returns what the service answers under this id, also where it bears another
 * @throws UpstreamError also for a 404, whoever it comes from
 */
export async function readNamedTransaction(
  rest: Rest,
  transactionId: string,
  match: TransactionMatch = {},
): Promise<Transaction> {
  const body = await rest.get(TRANSACTION, {
    params: { transactionId },
    query: {
      transaction_status: match.status ?? undefined,
      tracking_id: match.trackingId ?? undefined,
      transaction_category: match.category ?? undefined,
      bank_id: match.bankId ?? undefined,
    },
  });
  return identified<Transaction>(body, 'a transaction');
}

/**
 * Reads a transaction.
 *
 * @returns null when the upstream knows none of this id for the client, as far as a 404 says so.
 * @throws UpstreamError `UPSTREAM_INVALID` for one of another id
 */
export async function readTransaction(
  rest: Rest,
  transactionId: string,
  match: TransactionMatch = {},
): Promise<Transaction | null> {
  try {
    const read = await readNamedTransaction(rest, transactionId, match);
    return identifiedBy<Transaction>(transactionId, read, 'a transaction');
  } catch (error) {
    if (error instanceof UpstreamError && error.refusal?.httpStatus === 404) return null;
    throw error;
  }
}

/**
 * Sends the bytes of an outbound SPEI transfer (docs/upstream-api.md, endpoint 11).
 *
 * @param idempotencyKey a UUID of version 5.
 */
export const sendMoneyOut = (
  rest: RestChanges,
  body: string,
  idempotencyKey: string,
  mayRenew: MayRenew,
): Promise<Attempt> =>
  rest.send('POST', MONEY_OUT, {
    body,
    headers: { 'idempotency-key': idempotencyKey },
    over: 'money',
    mayRenew,
  });

/** The routes of transfers, by the mutations that make them. */
const TRANSFERS = {
  createMoneyOut: MONEY_OUT,
  createInternalTransaction: INTERNAL_TRANSACTION,
  createPennyValidation: PENNY_VALIDATION,
} as const;

/**
 * Finds out whether the caller may make a transfer, and sends nothing.
 *
 * @param body the bytes that are to be sent.
 * @returns the answer that the caller gets instead; undefined if the transfer may be sent.
 */
export const checkTransfer = async (
  rest: RestChanges,
  mutation: keyof typeof TRANSFERS,
  body: string,
): Promise<Attempt | undefined> => rest.check?.('POST', TRANSFERS[mutation], { body });

/** Sends the bytes of an internal transaction (docs/upstream-api.md, endpoint 12). */
export const sendInternalTransaction = (
  rest: RestChanges,
  body: string,
  mayRenew: MayRenew,
): Promise<Attempt> => rest.send('POST', INTERNAL_TRANSACTION, { body, over: 'money', mayRenew });

/** Sends the bytes of a penny validation (docs/upstream-api.md, endpoint 13). */
export const sendPennyValidation = (rest: RestChanges, body: string, mayRenew: MayRenew): Promise<Attempt> =>
  rest.send('POST', PENNY_VALIDATION, { body, over: 'money', mayRenew });

/** Sends the bytes of a refund (docs/upstream-api.md, endpoint 14). */
export const sendRefund = (
  rest: RestChanges,
  transactionId: string,
  body: string,
  mayRenew: MayRenew,
): Promise<Attempt> =>
  rest.send('POST', REFUND, { params: { transactionId }, body, over: 'money', mayRenew });

/**
 * Finds out whether the caller may refund a transaction, and sends nothing.
 *
 * @returns the answer that the caller gets instead; undefined if the refund may be sent.
 */
export const checkRefund = async (rest: RestChanges, transactionId: string): Promise<Attempt | undefined> =>
  rest.check?.('POST', REFUND, { params: { transactionId } });

/**
 * Reads the transactions of one operation that are in the caller's scope. One is in scope if its source or its destination
 * is.
 */
export interface TransactionLoader {
  /** Returns one transaction, or null when the caller has none of this id. Reads it at most once. */
  get(id: string, match?: TransactionMatch): Promise<Transaction | null>;
  /** Returns true if this side of a transaction is the caller's own; false if the caller has none of this id. */
  ownsSide(id: string, side: 'sourceInstrument' | 'destinationInstrument'): Promise<boolean>;
  /** Returns true if a transaction, which another caller may have read, is in this caller's scope. */
  owns(transaction: Transaction): Promise<boolean>;
}

/** Makes the loader of one operation. The service gives transactions one by one, so a batch is as many parallel calls. */
export function createTransactionLoader(
  rest: Rest,
  scope: CustomerScope,
  instruments: InstrumentLoader,
): TransactionLoader {
  interface Key {
    readonly id: string;
    readonly match: TransactionMatch | undefined;
  }

  const isOwn = async (side: TransactionInstrument | null | undefined): Promise<boolean> => {
    if (scope.wholeClient) return true;
    if (side == null) return false;
    // It may name no owner (docs/assumptions.md, "owners in a transaction").
    if (present(side.ownerId) !== null) return scope.owner(side.ownerId);
    return isId(side.id) && (await instruments.find('id', side.id)) !== null;
  };
  const owns = async (transaction: Transaction): Promise<boolean> => {
    const { sourceInstrument, destinationInstrument } = transaction;
    if (scope.owner(sourceInstrument?.ownerId) || scope.owner(destinationInstrument?.ownerId)) return true;
    // Both look-ups at once: the second would else wait for the first, in each row of a page.
    const sides = await Promise.allSettled([isOwn(sourceInstrument), isOwn(destinationInstrument)]);
    // One side that is the caller's own decides, whatever keeps the other from being looked up.
    if (sides.some((side) => side.status === 'fulfilled' && side.value)) return true;
    const failed = sides.find((side) => side.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return false;
  };
  const read = async (id: string, match?: TransactionMatch): Promise<Transaction | null> => {
    const transaction = await readTransaction(rest, id, match);
    return transaction === null || (await owns(transaction)) ? transaction : null;
  };

  // A batch answers with one promise for each id. If it answered with the values, DataLoader would keep all of them waiting
  // for the slowest.
  const loader = new DataLoader<Key, { readonly answer: Promise<Transaction | null> }, string>(
    async (keys) => keys.map(({ id, match }) => ({ answer: read(id, match) })),
    { cacheKeyFn: ({ id, match }) => JSON.stringify([id, match]) },
  );
  const get = async (id: string, match?: TransactionMatch): Promise<Transaction | null> =>
    (await loader.load({ id, match })).answer;
  return {
    get,
    owns,
    // It asks for this side alone: the other may be a stranger's, whom the service does not show.
    async ownsSide(id, side) {
      const transaction = await get(id);
      return transaction !== null && isOwn(transaction[side]);
    },
  };
}
