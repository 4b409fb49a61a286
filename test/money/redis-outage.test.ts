import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { MUTATIONS, order } from './orders.ts';
import { startUpstream, type Upstream } from './upstream.ts';

let redis: RedisServer;
let upstream: Upstream;
let records: MoneyRecords;
let money: Money;
beforeEach(async () => {
  redis = await startRedis();
  upstream = await startUpstream();
  records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
  money = createMoney({ records, logger });
});
afterEach(async () => {
  await money.stop();
  await records.stop();
  await upstream[Symbol.asyncDispose]();
  await redis.stop();
});

const pay = (key: string, through = money) =>
  through.execute(order(upstream.url, 'createInternalTransaction', key, { timeoutMs: 20_000 }), {
    deadline: Date.now() + 25_000,
    signal: new AbortController().signal,
  });

it.each(['killed', 'frozen'])('sends nothing while Redis is %s, and pays once Redis is back', async (how) => {
  if (how === 'killed') await redis.kill();
  else redis.freeze();
  await expect(pay('while-away')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(upstream.received).toHaveLength(0);
  if (how === 'killed') await redis.start();
  else redis.thaw();
  const paid = await until(() => pay('while-away').catch(() => undefined));
  expect(paid).toMatchObject({ kind: 'done', replayed: false });
  expect(upstream.ledger.get('while-away')).toBe(1);
});

it('tells the answers that come while Redis is killed, and stores them when it is back', async () => {
  upstream.faults.push(...MUTATIONS.map(() => 'held' as const));
  const keys = MUTATIONS.map((_, i) => `through-the-outage-${i}`);
  const paying = keys.map((key) => pay(key));
  await until(() => upstream.received.length === keys.length);
  await redis.kill();
  upstream.letGo();
  for (const result of await Promise.all(paying))
    expect(result).toMatchObject({ kind: 'done', replayed: false });
  expect(money.unwritten()).toBe(keys.length);
  await redis.start();
  for (const key of keys) {
    // A call that looks before the answer is stored is told "unknown", which is no lie; soon it is told the answer.
    const later = await until(async () => {
      const result = await pay(key).catch(() => undefined);
      return result?.kind === 'done' && result;
    });
    expect(later).toMatchObject({ replayed: true });
    expect(upstream.ledger.get(key)).toBe(1);
  }
});

it('keeps what was sent through the death of Redis and of the gateway', async () => {
  upstream.faults.push('reset-after');
  expect(await pay('kept')).toMatchObject({ kind: 'unknown' });
  await redis.kill();
  await redis.start();
  const reopened = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
  const next = createMoney({ records: reopened, logger });
  expect(await pay('kept', next)).toMatchObject({ kind: 'unknown', safeToRetry: false });
  expect(upstream.ledger.get('kept')).toBe(1);
  await next.stop();
  await reopened.stop();
});
