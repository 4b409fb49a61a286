import { createCipheriv, createDecipheriv } from 'node:crypto';
import { clock } from '../common/clock.ts';
import { MONEY_MUTATIONS, type MoneyIntent, ownerDigest, type RecordName, recordName } from './intent.ts';
import {
  type MoneyRecords,
  type PaymentPosition,
  type PaymentRecord,
  type PaymentSearch,
  PaymentsHeldError,
} from './record.ts';
import type { CreditRefund } from './record-parts.ts';
import { LOOKED_FOR_MS } from './settling/open-records.ts';
import { type AskedTransaction, together } from './transaction-look-ups.ts';

/** A record and the name that it has for people. */
export interface RecordedPayment extends PaymentRecord {
  /**
   * The payment's id, which stays the same as long as the record is kept. It is the hash of the record, encrypted under a key
   * that the store keeps: with a plain hash an attacker could test guesses of a caller's key.
   */
  readonly id: string;
}

/** Whose payments are searched: those of a narrowed caller's customer, or all of the client's. */
interface PaymentReader {
  readonly clientId: string;
  readonly customerId: string | undefined;
}

/** A page of payments, in the order of the search. */
interface PaymentsPage {
  readonly payments: readonly RecordedPayment[];
  /** True if more follow. */
  readonly goesOn: boolean;
  /** Where a search ended that was not allowed to go on; undefined if it was. */
  readonly endedAt: PaymentPosition | undefined;
}

/**
 * Reads what became of payments. It never sends anything, and takes no key. A payment whose call claimed it and ended before
 * it sent anything counts as absent.
 *
 * Every method rejects with `RecordsUnavailableError` when the store cannot be reached. `byKey`, `byId`, `byTransaction` and `refundOf` reject with
 * `PaymentsHeldError` where nothing is found while payments are held for a store that was put back: it may have forgotten the payment.
 */
export interface Payments {
  /** Returns the payment of the caller's own key; undefined if the caller has not used it. */
  byKey(caller: KeyHolder): Promise<RecordedPayment | undefined>;
  /** By {@link RecordedPayment.id}. */
  byId(reader: PaymentReader, id: string): Promise<RecordedPayment | undefined>;
  byTransaction(reader: PaymentReader, transactionId: string): Promise<RecordedPayment | undefined>;
  /** As {@link MoneyRecords.refundOf}. */
  refundOf(clientId: string, credit: string): Promise<CreditRefund | undefined>;
  /**
   * @param matches a condition that the index does not know
   * @param mayGoOn is asked before each further batch, where the first has not filled the page
   */
  page(
    search: Omit<PaymentSearch, 'limit'>,
    size: number,
    matches: (payment: PaymentRecord) => boolean,
    mayGoOn?: () => Promise<boolean>,
  ): Promise<PaymentsPage>;
  /** Returns the id of the record of this name, for the log. */
  idOf(name: RecordName): Promise<string>;
  /**
   * Returns when the oldest payment of unknown outcome of the last two days was asked for, in ms since the epoch; undefined if
   * there is none. One that a call, or the settler, is at counts too: it has been unknown no less long.
   */
  oldestUnknown(): Promise<number | undefined>;
  /** Returns how many are older than that, and are still in the record: 200 at most for each client. */
  oldUnknown(): Promise<number>;
  /** Returns the key that seals the cursors of a client. */
  sealKey(clientId: string): Promise<Buffer>;
}

/** The caller that names a key. */
type KeyHolder = Pick<MoneyIntent, 'clientId' | 'customerId' | 'keyOwner' | 'key'>;

/** How many payments are read at once where the first batch has not filled a page. */
const NEXT_BATCH = 200;
/** How many old payments of unknown outcome are counted of each client. */
const MOST_COUNTED = 200;
const ID = /^[\w-]{43}$/;

/**
 * @param served clients whose payments the process settles, whether or not it has paid for them
 * @param logIds says the keys of the ids that the log is told
 */
export function createPayments(
  records: MoneyRecords,
  served: Iterable<string> = [],
  logIds: Pick<MoneyRecords, 'idKey'> = records,
): Payments {
  const named = async (clientId: string, record: PaymentRecord): Promise<RecordedPayment> => ({
    ...record,
    id: idOf(await records.idKey(clientId), record.hash),
  });

  const shown = async (
    reader: PaymentReader,
    found: PaymentRecord | undefined,
  ): Promise<RecordedPayment | undefined> => {
    const record = visible(reader, found);
    return record && named(reader.clientId, record);
  };

  const look = together((clientId, asked) => ofTransactions(records, clientId, asked));
  return {
    byKey(holder) {
      const { clientId } = holder;
      const mark = ownerDigest(holder);
      return certain(records, clientId, async () => {
        const [first, own] = await Promise.all([
          records.read(recordName(holder)),
          records.read(recordName(holder, mark)),
        ]);
        const isOwn = first?.keyOwner === null || first?.keyOwner === mark;
        return shown({ clientId, customerId: undefined }, own ?? (isOwn ? first : undefined));
      });
    },
    async byId(reader, id) {
      if (!ID.test(id)) return undefined;
      const { clientId } = reader;
      const hash = hashOf(await records.idKey(clientId), id);
      return certain(records, clientId, async () => shown(reader, await records.read({ clientId, hash })));
    },
    byTransaction: ({ clientId, customerId }, transactionId) => look({ clientId, customerId, transactionId }),
    refundOf: (clientId, credit) => certain(records, clientId, () => records.refundOf(clientId, credit)),
    async page(search, size, matches, mayGoOn = async () => true) {
      const found: PaymentRecord[] = [];
      let endedAt: PaymentPosition | undefined;
      // Reads one payment more than the page holds, which shows whether more follow.
      let limit = size + 1;
      let beyond: PaymentPosition | undefined = search.beyond;
      for (;;) {
        const { records: some, next } = await records.search({ ...search, beyond, limit });
        found.push(...some.filter((record) => record.asked !== null && matches(record)));
        if (found.length > size || next === undefined) break;
        beyond = next;
        limit = Math.max(limit, NEXT_BATCH);
        if (await mayGoOn()) continue;
        endedAt = beyond;
        break;
      }
      const key = await records.idKey(search.clientId);
      const payments = found
        .slice(0, size)
        .map((record): RecordedPayment => ({ ...record, id: idOf(key, record.hash) }));
      return { payments, goesOn: found.length > size || endedAt !== undefined, endedAt };
    },
    idOf: async ({ clientId, hash }) => idOf(await logIds.idKey(clientId), hash),
    ...unknownPayments(records, served),
    sealKey: (clientId) => records.idKey(clientId),
  };
}

/**
 * Finds the payments of several transactions with one reading of the store, and one of the client's key and of whether payments are held,
 * where it is needed. Each asker gets its own payment, nothing or its own error.
 */
async function ofTransactions(
  records: MoneyRecords,
  clientId: string,
  asked: readonly AskedTransaction[],
): Promise<readonly (RecordedPayment | undefined | Error)[]> {
  const ids = asked.map(({ transactionId }) => transactionId);
  const found = await records.readByTransactions(clientId, ids);
  let key: Promise<Buffer> | undefined;
  let isForgotten: Promise<boolean> | undefined;
  const answers = asked.map(async (reader, index) => {
    const record = visible(reader, found[index]);
    if (record !== undefined) {
      key ??= records.idKey(clientId);
      return { ...record, id: idOf(await key, record.hash) };
    }
    isForgotten ??= isPutBack(records, clientId);
    if (await isForgotten) throw new PaymentsHeldError('put-back');
    return undefined;
  });
  return Promise.all(answers.map((answer) => answer.catch((error: Error) => error)));
}

/** Returns the record of a payment, if there is one that the reader may see. */
function visible({ customerId }: PaymentReader, found: PaymentRecord | undefined): PaymentRecord | undefined {
  const record = unlessNothing(found);
  return customerId === undefined || record?.asked?.customerId === customerId ? record : undefined;
}

/**
 * Finds a payment, or is certain that it is absent. A store that a failover has replaced, or that was put back, does not know what was
 * paid since.
 */
async function certain<Found>(
  records: MoneyRecords,
  clientId: string,
  find: () => Promise<Found | undefined>,
): Promise<Found | undefined> {
  const found = await find();
  if (found !== undefined) return found;
  await records.confirmReads(clientId);
  // Also where it was replaced between the two.
  const again = await find();
  if (again === undefined && (await isPutBack(records, clientId))) throw new PaymentsHeldError('put-back');
  return again;
}

/** True while payments are held because the store has forgotten some, of this client or of another. */
const isPutBack = async (records: MoneyRecords, clientId: string): Promise<boolean> =>
  (await records.isPutBack(clientId)) || (await records.held()).some(({ why }) => why === 'put-back');

function unknownPayments(
  records: MoneyRecords,
  served: Iterable<string>,
): Pick<Payments, 'oldestUnknown' | 'oldUnknown'> {
  return {
    async oldestUnknown() {
      const from = clock.now() - LOOKED_FOR_MS;
      const some = await oldestUnknownOfEach(records, served, { from, to: undefined, limit: 1 });
      const times = some.map(({ createdAt }) => createdAt);
      return times.length === 0 ? undefined : Math.min(...times);
    },
    async oldUnknown() {
      const to = clock.now() - LOOKED_FOR_MS;
      const some = await oldestUnknownOfEach(records, served, { from: undefined, to, limit: MOST_COUNTED });
      return some.length;
    },
  };
}

async function oldestUnknownOfEach(
  records: MoneyRecords,
  served: Iterable<string>,
  asked: UnknownSearch,
): Promise<readonly PaymentRecord[]> {
  const clients = new Set([...(await records.clients()), ...served]);
  const found = await Promise.all([...clients].map((clientId) => oldestUnknownOf(records, clientId, asked)));
  return found.flat();
}

/** The time within which payments were asked for, and how many are wanted of each client. */
type UnknownSearch = Pick<PaymentSearch, 'from' | 'to' | 'limit'>;

/** Finds payments of a client of which nobody knows what became of them, the oldest first. */
async function oldestUnknownOf(
  records: MoneyRecords,
  clientId: string,
  { from, to, limit }: UnknownSearch,
): Promise<readonly PaymentRecord[]> {
  const search = {
    ...{ clientId, customerId: undefined, operations: MONEY_MUTATIONS, classes: ['open'] as const },
    ...{ from, to, isBack: true, limit: Math.max(limit, 20) },
  };
  const unknown: PaymentRecord[] = [];
  let beyond: PaymentPosition | undefined;
  do {
    const found = await records.search({ ...search, beyond });
    // In Redis, an earlier version leaves payments that it settles among the open ones until they are tidied up.
    unknown.push(...found.records.filter(({ answer }) => (answer?.kind ?? 'unknown') === 'unknown'));
    beyond = found.next;
  } while (beyond !== undefined && unknown.length < limit);
  return unknown.slice(0, limit);
}

/** Returns undefined for a record whose call ended before it sent anything: its key is free. */
const unlessNothing = (record: PaymentRecord | undefined): PaymentRecord | undefined =>
  record?.state === 'claimed' && !record.isHeld ? undefined : record;

/** A hash is as good as random, so no two share a block, and one vector serves all. */
const CIPHER = 'aes-256-cbc';
const NO_VECTOR = Buffer.alloc(16);

/** Returns the id of a record for people. @param key `idKey` of its client */
export function idOf(key: Buffer, hash: string): string {
  const cipher = createCipheriv(CIPHER, key, NO_VECTOR).setAutoPadding(false);
  return Buffer.concat([cipher.update(hash, 'base64url'), cipher.final()]).toString('base64url');
}

/** Returns the id of a payment for the log; undefined while the store is away. */
export const paymentIdOf = (
  records: Pick<MoneyRecords, 'idKey'>,
  { clientId, hash }: RecordName,
): Promise<string | undefined> =>
  records
    .idKey(clientId)
    .then((key) => idOf(key, hash))
    .catch(() => undefined);

function hashOf(key: Buffer, id: string): string {
  const decipher = createDecipheriv(CIPHER, key, NO_VECTOR).setAutoPadding(false);
  return Buffer.concat([decipher.update(id, 'base64url'), decipher.final()]).toString('base64url');
}
