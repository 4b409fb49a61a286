import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { holdText } from '../../src/cli/payments/hold-text.ts';
import { disk, useDisk } from '../../src/common/disk.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { type MoneyRecords, RETENTION_DAYS, RETENTION_MS } from '../../src/money/record.ts';
import { ledgerOf, RedisHolds } from '../../src/money/redis/holds.ts';
import { MARKS, RedisMarks } from '../../src/money/redis/marks.ts';
import { openRedisRecords } from '../../src/money/redis/redis-record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { DurableWrites } from '../../src/redis/durable-write.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';
import { patient } from './stores.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pasarela-copied-'));
});
afterEach(() => rm(dir, { recursive: true }));

async function send(records: MoneyRecords, clientId: string): Promise<void> {
  const key = randomUUID();
  const name = recordName({ clientId, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', name.hash);
  await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key });
  await records.markSent(name, 'call', '{"sent":true}', { upstreamKey: null, original: null });
}

/** The time of the newest line, once the clock shows a later one. */
async function newestOf(records: MoneyRecords, clientId: string): Promise<number> {
  const newest = Number((await records.journal.head(clientId)).last.split('-')[0]);
  await until(async () => Date.now() > newest + 5);
  return newest;
}

const putBack = { why: 'put-back', since: expect.any(Number), missing: 2 };

describe('a record in SQLite that was put back tells the time of the last line of the copy,', () => {
  it('also after calls have left lines, and nothing where the file is gone', async () => {
    let now = 1_000_000;
    const path = join(dir, 'money.sqlite');
    const open = () => openSqliteRecords(path, () => now);
    const clientId = randomUUID();
    const first = open();
    await send(first, clientId);
    await first.stop();
    await cp(path, join(dir, 'copy'));
    const second = open();
    now += 60_000;
    for (const _payment of [1, 2]) await send(second, clientId);
    await second.stop();
    for (const suffix of ['', '-wal', '-shm']) await rm(path + suffix, { force: true });
    await cp(join(dir, 'copy'), path);
    now += 60_000;
    for (const _start of [1, 2]) {
      const records = open();
      expect(await records.held()).toEqual([{ ...putBack, since: 1_120_000, copied: 1_000_000 }]);
      now += 60_000;
      await expect(send(records, clientId)).rejects.toMatchObject({ why: 'put-back' });
      await records.stop();
    }
    await rm(path);
    const empty = open();
    expect(await empty.held()).toMatchObject([{ why: 'put-back', missing: 3, copied: undefined }]);
    await empty.stop();
  });
});

it('a payment that the disk did not take at its very end is counted nowhere, so that nothing reads as put back', async () => {
  const path = join(dir, 'money.sqlite');
  const clientId = randomUUID();
  const system = disk;
  let isFull = false;
  using cleanup = new DisposableStack();
  const restore = useDisk({
    ...system,
    open(...file) {
      const db = system.open(...file);
      const exec = db.exec.bind(db);
      db.exec = (sql) => {
        if (isFull && sql === 'COMMIT') throw new Error('database or disk is full');
        exec(sql);
      };
      return db;
    },
  });
  cleanup.defer(restore);
  const first = openSqliteRecords(path);
  await send(first, clientId);
  const key = randomUUID();
  const name = recordName({ clientId, customerId: undefined, key });
  await first.claim(name, { ...NOBODYS, owner: 'call', inputHash: 'hash', leaseMs: 0, twin: key });
  isFull = true;
  await expect(first.markSent(name, 'call', '{}')).rejects.toMatchObject({ isUndone: true });
  isFull = false;
  await first.stop();
  const second = openSqliteRecords(path);
  expect(await second.held()).toEqual([]);
  await send(second, clientId);
  await second.stop();
});

describe('a Redis that was put back tells the time of the last line of the copy,', () => {
  it('also where calls leave lines before a gateway notices, and nothing where it is empty', async () => {
    await using redis = await startRedis();
    const records = patient(await openRedisRecords(redis.url, dir, silentLogger));
    const unaware = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const clientId = randomUUID();
    await send(records, clientId);
    const keys = ['ledger', 'journal', 'journal-head'].map((name) => `pasarela:money:{${clientId}}:${name}`);
    const copy = await Promise.all(keys.map((key) => redis.admin.dumpBuffer(key)));
    const copied = await newestOf(records, clientId);
    for (const _payment of [1, 2, 3]) await send(records, clientId);
    await newestOf(records, clientId);
    for (const [index, key] of keys.entries())
      await redis.admin.restore(key, 0, copy[index] ?? '', 'REPLACE');

    // It knows nothing of the client.
    await send(unaware, clientId);
    expect(await records.isPutBack(clientId)).toBe(true);
    for (const each of [records, unaware]) expect(await each.held()).toEqual([{ ...putBack, copied }]);
    await expect(send(unaware, clientId)).rejects.toMatchObject({ why: 'put-back' });
    expect(await records.held()).toEqual([{ ...putBack, copied }]);

    await redis.admin.flushall();
    await unaware.claim(recordName({ clientId, customerId: undefined, key: 'another' }), {
      ...{ ...NOBODYS, owner: 'call', inputHash: 'hash', leaseMs: 0, twin: 'another' },
    });
    expect(await records.isPutBack(clientId)).toBe(true);
    expect(await unaware.held()).toMatchObject([{ why: 'put-back', missing: 4, copied: undefined }]);
    await records.resume(true);
    await records.stop();
    await unaware.stop();
  });

  it('and no time where the count that it is behind was noted by a version before', async () => {
    await using redis = await startRedis();
    const clientId = randomUUID();
    const first = patient(await openRedisRecords(redis.url, dir, silentLogger));
    for (const _payment of [1, 2]) await send(first, clientId);
    await first.stop();
    const marks = JSON.parse(await readFile(join(dir, MARKS), 'utf8'));
    expect(marks).toEqual({ [clientId]: { epoch: 0, sent: 2, at: expect.any(Number) } });
    await writeFile(join(dir, MARKS), JSON.stringify({ [clientId]: { epoch: 0, sent: 2 } }));
    await redis.admin.hset(`pasarela:money:{${clientId}}:ledger`, 'sent', 1);
    const records = patient(await openRedisRecords(redis.url, dir, silentLogger));
    expect(await records.held()).toMatchObject([{ missing: 1, copied: undefined }]);
    await records.stop();
  });
});

/**
 * Two clients, in the order in which a process compares them, whose ledgers are behind by a payment; and a process with their marks, its
 * connection and its holds.
 */
async function behind(cleanup: AsyncDisposableStack, isCommand = false) {
  const redis = cleanup.use(await startRedis());
  const records = patient(await openRedisRecords(redis.url, dir, silentLogger));
  const ids = [randomUUID(), randomUUID()];
  for (const clientId of [...ids, ...ids]) await send(records, clientId);
  await records.stop();
  for (const clientId of ids) await redis.admin.hset(ledgerOf(clientId), 'sent', 1);
  const operator = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
  cleanup.defer(() => operator.stop());
  const client = redis.admin.duplicate();
  cleanup.defer(() => client.disconnect());
  const marks = new RedisMarks(join(dir, MARKS));
  const holds = new RedisHolds(client, new DurableWrites(redis.url, 1_000), marks, isCommand);
  const [first = '', second = ''] = marks.clients;
  return { client, operator, holds, first, second };
}

it('a command lets no payments go on of a Redis whose ledgers it could read, and found to be behind, only as it was about to', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { client, operator, holds, first, second } = await behind(cleanup, true);
  const ledgers = () => Promise.all([first, second].map((clientId) => client.hgetall(ledgerOf(clientId))));
  const evalsha = client.evalsha.bind(client);
  let isAway = true;
  vi.spyOn(client, 'evalsha').mockImplementation(async (...asked) => {
    if (isAway) throw new Error('the node is away');
    return evalsha(...asked);
  });
  await expect(holds.held()).rejects.toThrow('the node is away');
  await operator.holdPayments();
  const before = await ledgers();
  expect(await holds.held()).toMatchObject([{ why: 'stopped' }]);
  for (const isCompared of [false, true])
    await expect(holds.resume(isCompared)).rejects.toThrow('the node is away');
  isAway = false;
  await expect(holds.resume(false)).rejects.toMatchObject({ why: 'put-back' });
  expect(await ledgers()).toEqual(before);
  expect(await operator.held()).toMatchObject([{ why: 'stopped' }]);
  await holds.resume(true);
  expect(await ledgers()).toMatchObject([{ epoch: '1' }, { epoch: '1' }]);
});

describe('a gateway that knows that a Redis was put back,', () => {
  it('and tells the others as an operator lets payments go on, holds none any more', async () => {
    await using cleanup = new AsyncDisposableStack();
    const { client, operator, holds, first, second } = await behind(cleanup);
    for (const clientId of [first, second]) expect(await holds.isPutBack(clientId)).toBe(true);
    const sadd = client.sadd.bind(client);
    vi.spyOn(client, 'sadd').mockImplementation(async (...told) => {
      await operator.resume(true);
      return sadd(...told);
    });
    expect(await holds.isPutBack(first)).toBe(true);
    for (const each of [operator, holds]) expect(await each.held()).toEqual([]);
    for (const clientId of [first, second]) await send(operator, clientId);
  });

  it('tells the others also where the ledger of another client cannot be read', async () => {
    await using cleanup = new AsyncDisposableStack();
    const { client, operator, holds, first, second } = await behind(cleanup);
    const evalsha = client.evalsha.bind(client);
    vi.spyOn(client, 'evalsha').mockImplementation(async (...asked) => {
      if ((asked as unknown[]).includes(ledgerOf(first))) throw new Error('the node is away');
      return evalsha(...asked);
    });
    await holds.look();
    expect(await operator.held()).toMatchObject([{ why: 'put-back', missing: 1 }]);
    await expect(send(operator, second)).rejects.toMatchObject({ why: 'put-back' });
  });
});

it('an operator is told from when on to compare, and up to how many payments are missing', () => {
  const hold = { why: 'put-back', since: Date.UTC(2026, 10, 26, 12, 3), missing: 2 } as const;
  expect(holdText({ ...hold, copied: Date.UTC(2026, 10, 26, 3) })).toBe(
    'Payments have been held since 2026-11-26T12:03:00.000Z: their record was put back, to a copy that may be far older than that. The last line that the copy had is of 2026-11-26T03:00:00.000Z: compare the transactions from then on with what callers hold. Missing from it: up to 2, as the gateways have counted.',
  );
  expect(holdText({ ...hold, copied: undefined })).toContain(
    `compare the transactions of ${RETENTION_DAYS} days, from ${new Date(hold.since - RETENTION_MS).toISOString()} on,`,
  );
});
