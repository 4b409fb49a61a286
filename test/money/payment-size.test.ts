import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { inputHash, type MoneyMutation, recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { MEMORY_FOLDER } from '../helpers/memory-folder.ts';
import { randomFrom } from '../helpers/random.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { NOBODYS } from './orders.ts';
import { patient } from './stores.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
/** Of the record and the journal of a payment, in bytes. */
const MOST = 2_048;
/** Likewise, with all that it is found by. A customer's is found by the customer, and by callers that act for the whole client, as well. */
const MOST_IN_ALL = { client: 2_150, customer: 2_600 };
/** Pages fill up, and sets grow, before a payment's share of them is counted. */
const BEFORE = 100;
const COUNTED = 400;
const AT_ONCE = 25;

/** The same in each run, so that the same bytes are counted. */
const random = randomFrom(28);
const hex = (digits: number) =>
  Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
const uuid = () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;

const TIME = '2026-11-22 23:36:00.416000-06:00';
const audit = { createdAt: TIME, updatedAt: TIME, deletedAt: null, blockedAt: null };
const transaction = (id: string, subCategory: string, transactionStatus: string) => ({
  id,
  bankId: uuid(),
  clientId: CLIENT,
  externalReference: '3547858',
  trackingId: 'SBX47930673415019803826',
  description: 'Renta de noviembre de la casa 1',
  amount: '1250.00',
  currency: 'MXN',
  category: subCategory === 'INT_DEBIT' ? 'INTER_TRANS' : 'DEBIT_TRANS',
  subCategory,
  transactionStatus,
  audit,
});

/** Answers of the service, with each field that docs/upstream-api.md names for them. */
const ANSWERS: Readonly<Record<MoneyMutation, (id: string) => object>> = {
  createMoneyOut: (id) => transaction(id, 'SPEI_DEBIT', 'INITIALIZED'),
  createInternalTransaction: (id) => transaction(id, 'INT_DEBIT', 'LIQUIDATED'),
  refundTransaction: (id) => ({
    ...transaction(id, 'SPEI_DEBIT', 'LIQUIDATED'),
    originalTransactionId: uuid(),
  }),
  createPennyValidation: (id) => {
    const validationId = uuid();
    const cepUrl = `http://127.0.0.1:44079/cep/${validationId}`;
    const dataCep = { cepUrl, validationId, status: 'PENDING', createdAt: TIME };
    return { ...transaction(id, 'SPEI_DEBIT', 'INITIALIZED'), metadata: { dataCep } };
  },
};

/** Whoever pays, and in which mode of the gateway. */
const PAYERS = {
  passthrough: { isTold: false, isCustomer: false },
  'service mode': { isTold: true, isCustomer: false },
  'service mode, for a customer': { isTold: true, isCustomer: true },
} as const;
type Payer = (typeof PAYERS)[keyof typeof PAYERS];

/** A payment, from beginning to end. */
async function pay(records: MoneyRecords, operation: MoneyMutation, payer: Payer): Promise<void> {
  const customerId = payer.isCustomer ? uuid() : undefined;
  const [key, owner, source, destination] = [uuid(), uuid(), uuid(), uuid()];
  const name = recordName({ clientId: CLIENT, customerId, key });
  const input = inputHash(operation, key);
  const isRefund = operation === 'refundTransaction';
  const between = isRefund ? { source: null, destination: null } : { source, destination };
  const asked = {
    operation,
    customerId: customerId ?? null,
    amount: isRefund ? null : '1250.00',
    ...between,
    // A subject as identity providers make them, or a digest.
    requestedBy: payer.isTold ? uuid() : `sha256:${input}`,
  };
  const keyOwner = payer.isTold ? inputHash(operation, owner) : '';
  const { other } = NOBODYS;
  const whose = { keyOwner, other, twin: inputHash(operation, name), isCustomers: payer.isCustomer };
  await records.claim(name, {
    ...whose,
    asked,
    owner,
    inputHash: input,
    leaseMs: 5_000,
    requestId: uuid(),
  });
  const upstreamKey = operation === 'createMoneyOut' ? uuid() : null;
  await records.markSent(name, owner, 'b'.repeat(350), { upstreamKey, original: isRefund ? uuid() : null });
  const id = uuid();
  const text = JSON.stringify(ANSWERS[operation](id));
  await records.answer(name, input, { kind: 'done', status: 200, text }, id);
}

async function payAll(
  records: MoneyRecords,
  operation: MoneyMutation,
  payer: Payer,
  count: number,
): Promise<void> {
  for (let made = 0; made < count; made += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => pay(records, operation, payer)));
  }
}

/** How many bytes a store takes: in all, and for records and journals alone. */
interface Taken {
  readonly all: number;
  readonly kept: number;
}

interface Measured extends AsyncDisposable {
  readonly records: MoneyRecords;
  taken(): Promise<Taken>;
}

async function inSqlite(): Promise<Measured> {
  const dataDir = await mkdtemp(join(MEMORY_FOLDER, 'pasarela-size-'));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  const db = new DatabaseSync(join(dataDir, 'money.sqlite'));
  // What else is in the pages of a payment, and what they have room for, is counted as well.
  const pages = db.prepare(`
    SELECT sum(pgsize) AS everything,
      sum(pgsize) FILTER (WHERE name IN ('intent', 'sqlite_autoindex_intent_1') OR name LIKE '%journal%') AS kept
    FROM dbstat WHERE name <> 'probes'`);
  return {
    records,
    taken: async () => {
      const { everything, kept } = Object(pages.get());
      return { all: Number(everything), kept: Number(kept) };
    },
    async [Symbol.asyncDispose]() {
      db.close();
      await records.stop();
      await rm(dataDir, { recursive: true });
    },
  };
}

async function inRedis(): Promise<Measured> {
  const redis: RedisServer = await startRedis();
  const records = patient(
    await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger }),
  );
  return {
    records,
    async taken() {
      const each = (await redis.admin.keys('pasarela:money:*')).map(async (key) => ({
        bytes: Number(await redis.admin.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')),
        isKept: /:([\w-]{43}|journal|journal-head)$/.test(key) && !key.includes(':twin:'),
      }));
      const keys = await Promise.all(each);
      const sum = (some: typeof keys) => some.reduce((whole, { bytes }) => whole + bytes, 0);
      return { all: sum(keys), kept: sum(keys.filter(({ isKept }) => isKept)) };
    },
    async [Symbol.asyncDispose]() {
      await records.stop();
      await redis.stop();
    },
  };
}

describe.each([
  ['node:sqlite', inSqlite],
  ['Redis', inRedis],
])('a settled payment over %s', (_name, open) => {
  let measured: Measured;
  beforeAll(async () => {
    measured = await open();
  });
  afterAll(() => measured[Symbol.asyncDispose]());

  const cases = Object.entries(PAYERS).flatMap(([mode, payer]) =>
    // The keys of ANSWERS are mutations.
    (Object.keys(ANSWERS) as MoneyMutation[]).map((operation) => ({ mode, operation, payer })),
  );

  it.each(cases)('takes no more than 2 KB in $mode: $operation', async ({ operation, payer }) => {
    const { records, taken } = measured;
    await payAll(records, operation, payer, BEFORE);
    const before = await taken();
    await payAll(records, operation, payer, COUNTED);
    const after = await taken();
    const kept = (after.kept - before.kept) / COUNTED;
    expect(kept).toBeGreaterThan(1_000);
    expect(kept).toBeLessThanOrEqual(MOST);
    const all = (after.all - before.all) / COUNTED;
    expect(all).toBeGreaterThan(kept);
    expect(all).toBeLessThanOrEqual(MOST_IN_ALL[payer.isCustomer ? 'customer' : 'client']);
  });
});
