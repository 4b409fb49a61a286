import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { inputHash, MONEY_MUTATIONS, recordName } from '../../src/money/intent.ts';
import { PAYMENT_CLASSES } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { NOBODYS } from './orders.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const HASH = inputHash('createMoneyOut', {});
const name = recordName({ clientId: CLIENT, customerId: undefined, key: 'one' });
const everything = {
  ...{ clientId: CLIENT, customerId: undefined, operations: MONEY_MUTATIONS, classes: PAYMENT_CLASSES },
  ...{ from: undefined, to: undefined, beyond: undefined, isBack: false, limit: 10 },
};

let dataDir: string;
let monotonic: number;
let records: ReturnType<typeof openSqliteRecords>;
/** Another process of the folder. */
let other: DatabaseSync;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-beside-'));
  const path = join(dataDir, 'money.sqlite');
  monotonic = 0;
  records = openSqliteRecords(path, Date.now, () => monotonic, undefined, undefined, 0);
  await records.claim(name, { ...NOBODYS, owner: 'a', inputHash: HASH, leaseMs: 0 });
  await records.markSent(name, 'a', '{}');
  await records.answer(name, HASH, { kind: 'done', status: 200, text: '{}' }, 'its transaction');
  other = new DatabaseSync(path);
  // Long enough for the clock in the file to be behind, which a step writes.
  monotonic = 60_000;
});
afterEach(async () => {
  other.close();
  await records.stop();
  await rm(dataDir, { recursive: true });
});

it('what only reads payments waits for no process that writes', async () => {
  other.exec('BEGIN IMMEDIATE');
  expect(await records.read(name)).toMatchObject({ state: 'answered' });
  expect(await records.readByTransactions(CLIENT, ['its transaction'])).toMatchObject([{ hash: name.hash }]);
  expect((await records.search(everything)).records).toMatchObject([{ hash: name.hash }]);
  expect(await records.held()).toEqual([]);
  expect(await records.isPutBack(CLIENT)).toBe(false);
  other.exec('ROLLBACK');
});

it('a program that holds the file is told of, while it does and to who opens the file', async () => {
  other.exec('BEGIN IMMEDIATE');
  expect(await records.isAvailable()).toBe(false);
  expect(records.problem()).toMatch(
    /^The record of payments in DATA_DIR .* locked by another program, such as a sqlite3/,
  );
  const path = join(dataDir, 'money.sqlite');
  const open = () => openSqliteRecords(path, undefined, undefined, undefined, undefined, 0);
  expect(open).toThrow(`${path} cannot be opened: database is locked by another program`);
  other.exec('ROLLBACK');
  expect(await records.isAvailable()).toBe(true);
  expect(records.problem()).toBeUndefined();
});

it('a payment that another process has written meanwhile is read, and how long it is kept is counted on', async () => {
  other.exec(
    `UPDATE intent SET text = '{"later":true}', expires_at = (SELECT milliseconds FROM clock) + 60001`,
  );
  expect((await records.read(name))?.answer?.text).toBe('{"later":true}');
  monotonic += 1;
  expect(await records.read(name)).toBeUndefined();
});
