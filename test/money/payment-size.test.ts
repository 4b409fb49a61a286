import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { inputHash, type MoneyMutation, recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { randomFrom } from '../helpers/random.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const MOST = 2_048;
/** Pages fill up, and sets grow, before a payment's share of them is counted. */
const BEFORE = 100;
const COUNTED = 400;
const AT_ONCE = 25;
/** Where a file is synced in no time, as nothing here outlives the test. */
const FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

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

/** A payment of a gateway in passthrough, from beginning to end. */
async function pay(records: MoneyRecords, operation: MoneyMutation): Promise<void> {
  const [key, owner, source, destination] = [uuid(), uuid(), uuid(), uuid()];
  const name = recordName({ clientId: CLIENT, customerId: undefined, key });
  const input = inputHash(operation, key);
  const isRefund = operation === 'refundTransaction';
  const between = isRefund ? { source: null, destination: null } : { source, destination };
  const asked = {
    operation,
    customerId: null,
    amount: isRefund ? null : '1250.00',
    ...between,
    requestedBy: `sha256:${input}`,
  };
  const whose = { keyOwner: '', twin: key, isCustomers: false };
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

async function payAll(records: MoneyRecords, operation: MoneyMutation, count: number): Promise<void> {
  for (let made = 0; made < count; made += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => pay(records, operation)));
  }
}

/** A store, and how many bytes it takes. */
interface Measured extends AsyncDisposable {
  readonly records: MoneyRecords;
  bytes(): Promise<number>;
}

async function inSqlite(): Promise<Measured> {
  const dataDir = await mkdtemp(join(FOLDER, 'pasarela-size-'));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  const db = new DatabaseSync(join(dataDir, 'money.sqlite'));
  // What else is in the pages of a payment, and what they have room for, is counted as well.
  const pages = db.prepare("SELECT sum(pgsize) AS bytes FROM dbstat WHERE name <> 'probes'");
  return {
    records,
    bytes: async () => Number(pages.get()?.['bytes']),
    async [Symbol.asyncDispose]() {
      db.close();
      await records.stop();
      await rm(dataDir, { recursive: true });
    },
  };
}

async function inRedis(): Promise<Measured> {
  const redis: RedisServer = await startRedis();
  const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
  return {
    records,
    async bytes() {
      const each = (await redis.admin.keys('pasarela:money:*')).map((key) =>
        redis.admin.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'),
      );
      return (await Promise.all(each)).reduce<number>((sum, bytes) => sum + Number(bytes), 0);
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
])('a settled payment, with its journal and all that it is found by, over %s,', (_name, open) => {
  let measured: Measured;
  beforeAll(async () => {
    measured = await open();
  });
  afterAll(() => measured[Symbol.asyncDispose]());

  it.each(Object.keys(ANSWERS) as MoneyMutation[])('takes no more than 2 KB: %s', async (operation) => {
    const { records, bytes } = measured;
    await payAll(records, operation, BEFORE);
    const before = await bytes();
    await payAll(records, operation, COUNTED);
    const each = ((await bytes()) - before) / COUNTED;
    expect(each).toBeGreaterThan(1_000);
    expect(each).toBeLessThanOrEqual(MOST);
  });
});
