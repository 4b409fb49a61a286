import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { clock, useClock } from '../../src/common/clock.ts';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { connectRedis } from '../../src/redis/connection.ts';
import { primaryInfo } from '../../src/redis/on-primary.ts';
import { countingMetrics, recordingLogger } from '../helpers/events.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { inStep } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

/** What each test has to undo. */
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function startReplica(): Promise<RedisServer> {
  const [primary, replica] = [await startRedis(), await startRedis()];
  endings.push(primary.stop, replica.stop);
  await replica.admin.replicaof('127.0.0.1', primary.port);
  await inStep(primary, replica);
  return replica;
}

it('a connection that leads to a replica for good is made anew less and less often, and at once after a primary', async () => {
  const replica = await startReplica();
  let ahead = 0;
  const { monotonic } = clock;
  endings.push(useClock({ ...clock, monotonic: () => monotonic() + ahead }));
  const client = connectRedis(replica.url, { maxRetriesPerRequest: null });
  endings.push(() => client.disconnect());
  await once(client, 'ready');
  let made = 0;
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (again) => {
    made += 1;
    disconnect(again);
  };
  /** Looks as often as in so many seconds. @returns how often it was made anew */
  const lookFor = async (seconds: number): Promise<number> => {
    const before = made;
    for (let passed = 0; passed < seconds; passed += 10) {
      // One Redis is its own server.
      const ready = once(client, 'ready');
      const known = made;
      await primaryInfo(client as Parameters<typeof primaryInfo>[0], client);
      if (made > known) await ready;
      ahead += 10_000;
    }
    return made - before;
  };
  expect(await lookFor(60)).toBe(4);
  // An address that is moved late is noticed within half a minute.
  expect(await lookFor(1_200)).toBeLessThanOrEqual(41);
  expect(await lookFor(600)).toBeGreaterThanOrEqual(19);
  await replica.admin.replicaof('NO', 'ONE');
  expect(await lookFor(30)).toBe(0);
  await replica.admin.replicaof('127.0.0.1', 1);
  expect(await lookFor(10)).toBe(1);
  // Also where it was a primary for no longer than a moment.
  await replica.admin.replicaof('NO', 'ONE');
  expect(await lookFor(10)).toBe(0);
  await replica.admin.replicaof('127.0.0.1', 1);
  expect(await lookFor(10)).toBe(1);
});

it('an address that leads to a replica is told once, and again once it leads to a primary', async () => {
  const replica = await startReplica();
  const looks: (() => void)[] = [];
  const { setInterval } = clock;
  const restore = useClock({
    ...clock,
    setInterval(callback, ms) {
      looks.push(callback);
      return setInterval(callback, ms);
    },
  });
  endings.push(restore);
  const logger = recordingLogger();
  const log = new RedisLog({
    redisUrl: replica.url,
    retention: 100,
    logger,
    metrics: countingMetrics(),
    now: Date.now,
  });
  endings.push(() => log.stop());
  await log.settled();
  const told = (words: string) => logger.lines.filter(({ message }) => message.includes(words)).length;
  const lookUntil = (isSo: () => boolean) =>
    until(async () => {
      // Its looks are far apart, too.
      await pause(100);
      for (const look of looks) look();
      return isSo();
    });
  await lookUntil(() => told('leads to a Redis that is no primary') === 1);
  let more = 0;
  await lookUntil(() => {
    more += 1;
    return more > 20;
  });
  expect(told('leads to a primary again')).toBe(0);
  await replica.admin.replicaof('NO', 'ONE');
  await lookUntil(() => told('leads to a primary again') === 1);
  expect(told('leads to a Redis that is no primary')).toBe(1);
});
