import { Cluster } from 'ioredis';
import { expect, it } from 'vitest';
import { ShardSubscribers } from '../../../src/events/redis/subscribers.ts';
import { connectRedis, connectRedisNode, type RedisClient } from '../../../src/redis/connection.ts';
import { startCluster } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';

it('connections to primaries that carry no channel are ended, and made again when one does', async () => {
  await using cluster = await startCluster();
  const reader = connectRedis(cluster.url, {});
  if (!(reader instanceof Cluster)) throw new Error('a Cluster is named');
  const messages: string[] = [];
  const shards = new ShardSubscribers(
    reader,
    (node) => connectRedisNode(cluster.url, node, { commandTimeout: 1000 }),
    { message: (channel, text) => messages.push(`${channel} ${text}`), ready: () => {}, lost: () => {} },
  );
  // Slots 15495, 11298 and 3300: the first two are on one node.
  const [one, same, elsewhere] = ['{a}:events', '{d}:events', '{b}:events'] as const;
  const kept = await shards.subscribe(one);
  expect(await shards.subscribe(same)).toBe(kept);
  const idle = await shards.subscribe(elsewhere);
  expect(idle).not.toBe(kept);

  const used: ReadonlySet<RedisClient> = new Set([kept]);
  shards.prune(used);
  expect(idle.status).toBe('ready');
  // One that is asked for again is as one that has just been made.
  expect(await shards.subscribe(elsewhere)).toBe(idle);
  shards.prune(used);
  expect(shards.connections).toEqual([kept, idle]);
  shards.prune(used);
  await until(() => idle.status === 'end');
  expect(kept.status).toBe('ready');

  expect(await shards.subscribe(elsewhere)).not.toBe(idle);
  for (const channel of [one, same, elsewhere]) await reader.spublish(channel, 'told');
  await until(() => messages.length === 3);
  expect(new Set(messages)).toEqual(new Set([`${one} told`, `${same} told`, `${elsewhere} told`]));
  shards.stop();
  reader.disconnect();
});

it('who owns a channel is asked again where nobody could be asked', async () => {
  await using cluster = await startCluster();
  const reader = connectRedis(cluster.url, { commandTimeout: 1000 });
  reader.on('error', () => {});
  if (!(reader instanceof Cluster)) throw new Error('a Cluster is named');
  const shards = new ShardSubscribers(
    reader,
    (node) => connectRedisNode(cluster.url, node, { commandTimeout: 1000 }),
    { message: () => {}, ready: () => {}, lost: () => {} },
  );
  await reader.ping();
  reader.disconnect();
  await expect(shards.subscribe('{a}:events')).rejects.toThrow();
  await reader.connect();
  const carrier = await until(() => shards.subscribe('{a}:events').catch(() => undefined));
  expect(shards.connections).toEqual([carrier]);
  shards.stop();
  reader.disconnect();
});
