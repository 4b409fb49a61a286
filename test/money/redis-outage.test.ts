import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
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
  await until(() => money.unwritten() === 0);
});

it('names in the log the payment whose answer waits, of a client of which it has paid before', async () => {
  const lines: [object, string][] = [];
  const write = (...line: [object, string]) => void lines.push(line);
  const told = (text: string) =>
    lines.filter(([, message]) => message.includes(text)).map(([fields]) => fields);
  const logging = createMoney({ records, logger: { ...logger, info: write, warn: write } });
  await pay('before', logging);
  upstream.faults.push('held');
  const paying = pay('named', logging);
  await until(() => upstream.received.length === 2);
  await redis.kill();
  upstream.letGo();
  await paying;
  await until(() => told('trying on').length === 1);
  await redis.start();
  await until(() => told('written after all').length === 1);
  const paymentId = await createPayments(records).idOf(
    recordName(order(upstream.url, 'createInternalTransaction', 'named')),
  );
  expect(told('trying on')).toMatchObject([{ what: 'answer', paymentId, waiting: 1 }]);
  expect(told('written after all')).toMatchObject([{ what: 'answer', paymentId, waiting: 0 }]);
  await logging.stop();
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
