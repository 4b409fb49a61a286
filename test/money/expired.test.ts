import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inputHash, MONEY_MUTATIONS, recordName } from '../../src/money/intent.ts';
import { type Claim, PAYMENT_CLASSES, RETENTION_MS } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { NOBODYS } from './orders.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const HASH = inputHash('createMoneyOut', {});
const DONE = { kind: 'done', status: 200, text: '{}' } as const;
const TWIN = { ...NOBODYS, twin: 'twin of many', isCustomers: true };
const WHOLE = { ...TWIN, isCustomers: false };
const REFUND = { ...NOBODYS, asked: { ...NOBODYS.asked, operation: 'refundTransaction' as const } };
/** Payments of one moment, such as those of a payday. */
const MANY = 300;

const nameOf = (key: string) => recordName({ clientId: CLIENT, customerId: undefined, key });
const keys = Array.from({ length: MANY }, (_, index) => `payment ${index}`);

let dataDir: string;
let monotonic: number;
let records: ReturnType<typeof openSqliteRecords>;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-expired-'));
  monotonic = 0;
  records = openSqliteRecords(join(dataDir, 'money.sqlite'), Date.now, () => monotonic);
});
afterEach(async () => {
  await records.stop();
  await rm(dataDir, { recursive: true });
});

const claim = (key: string, whose: Omit<Claim, 'owner' | 'inputHash' | 'leaseMs'> = TWIN, owner = 'a') =>
  records.claim(nameOf(key), { owner, inputHash: HASH, leaseMs: 0, ...whose });

/** Sends payments; every second one is left open, and due. */
async function sendAll(): Promise<void> {
  for (const [index, key] of keys.entries()) {
    await claim(key);
    await records.markSent(nameOf(key), 'a', '{}', { upstreamKey: 'its own', original: null });
    if (index % 2 === 0) await records.answer(nameOf(key), HASH, DONE, `transaction ${index}`);
  }
}

function left(table = 'intent'): number {
  using db = new DatabaseSync(join(dataDir, 'money.sqlite'));
  return Number(db.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count']);
}

describe('payments of one moment whose records end together', () => {
  it('are deleted a few with each payment, as all at once would keep every caller waiting', async () => {
    await sendAll();
    monotonic = RETENTION_MS;
    expect(await claim('the next')).toEqual({ state: 'claimed' });
    const gone = MANY + 1 - left();
    expect(gone).toBeGreaterThan(1);
    expect(gone).toBeLessThanOrEqual(16);
    for (let next = 0; next < MANY / gone; next += 1) await claim(`another ${next}`);
    expect(left()).toBe(1 + Math.ceil(MANY / gone));
  });

  it('count for nothing though they are not deleted yet', async () => {
    await sendAll();
    monotonic = RETENTION_MS - 1;
    expect(await claim('payment 298')).toMatchObject({ state: 'answered' });
    expect(await claim('payment 299')).toMatchObject({ state: 'sent' });
    expect(await claim('for the whole client', WHOLE)).toMatchObject({ state: 'customers', answer: DONE });
    expect(await records.due(CLIENT, 1)).toHaveLength(1);
    monotonic = RETENTION_MS;
    expect(await records.due(CLIENT, 1)).toEqual([]);
    expect(await claim('for the whole client', WHOLE)).toEqual({ state: 'claimed' });
    // A record that says that it was sent would keep its body, and the settler would send that.
    for (const key of ['payment 298', 'payment 299']) {
      expect(await claim(key, TWIN, 'b')).toEqual({ state: 'claimed' });
      expect(await records.read(nameOf(key))).toMatchObject({ state: 'claimed', body: null, sent: null });
    }
    expect(left()).toBeGreaterThan(200);
    const all = { clientId: CLIENT, operations: MONEY_MUTATIONS, classes: PAYMENT_CLASSES };
    const everything = { customerId: undefined, from: undefined, to: undefined, beyond: undefined };
    const found = await records.search({ ...all, ...everything, isBack: false, limit: 10 });
    expect(found).toEqual({ records: [], next: undefined });
    expect(await records.readByTransactions(CLIENT, ['transaction 296'])).toEqual([undefined]);
  });

  it('leave an owner free to pay under the other name of a key', async () => {
    await sendAll();
    const other = { hash: nameOf('payment 298').hash, isFirst: true };
    monotonic = RETENTION_MS - 1;
    expect(await claim('its own', { ...NOBODYS, other })).toEqual({ state: 'not-yours' });
    monotonic = RETENTION_MS;
    expect(await claim('its own', { ...NOBODYS, other })).toEqual({ state: 'claimed' });
  });
});

describe('refunds of one moment', () => {
  const refund = async (key: string, original: string) => {
    await claim(key, REFUND);
    await records.markSent(nameOf(key), 'a', '{}', { upstreamKey: null, original });
  };

  it('are forgotten a few with each refund', async () => {
    for (const key of keys) await refund(key, `credit ${key}`);
    expect(left('refunds')).toBe(MANY);
    monotonic = RETENTION_MS;
    // What is not deleted yet keeps nobody from a refund of the same credit.
    await refund('another', 'credit payment 299');
    const gone = MANY - left('refunds');
    expect(gone).toBeGreaterThan(1);
    expect(gone).toBeLessThanOrEqual(16);
  });
});
