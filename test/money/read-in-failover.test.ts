import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
import { neverFailOver, startPartable } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { order } from './orders.ts';
import { startUpstream } from './upstream.ts';

it('a gateway that still reads the Redis that a failover has replaced does not say that a payment is absent', async () => {
  await using redis = await startPartable(2);
  // It would also replace a primary that stands still for a moment.
  await neverFailOver(redis.sentinel);
  await using upstream = await startUpstream();
  const open = (redisUrl: string) => openMoneyRecords({ redisUrl, dataDir: '/dev/null/nowhere', logger });
  const pay = async (records: Awaited<ReturnType<typeof open>>, key: string) => {
    const money = createMoney({ records, logger });
    const paid = await money
      .execute(order(upstream.url, 'createInternalTransaction', key, { timeoutMs: 20_000 }), {
        deadline: Date.now() + 25_000,
        signal: new AbortController().signal,
      })
      .catch(() => undefined);
    await money.stop();
    return paid?.kind === 'done' ? paid : undefined;
  };
  const old = await open(redis.url);
  await until(() => pay(old, 'before'));
  const { clientId, customerId, keyOwner } = order(upstream.url, 'createInternalTransaction', 'x', {});
  const holder = { clientId, customerId, keyOwner };
  const payments = createPayments(old);
  await until(
    async () => (await payments.byKey({ ...holder, key: 'never' }).catch(() => null)) === undefined,
  );
  // The old primary hears nobody but its clients, and goes on as if nothing were.
  redis.part([redis.primary], [...redis.replicas, redis.sentinel]);
  await redis.sentinel.admin.call('SENTINEL', 'SET', 'events', 'down-after-milliseconds', '500');
  const promoted = await until(async () => {
    for (const replica of redis.replicas) {
      const info = await replica.admin.info('replication');
      if (info.includes('role:master') && info.includes('state=online')) return replica;
    }
    return undefined;
  });
  const current = await open(promoted.url);
  await until(() => pay(current, 'since'));
  expect(await redis.primary.admin.info('replication')).toContain('role:master');

  expect(await payments.byKey({ ...holder, key: 'before' })).toMatchObject({ state: 'answered' });
  await expect(payments.byKey({ ...holder, key: 'since' })).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
  });
  const id = await until(() =>
    createPayments(current)
      .idOf(recordName({ ...holder, key: 'since' }))
      .catch(() => undefined),
  );
  await expect(payments.byId(holder, id)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });

  redis.join();
  await until(() => payments.byKey({ ...holder, key: 'since' }).catch(() => undefined));
  await Promise.all([old.stop(), current.stop()]);
});
