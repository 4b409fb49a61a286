import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { type Ambient, systemAmbient } from '../../src/money/ambient.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { order } from './orders.ts';
import { patient } from './stores.ts';
import { startUpstream, type Upstream } from './upstream.ts';

const HOUR = 3_600_000;

let redis: RedisServer;
let upstream: Upstream;
const opened: { money: Money; records: MoneyRecords }[] = [];
beforeEach(async () => {
  redis = await startRedis();
  upstream = await startUpstream();
});
afterEach(async () => {
  for (const { money, records } of opened.splice(0)) {
    await money.stop();
    await records.stop();
  }
  await upstream[Symbol.asyncDispose]();
  await redis.stop();
});

/** A process whose clock is off by so much. */
async function process(offByMs: number) {
  const ambient: Ambient = { ...systemAmbient, now: () => Date.now() + offByMs };
  const records = patient(
    await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger }),
  );
  const money = createMoney({ records, logger, ambient });
  opened.push({ money, records });
  return (key: string, leave = new AbortController().signal) =>
    money.execute(order(upstream.url, 'createMoneyOut', key), {
      deadline: ambient.now() + 20_000,
      signal: leave,
    });
}

/** Lets hours pass for the records in Redis. */
async function pass(hours: number): Promise<void> {
  for (const key of await redis.admin.keys('pasarela:money:*')) {
    // Beside the records lie the sets that they are listed by.
    if ((await redis.admin.type(key)) === 'hash') await redis.admin.hincrby(key, 'sentAt', -hours * HOUR);
  }
}

it.each([
  ['two hours ahead of', 2 * HOUR, 0],
  ['two hours behind', -2 * HOUR, 0],
  ['as far behind as', -2 * HOUR, -2 * HOUR],
])(
  'moves money once where the clock of the process that sent is %s that of the next one',
  async (_, first, second) => {
    const [one, other] = [await process(first), await process(second)];
    upstream.faults.push('reset-after');
    const leave = new AbortController();
    const sending = one('key', leave.signal);
    await expect.poll(() => upstream.received.length).toBe(1);
    leave.abort();
    expect(await sending).toMatchObject({ kind: 'unknown', safeToRetry: true });

    // The upstream remembers a key for 24 hours.
    await pass(24.5);
    upstream.forget();
    expect(await other('key')).toMatchObject({ kind: 'unknown', safeToRetry: false });
    expect(upstream.ledger.get('key')).toBe(1);
  },
);

it.each([0, -2 * HOUR])(
  'repeats money out within the day, also by a clock that is off by %d ms',
  async (offBy) => {
    const [one, other] = [await process(0), await process(offBy)];
    upstream.faults.push('reset-before');
    const leave = new AbortController();
    const sending = one('key', leave.signal);
    await expect.poll(() => upstream.received.length).toBe(1);
    leave.abort();
    expect(await sending).toMatchObject({ kind: 'unknown', safeToRetry: true });
    await pass(20);
    expect(await other('key')).toMatchObject({ kind: 'done' });
    expect(upstream.ledger.get('key')).toBe(1);
  },
);

it('moves money once where the clock of Redis was two hours ahead, and right again a day later', async () => {
  const sender = await process(0);
  upstream.faults.push('reset-after');
  const leave = new AbortController();
  const sending = sender('key', leave.signal);
  await expect.poll(() => upstream.received.length).toBe(1);
  leave.abort();
  expect(await sending).toMatchObject({ kind: 'unknown', safeToRetry: true });
  // By Redis 22.5 hours have passed, by the clock of the processes 24.5.
  await pass(22.5);
  upstream.forget();
  const next = await process(24.5 * HOUR);
  expect(await next('key')).toMatchObject({ kind: 'unknown', reason: 'TOO_LATE_TO_ASK', safeToRetry: false });
  expect(upstream.ledger.get('key')).toBe(1);
});

describe('the embedded store, without a process for 24.5 hours, its clock two hours ahead at the sending', () => {
  /** Sends, loses the answer, and asks again after the hours, by a clock that has been set right meanwhile. */
  async function again(hours: number, bootIdLater: string) {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-clocks-'));
    const open = async (wall: number, boot: number, id: string) => {
      const now = () => 1_800_000_000_000 + wall * HOUR;
      const clock = { id, now: () => 50 * HOUR + boot * HOUR };
      const records = openSqliteRecords(join(dataDir, 'money.sqlite'), now, () => performance.now(), clock);
      const started = Date.now();
      const money = createMoney({
        records,
        logger,
        ambient: { ...systemAmbient, now: () => now() + Date.now() - started },
      });
      opened.push({ money, records });
      return (signal = new AbortController().signal) =>
        money.execute(order(upstream.url, 'createMoneyOut', 'key'), { deadline: now() + 20_000, signal });
    };
    const pay = await open(2, 0, 'a start of the machine');
    upstream.faults.push('reset-after');
    const leave = new AbortController();
    const sending = pay(leave.signal);
    await expect.poll(() => upstream.received.length).toBe(1);
    leave.abort();
    await sending;
    for (const { money, records } of opened.splice(0)) {
      await money.stop();
      await records.stop();
    }
    if (hours > 24) upstream.forget();
    const next = await open(hours, hours, bootIdLater);
    return next().finally(() => rm(dataDir, { recursive: true }));
  }

  it('moves money once: the clock of the kernel has counted the hours', async () => {
    expect(await again(24.5, 'a start of the machine')).toMatchObject({ reason: 'TOO_LATE_TO_ASK' });
    expect(upstream.ledger.get('key')).toBe(1);
  });

  it('settles it within the day, by any start of the machine', async () => {
    expect(await again(20, 'another start')).toMatchObject({ kind: 'done' });
    expect(upstream.ledger.get('key')).toBe(1);
  });
});
