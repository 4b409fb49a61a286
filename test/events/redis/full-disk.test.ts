import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import { RedisLog } from '../../../src/events/redis/redis-log.ts';
import { countingMetrics, ids, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';

it('a Redis that cannot write to its disk takes no event, and answers all the same: what is there can be read', async () => {
  await using redis = await startRedis(['--save', '3600 1']);
  const client = randomUUID();
  await using stack = new AsyncDisposableStack();
  const log = new RedisLog({
    ...{ redisUrl: redis.url, retention: 10, logger: recordingLogger(), metrics: countingMetrics() },
    now: Date.now,
  });
  stack.defer(() => log.stop());
  await log.settled();
  const kept = moneyIn();
  await log.append(client, kept);
  const file = join(redis.dir, 'dump.rdb');
  await rm(file, { force: true });
  await mkdir(join(file, 'in its place'), { recursive: true });
  const saved = async () => {
    await redis.admin.bgsave().catch(() => {});
    return /^rdb_last_bgsave_status:(\w+)/m.exec(await redis.admin.info('persistence'))?.[1];
  };
  await until(async () => (await saved()) === 'err');
  // This Redis refuses even a PING.
  await expect(redis.admin.ping()).rejects.toThrow(/^MISCONF /);
  await expect(log.append(client, moneyIn())).rejects.toBeInstanceOf(StoreUnavailableError);
  await until(async () => (await log.health()).reasons?.some((reason) => reason.includes('MISCONF')));
  expect(await log.health()).toMatchObject({ writable: false, available: false, redis: { answers: true } });
  expect(ids((await log.readAfter(client, null, 5)).events)).toEqual([kept.id]);
  await rm(file, { recursive: true });
  await until(async () => (await saved()) === 'ok');
  await until(async () => (await log.health()).available);
});
