import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import { RETRY_WINDOW_MS } from '../../src/money/backoff.ts';
import { inputHash, type RecordName, recordName } from '../../src/money/intent.ts';
import { type MoneyRecords, RETENTION_MS } from '../../src/money/record.ts';
import { keyOf } from '../../src/money/redis/keys.ts';
import { openRedisRecords } from '../../src/money/redis/redis-record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';
import { patient, STORES, type Store } from './stores.ts';

const LEASE_MS = 600_000;
const CLOSING = { kind: 'unknown', status: 409, text: 'busy' } as const;
const EVERY = {
  customerId: undefined,
  operations: ['createMoneyOut'],
  from: undefined,
  to: undefined,
  beyond: undefined,
  isBack: false,
  limit: 10,
} as const;

/** A payment that has left under the lease of a call; 0 for one that has ended. */
async function send(
  records: MoneyRecords,
  clientId: string,
  leaseMs = 0,
  upstreamKey?: string,
): Promise<RecordName> {
  const name = recordName({ clientId, customerId: undefined, key: randomUUID() });
  await sendUnder(records, name, leaseMs, upstreamKey);
  return name;
}

async function sendUnder(
  records: MoneyRecords,
  name: RecordName,
  leaseMs = 0,
  upstreamKey?: string,
): Promise<void> {
  await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hashOf(name), leaseMs, twin: name.hash });
  await records.markSent(name, 'call', '{"sent":true}', { upstreamKey: upstreamKey ?? null, original: null });
}

const hashOf = ({ hash }: RecordName): string => inputHash('createMoneyOut', hash);

describe.each(STORES)('open payments, over %s,', (_kind, makeStore) => {
  let store: Store;
  let records: MoneyRecords;
  let other: MoneyRecords;
  beforeAll(async () => {
    store = await makeStore();
    records = await store.open();
    other = await store.open();
  });
  afterAll(async () => {
    await records.stop();
    await other.stop();
    await store.close();
  });

  it.each([true, false])(
    'say by which twin they are found, where they are a customer’s: %s',
    async (isCustomers) => {
      const name = recordName({ clientId: randomUUID(), customerId: undefined, key: randomUUID() });
      const claim = { ...NOBODYS, inputHash: hashOf(name), leaseMs: 0, twin: 'a twin' };
      // Another owner's claim of the same name came first, and sent nothing.
      await records.claim(name, { ...claim, owner: 'first', isCustomers: !isCustomers });
      await records.claim(name, { ...claim, owner: 'call', isCustomers });
      await records.markSent(name, 'call', '{}', { upstreamKey: null, original: null });
      await records.hasten(name);
      const taken = await other.takeOpen(name, 'one', LEASE_MS);
      expect(taken?.twin).toBe(isCustomers ? 'a twin' : null);
    },
  );

  it('are due soon after they were sent, and taken by one', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId, 0, 'upstream-key');
    expect(await records.takeOpen(name, 'early', LEASE_MS)).toBeUndefined();
    const due = await until(async () => {
      const names = await other.due(clientId, 10);
      return names.length > 0 && names;
    });
    expect(due).toEqual([name]);
    const taken = await Promise.all([
      records.takeOpen(name, 'one', LEASE_MS),
      other.takeOpen(name, 'two', LEASE_MS),
    ]);
    expect(taken.filter((each) => each !== undefined)).toHaveLength(1);
    expect(taken.find((each) => each !== undefined)).toMatchObject({
      name,
      inputHash: hashOf(name),
      asked: { operation: 'createMoneyOut' },
      body: '{"sent":true}',
      upstreamKey: 'upstream-key',
      closed: null,
      tries: 0,
    });
    expect(await other.due(clientId, 10)).toEqual([]);
    expect(await other.read(name)).toMatchObject({ isHeld: true });
  });

  it('are put off and given back by the one who took them alone, with what was seen', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId, 0, 'upstream-key');
    await records.hasten(name);
    expect(await records.takeOpen(name, 'mine', LEASE_MS)).toMatchObject({ tries: 0 });
    // Whoever took it before, or after.
    for (const tries of [-1, 1]) await other.putOff({ name, tries }, 0, 'nothing');
    expect(await other.due(clientId, 10)).toEqual([]);
    await records.putOff({ name, tries: 0 }, 0, 'no-answer');
    expect(await other.read(name)).toMatchObject({ isHeld: false, seen: 'no-answer' });
    // What two processes without Redis take for the time differs by up to a second.
    expect(await until(() => other.takeOpen(name, 'next', LEASE_MS))).toMatchObject({ tries: 1 });
    await other.putOff({ name, tries: 1 }, undefined, 'nothing');
    expect(await records.due(clientId, 10)).toEqual([]);
    await records.hasten(name);
    expect(await records.due(clientId, 10)).toEqual([name]);
    // The pauses after it are as short as at first.
    expect(await other.takeOpen(name, 'last', LEASE_MS)).toMatchObject({ tries: 0 });
  });

  it('are due under a key that is used again, though the payment before was put off for ever', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId);
    await records.hasten(name);
    expect(await records.takeOpen(name, 'settler', LEASE_MS)).toMatchObject({ tries: 0 });
    await records.putOff({ name, tries: 0 }, undefined, 'nothing');
    await store.endSooner(name, RETENTION_MS);
    await sendUnder(records, name);
    await until(async () => (await other.due(clientId, 10)).length > 0);
    expect(await other.takeOpen(name, 'settler', LEASE_MS)).toMatchObject({ name, tries: 0 });
  });

  it('are nobody else while a call holds them, and none once they are settled', async () => {
    const clientId = randomUUID();
    const held = await send(records, clientId, LEASE_MS, 'upstream-key');
    const settled = await send(records, clientId, 0, 'upstream-key');
    await records.hasten(held);
    await records.hasten(settled);
    expect(await records.takeOpen(held, 'me', LEASE_MS)).toBeUndefined();
    await records.answer(settled, hashOf(settled), { kind: 'done', status: 200, text: '{}' }, randomUUID());
    expect(await records.takeOpen(settled, 'me', LEASE_MS)).toBeUndefined();
    await records.hasten(settled);
    expect(await records.due(clientId, 10)).toEqual([]);
    const released = await send(records, clientId, LEASE_MS, 'upstream-key');
    await records.release(released, 'call');
    await records.hasten(released);
    expect(await records.due(clientId, 10)).toEqual([]);
  });

  it('stay their senders’ where they are only looked for: who finds that nothing had left forgets them', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId, 0);
    await records.hasten(name);
    expect(await other.takeOpen(name, 'settler', LEASE_MS)).toMatchObject({ upstreamKey: null });
    expect(await records.release(name, 'call')).toBe(true);
    expect(await other.read(name)).toBeUndefined();
    const sent = await send(records, clientId, 0, 'upstream-key');
    await records.hasten(sent);
    expect(await other.takeOpen(sent, 'settler', LEASE_MS)).toBeDefined();
    expect(await records.release(sent, 'call')).toBe(false);
    expect(await other.read(sent)).toBeDefined();
  });

  it('are sent again by themselves once payments go on that an operator had stopped', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId, 0, 'upstream-key');
    await records.holdPayments();
    await records.resume(true);
    await other.held();
    const due = await until(async () => (await other.due(clientId, 10)).length > 0);
    expect(due).toBe(true);
    expect(await until(() => other.takeOpen(name, 'me', LEASE_MS))).toMatchObject({
      upstreamKey: 'upstream-key',
    });
  });

  it('are looked for while an operator has stopped payments: to read moves nothing', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId);
    await records.hasten(name);
    await records.holdPayments();
    try {
      const taken = await other.takeOpen(name, 'looks', LEASE_MS);
      expect(taken).toMatchObject({ name, upstreamKey: null });
      await other.answer(name, hashOf(name), { kind: 'done', status: 200, text: '{}' }, randomUUID());
      expect(await records.read(name)).toMatchObject({ answer: { kind: 'done' } });
    } finally {
      await records.resume(true);
    }
  });

  it('are taken although they are put off where their callers have come, unless they are leased or sent again', async () => {
    const clientId = randomUUID();
    const [looked, sent] = [await send(records, clientId), await send(records, clientId, 0, 'upstream-key')];
    for (const name of [looked, sent]) {
      await records.hasten(name);
      const first = await records.takeOpen(name, 'me', LEASE_MS);
      if (first === undefined) throw new Error('It is due.');
      // Somebody looks for it.
      expect(await other.takeOpen(name, 'two', LEASE_MS, true)).toBeUndefined();
      await records.putOff(first, 10 * LEASE_MS, 'nothing');
      expect(await other.takeOpen(name, 'two', LEASE_MS)).toBeUndefined();
    }
    expect(await other.takeOpen(sent, 'two', LEASE_MS, true)).toBeUndefined();
    const asked = await other.takeOpen(looked, 'two', LEASE_MS, true);
    if (asked === undefined) throw new Error('Its caller has come.');
    await other.putOff(asked, undefined, 'nothing');
    expect(await records.takeOpen(looked, 'me', LEASE_MS)).toBeUndefined();
    expect(await records.takeOpen(looked, 'me', LEASE_MS, true)).toBeDefined();
  });

  it.each<[string, boolean, (name: RecordName) => Promise<unknown>]>([
    ['is closed by an answer', true, (name) => records.answer(name, hashOf(name), CLOSING)],
    ['is older than it may be sent again', true, (name) => store.backdate(name, RETRY_WINDOW_MS)],
    ['may still be sent again', false, (name) => store.backdate(name, RETRY_WINDOW_MS - 60_000)],
  ])(
    'whose callers have come: money out under a key that %s, so that it is taken: %s',
    async (_why, isTaken, make) => {
      const name = await send(records, randomUUID(), 0, 'upstream-key');
      await make(name);
      await records.hasten(name);
      const first = await records.takeOpen(name, 'me', LEASE_MS);
      if (first === undefined) throw new Error('It is due.');
      // Somebody has it.
      expect(await other.takeOpen(name, 'two', LEASE_MS, true)).toBeUndefined();
      await records.putOff(first, 10 * LEASE_MS, 'nothing');
      expect(await other.takeOpen(name, 'two', LEASE_MS)).toBeUndefined();
      const taken = await Promise.all([
        records.takeOpen(name, 'one', LEASE_MS, true),
        other.takeOpen(name, 'two', LEASE_MS, true),
      ]);
      expect(taken.filter((each) => each !== undefined)).toHaveLength(isTaken ? 1 : 0);
    },
  );

  it('are taken without their key where nothing may be sent under it any more', async () => {
    const clientId = randomUUID();
    const name = await send(records, clientId, 0, 'upstream-key');
    await records.answer(name, hashOf(name), { kind: 'unknown', status: 409, text: 'busy' });
    await records.hasten(name);
    const taken = await records.takeOpen(name, 'me', LEASE_MS);
    expect(taken).toMatchObject({ closed: { kind: 'unknown', status: 409, text: 'busy' } });
    await records.answer(name, hashOf(name), { kind: 'done', status: 200, text: '{}' }, randomUUID());
    expect(await other.read(name)).toMatchObject({ answer: { kind: 'done' } });
  });
});

describe('a record that was put back', () => {
  /** Nothing is taken while payments are held; afterwards nothing is sent again by itself, until an operator says so. */
  async function isLetGoOn(records: MoneyRecords, name: RecordName): Promise<void> {
    await records.hasten(name);
    expect(await records.takeOpen(name, 'me', 0)).toBeUndefined();
    // Stopped as well, it is told as both, and is taken no more than before.
    await records.holdPayments();
    expect(await records.held()).toMatchObject([{ why: 'stopped' }, { why: 'put-back' }]);
    expect(await records.takeOpen(name, 'me', 0)).toBeUndefined();
    // An operator who has not compared lets nothing go on, not even what is stopped alone.
    await expect(records.resume(false)).rejects.toMatchObject({ why: 'put-back' });
    expect(await records.held()).toMatchObject([{ why: 'stopped' }, { why: 'put-back' }]);
    await records.resume(true);
    expect(await records.takeOpen(name, 'me', 0)).toMatchObject({ upstreamKey: null, isCurrent: false });
    await records.hasten(name);
    const hastened = { upstreamKey: 'upstream-key', isCurrent: true };
    expect(await records.takeOpen(name, 'me', 0)).toMatchObject(hastened);
  }

  it('has its open payments sent again only when an operator hastens them, over node:sqlite', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
    const path = join(dataDir, 'money.sqlite');
    const before = openSqliteRecords(path);
    const name = await send(before, randomUUID(), 0, 'upstream-key');
    await before.stop();
    // As if a payment had been sent of which this file knows nothing.
    await writeFile(join(dataDir, 'money.sqlite-mark-0-9'), '');
    const records = openSqliteRecords(path);
    await isLetGoOn(records, name);
    await records.stop();
    await rm(dataDir, { recursive: true });
  });

  it('has its open payments sent again only when an operator hastens them, over Redis', async () => {
    await using redis = await startRedis();
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const clientId = randomUUID();
    const name = await send(records, clientId, 0, 'upstream-key');
    await send(records, clientId);
    // As if the second had been forgotten.
    await redis.admin.hset(`pasarela:money:{${clientId}}:ledger`, 'sent', 1);
    await isLetGoOn(records, name);
    await records.stop();
  });

  it('holds the payments of each client of the Redis, once one is found to be behind', async () => {
    await using redis = await startRedis();
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const [behind, other] = [randomUUID(), randomUUID()];
    for (const clientId of [behind, other]) await send(records, clientId);
    await redis.admin.hset(`pasarela:money:{${behind}}:ledger`, 'sent', 0);
    for (const clientId of [behind, other])
      await expect(send(records, clientId)).rejects.toMatchObject({ why: 'put-back' });
    await records.resume(true);
    await send(records, other);
    await records.stop();
  });

  it('holds payments also where the ledger of the client that was behind shows nothing of it any more', async () => {
    await using redis = await startRedis();
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const [behind, other] = [randomUUID(), randomUUID()];
    await send(records, other);
    await redis.admin.sadd('pasarela:money:held', behind);
    expect(await records.held()).toMatchObject([{ why: 'put-back', missing: 0 }]);
    await expect(send(records, other)).rejects.toMatchObject({ why: 'put-back' });
    await records.resume(true);
    await send(records, other);
    await records.stop();
  });

  it('lets payments go on at the first resume where the copy had them held already, before payments went on', async () => {
    await using redis = await startRedis();
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const clientId = randomUUID();
    const ledger = `pasarela:money:{${clientId}}:ledger`;
    for (let payment = 0; payment < 2; payment += 1) await send(records, clientId);
    await redis.admin.hset(ledger, 'sent', 1);
    await expect(send(records, clientId)).rejects.toMatchObject({ why: 'put-back' });
    const copy = await redis.admin.dumpBuffer(ledger);
    await records.resume(true);
    for (let payment = 0; payment < 3; payment += 1) await send(records, clientId);

    await redis.admin.restore(ledger, 0, copy, 'REPLACE');
    await expect(send(records, clientId)).rejects.toMatchObject({ why: 'put-back' });
    expect(await records.held()).toMatchObject([{ why: 'put-back', missing: 3 }]);
    await records.resume(true);
    expect(await records.isPutBack(clientId)).toBe(false);
    await send(records, clientId);
    await records.stop();
  });
});

it('what a version before has written over Redis is tidied up, so that settled payments are found as such', async () => {
  await using redis = await startRedis();
  const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
  const clientId = randomUUID();
  const key = ({ hash }: RecordName) => `pasarela:money:{${clientId}}:${hash}`;
  const [looked, tidied, entered] = [
    await send(records, clientId),
    await send(records, clientId),
    await send(records, clientId),
  ];
  for (const name of [looked, tidied]) {
    // It files nothing.
    await redis.admin.hset(key(name), { state: 'answered', kind: 'done', status: '200', text: '{}' });
  }
  await redis.admin.zrem(`pasarela:money:{${clientId}}:due`, tidied.hash, entered.hash);
  const found = async (kind: 'open' | 'done') => {
    const { records: all } = await records.search({ ...EVERY, clientId, classes: [kind] });
    return all.map(({ hash }) => hash).sort();
  };
  expect(await found('done')).toEqual([]);
  expect(await records.takeOpen(looked, 'me', LEASE_MS)).toBeUndefined();
  expect(await found('done')).toEqual([looked.hash]);
  await records.tidy(clientId);
  expect(await found('done')).toEqual([looked.hash, tidied.hash].sort());
  expect(await found('open')).toEqual([entered.hash]);
  await until(async () => (await records.due(clientId, 10)).some(({ hash }) => hash === entered.hash));
  await records.stop();
});

it('what is put off for good stays so when the record is tidied up, until it is gone, over Redis', async () => {
  await using redis = await startRedis();
  const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
  const clientId = randomUUID();
  const name = await send(records, clientId);
  await records.hasten(name);
  const taken = await records.takeOpen(name, 'me', LEASE_MS);
  if (taken === undefined) throw new Error('The payment is due, and nobody has it.');
  await records.putOff(taken, undefined, 'nothing');
  const due = () => redis.admin.zscore(`pasarela:money:{${clientId}}:due`, name.hash);
  await records.tidy(clientId);
  expect(await due()).toBe('inf');
  // As after the time for which a record is kept.
  await redis.admin.del(keyOf(name));
  await records.tidy(clientId);
  expect(await due()).toBeNull();
  await records.stop();
});

it('what was put off for good is due no more once its record is gone, also where a search has come before the tidying, over Redis', async () => {
  await using redis = await startRedis();
  const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
  const clientId = randomUUID();
  const name = await send(records, clientId);
  await records.hasten(name);
  const taken = await records.takeOpen(name, 'me', LEASE_MS);
  if (taken === undefined) throw new Error('The payment is due, and nobody has it.');
  await records.putOff(taken, undefined, 'nothing');
  await redis.admin.del(keyOf(name));
  expect((await records.search({ ...EVERY, clientId, classes: ['open'] })).records).toEqual([]);
  expect(await redis.admin.zscore(`pasarela:money:{${clientId}}:due`, name.hash)).toBeNull();
  await records.stop();
});

it('what is open and filed is not written again when the record is tidied up, over Redis', async () => {
  await using redis = await startRedis();
  const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
  const clientId = randomUUID();
  for (let count = 0; count < 10; count += 1) await send(records, clientId);
  const changes = async () =>
    /rdb_changes_since_last_save:(\d+)/.exec(String(await redis.admin.info('persistence')))?.[1];
  const before = await changes();
  await records.tidy(clientId);
  expect(before).toMatch(/\d/);
  expect(await changes()).toBe(before);
  await records.stop();
});
