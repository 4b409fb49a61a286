import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { type Ambient, systemAmbient } from '../../src/money/ambient.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { order } from './orders.ts';
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
  const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
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
    await redis.admin.hincrby(key, 'sentAt', -hours * HOUR);
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
