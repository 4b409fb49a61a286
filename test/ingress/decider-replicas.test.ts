import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { countingMetrics, recordingLogger } from '../helpers/events.ts';
import { speiCredit, startDecider, startIngress } from '../helpers/ingress.ts';
import { DURABLE, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

it('nobody decides while a replica is away; what was decided just before is what the next delivery gets', async () => {
  await using primary = await startRedis([
    ...DURABLE,
    ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '3600'],
  ]);
  await using replica = await startRedis();
  await replica.admin.replicaof('127.0.0.1', primary.port);
  const replication = () => primary.admin.info('replication');
  await until(async () => (await replication()).includes('state=online'));
  await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
  const options = { redisUrl: primary.url, retention: 100, logger: recordingLogger(), now: Date.now };
  const log = new RedisLog({ ...options, metrics: countingMetrics() });
  await log.settled();
  const clientId = randomUUID();
  await using ingress = await startIngress({ clientId, log, decisionUrl: decider.url });
  const statusOf = async (credit: object): Promise<number> => (await ingress.post('MONEY_IN', credit)).status;
  // The process learns of the replica.
  await until(async () => (await statusOf(speiCredit())) === 422);
  const asked = decider.asked.length;
  const [before, meanwhile] = [speiCredit(), speiCredit()];

  // What the replica has not acknowledged would have the look-up fail.
  await until(async () => {
    const info = await replication();
    return /slave0:.*offset=(\d+)/.exec(info)?.[1] === /master_repl_offset:(\d+)/.exec(info)?.[1];
  });
  replica.freeze();
  expect(await statusOf(before)).toBe(503);
  expect(decider.asked.slice(asked)).toEqual([before]);
  const { events } = await log.readBefore(clientId, null, 1);
  expect(events).toMatchObject([{ id: before.id_msg, decision: 'REJECTED' }]);

  await until(async () => Number(/lag=(\d+)/.exec(await replication())?.[1]) > 2);
  expect([await statusOf(meanwhile), await statusOf(before)]).toEqual([503, 503]);
  expect(decider.asked.slice(asked)).toEqual([before]);

  replica.thaw();
  await until(async () => (await statusOf(before)) === 422);
  expect(decider.asked.slice(asked)).toEqual([before]);
  await until(async () => (await statusOf(meanwhile)) === 422);
  expect(decider.asked.slice(asked)).toEqual([before, meanwhile]);
  await log.stop();
});
