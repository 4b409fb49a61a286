import { once } from 'node:events';
import { Cluster } from 'ioredis';
import { afterEach, expect, it } from 'vitest';

import { connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { durableScript } from '../../src/redis/durable-script.ts';
import { DurableWrites, UnacknowledgedError } from '../../src/redis/durable-write.ts';
import { failoverAuthorityOf, serversOf } from '../../src/redis/failover.ts';
import { startRedis } from '../helpers/redis.ts';
import {
  startCluster,
  startMigration,
  startPartable,
  startSentinel,
  startWithSentinel,
} from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

const SET = durableScript("redis.call('SET', KEYS[1], ARGV[1])");

const opened: RedisClient[] = [];
afterEach(() => {
  for (const connection of opened.splice(0)) connection.disconnect();
});

function connect(url: string): RedisClient {
  const client = connectRedis(url, { commandTimeout: 2_000, maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  opened.push(client);
  return client;
}

const looked = (writes: DurableWrites, client: RedisClient) =>
  until(() =>
    writes.look(client).then(
      () => writes.isDurable,
      () => false,
    ),
  );

it('the primary is known by its replicas where no Sentinel can be asked, and without them is not certain', async () => {
  await using redis = await startWithSentinel();
  const client = connect(redis.url);
  const writes = new DurableWrites(redis.url, 300);
  await looked(writes, client);
  expect(await writes.isCurrent(client, 'key')).toBe(true);
  await redis.sentinel.kill();
  // By a write, which the replica may acknowledge late.
  await until(() => writes.isCurrent(client, 'key'));
  await redis.replica.kill();
  await until(async () => !(await writes.isCurrent(client, 'key')));
});

it('a primary without replicas takes nothing that would stay once its Sentinels have been silent for long, until they speak', async () => {
  await using redis = await startPartable(0);
  let later = 0;
  const client = connect(redis.url);
  const writes = new DurableWrites(redis.url, 300, () => performance.now() + later);
  const write = (value: string) => writes.write(client, SET, ['key'], [value]);
  await looked(writes, client);
  await write('with their word');

  // They may promote a server that they alone see, and the primary would follow it with nothing of what it takes now.
  redis.part(['test', redis.primary], [redis.sentinel]);
  later += 60_000;
  await expect(write('without')).rejects.toThrow('1 replicas should have this: 0 follow');
  expect(writes.isDurable).toBe(false);
  expect(writes.problems).toEqual([
    'A write counts once 1 replica has it, and 0 answer now: neither the Sentinels nor the Cluster say that fewer will do.',
  ]);
  expect(await writes.isCurrent(client, 'key')).toBe(false);

  redis.join();
  await until(() =>
    write('with it again').then(
      () => true,
      () => false,
    ),
  );
  await looked(writes, client);
});

it('a primary without replicas takes nothing that would stay once its Sentinels name another one, at once', async () => {
  await using primary = await startRedis();
  await using other = await startRedis();
  await using sentinel = await startSentinel(primary.port);
  const client = connect(primary.url);
  // By a clock that stands still, so that no word of theirs is too old.
  const writes = new DurableWrites(`redis+sentinel://127.0.0.1:${sentinel.port}/events`, 300, () => 0);
  const write = (value: string) => writes.write(client, SET, ['key'], [value]);
  await looked(writes, client);
  await write('with their word');
  expect(await writes.isCurrent(client, 'key')).toBe(true);

  const monitor = async (port: number) => {
    await sentinel.admin.call('SENTINEL', 'REMOVE', 'events');
    await sentinel.admin.call('SENTINEL', 'MONITOR', 'events', '127.0.0.1', String(port), '1');
  };
  await monitor(other.port);
  await until(() => writes.look(client).then(() => !writes.isDurable));
  await expect(write('without')).rejects.toThrow('1 replicas should have this: 0 follow');
  expect(await writes.isCurrent(client, 'key')).toBe(false);

  await monitor(primary.port);
  await looked(writes, client);
  await write('with it again');
});

it('the first writes on a primary that was promoted wait for no replica, as none follows, and for no Sentinel', async () => {
  await using redis = await startWithSentinel();
  const client = connect(redis.url);
  const [primary] = serversOf(client);
  const watchers = failoverAuthorityOf(redis.url);
  if (watchers === undefined || primary === undefined) throw new Error('both are there');
  const writes = new DurableWrites(redis.url, 300);
  const write = (value: string) => writes.write(client, SET, ['key'], [value]);
  const isWritten = (value: string) =>
    write(value).then(
      () => true,
      () => false,
    );
  // It asks nobody, as a replica follows.
  await until(() => isWritten('before'));
  await redis.primary.kill();
  const { replica } = redis;
  const isPromoted = async () => (await client.info('server')).includes(`tcp_port:${replica.port}`);
  await until(() => isPromoted().catch(() => false));
  // The Sentinel names it before it announces it, and until then takes the server that was replaced for the primary.
  expect(await until(async () => typeof (await watchers.ask(primary)) === 'object')).toBe(true);

  await replica.admin.config('RESETSTAT');
  const first = await Promise.all(
    Array.from({ length: 10 }, () =>
      write('meanwhile').catch((error: unknown) => ({ error, problems: writes.problems })),
    ),
  );
  for (const { error, problems } of first as { error: unknown; problems: readonly string[] }[]) {
    expect(error).toBeInstanceOf(UnacknowledgedError);
    // What the Sentinel would say is not known yet.
    expect(problems.join()).toContain('neither the Sentinels nor the Cluster say that fewer will do');
  }
  expect(await replica.admin.info('commandstats')).not.toContain('cmdstat_wait');
  // The writes make the gateway ask it. On a busy machine the first question may get no answer in time.
  await until(() => isWritten('meanwhile').then(() => !writes.problems.join().includes('neither')));
});

it('the first write of a process on a primary that never had a replica counts by what it asks the Sentinels', async () => {
  await using primary = await startRedis();
  await using sentinel = await startSentinel(primary.port);
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/events`;
  const client = connect(primary.url);
  const [server] = serversOf(client);
  const watchers = failoverAuthorityOf(url);
  if (watchers === undefined || server === undefined) throw new Error('both are there');
  await until(() => watchers.ask(server));
  const writes = new DurableWrites(url, 300);
  await writes.write(client, SET, ['key'], ['first']);
  expect(writes.isDurable).toBe(true);
});

it('what the Sentinels say is not taken for the word on a primary to which the connection has ended', async () => {
  await using redis = await startWithSentinel();
  const client = connect(redis.primary.url);
  const writes = new DurableWrites(redis.url, 300);
  await looked(writes, client);
  const monitor = await redis.primary.admin.monitor();
  const asksForItsName = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, command: string[]) => {
      if (command.join(' ').toLowerCase() === 'info server') resolve();
    });
  });
  redis.sentinel.freeze();
  const look = writes.look(client).catch((error: unknown) => String(error));
  await asksForItsName;
  const isAway = once(client, 'close');
  await redis.primary.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await isAway;
  redis.sentinel.thaw();
  expect(await look).toContain('the connection has ended');
  monitor.disconnect();
  await looked(writes, client);
});

it('a Sentinel that knows no primary of this name keeps none of the connections on which it was asked', async () => {
  await using redis = await startRedis();
  await using sentinel = await startSentinel(redis.port);
  const [primary] = serversOf(connect(redis.url));
  const watchers = failoverAuthorityOf(`redis+sentinel://127.0.0.1:${sentinel.port}/another`);
  if (watchers === undefined || primary === undefined) throw new Error('both are there');
  const open = async () =>
    String(await sentinel.admin.call('CLIENT', 'LIST'))
      .trim()
      .split('\n').length;
  const received = async () =>
    Number(/total_connections_received:(\d+)/.exec(await sentinel.admin.info('stats'))?.[1]);
  const [openBefore, receivedBefore] = [await open(), await received()];
  expect(await watchers.ask(primary)).toBeUndefined();
  await until(async () => (await received()) > receivedBefore);
  await until(async () => (await open()) <= openBefore);
});

it('a primary that the Sentinels take for gone is not known by them, though it answers', async () => {
  await using redis = await startPartable(1);
  const watchers = failoverAuthorityOf(redis.url);
  const [primary] = serversOf(connect(redis.primary.url));
  if (watchers === undefined || primary === undefined) throw new Error('all are there');
  expect(await until(() => watchers.ask(primary))).toMatchObject({ promotable: 1 });
  // They have nobody to put in its place, and go on naming it.
  redis.part([redis.sentinel], [redis.primary, ...redis.replicas]);
  await until(async () => (await watchers.ask(primary)) === undefined);
});

it('a replica of priority 0, which Sentinels never promote, does not count among those that could be', async () => {
  await using redis = await startPartable(2);
  const watchers = failoverAuthorityOf(redis.url);
  const [primary] = serversOf(connect(redis.primary.url));
  if (watchers === undefined || primary === undefined) throw new Error('all are there');
  const { admin } = redis.sentinel;
  // They ask each replica for its priority once in this time, in milliseconds.
  await admin.call('SENTINEL', 'DEBUG', 'INFO-PERIOD', '100');
  const isTold = async (count: number) => {
    const word = await watchers.ask(primary);
    return typeof word === 'object' && word.promotable === count;
  };
  await until(() => isTold(2));
  for (const [index, replica] of redis.replicas.entries()) {
    await replica.admin.config('SET', 'replica-priority', '0');
    await until(() => isTold(1 - index));
  }
  await redis.replicas[0]?.admin.config('SET', 'replica-priority', '100');
  await until(() => isTold(1));
});

it('a primary that one of two Sentinels takes for gone is not known by the word of the other', async () => {
  await using redis = await startPartable(0);
  await using other = await startSentinel(redis.primary.port);
  const both = failoverAuthorityOf(redis.url.replace('/events', `,127.0.0.1:${other.port}/events`));
  const alone = failoverAuthorityOf(`redis+sentinel://127.0.0.1:${other.port}/events`);
  const [primary] = serversOf(connect(redis.primary.url));
  if (both === undefined || alone === undefined || primary === undefined) throw new Error('all are there');
  expect(await until(() => both.ask(primary))).toMatchObject({ promotable: 0 });
  redis.part([redis.sentinel], [redis.primary]);
  await until(async () => (await both.ask(primary)) === undefined);
  expect(await until(() => alone.ask(primary))).toMatchObject({ promotable: 0 });
});

it('a primary of a Cluster that has been replaced, and has not heard of it, is not known by its own word', async () => {
  await using cluster = await startCluster();
  const primary = await cluster.nodeOf('client');
  const replica = await cluster.addReplica(primary);
  // It keeps to the primary that it knows: it never asks again who owns which slots.
  const client = new Cluster(
    cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    { slotsRefreshInterval: 0 },
  );
  client.on('error', () => {});
  opened.push(client);
  const writes = new DurableWrites(cluster.url, 300);
  await looked(writes, client);
  expect(await writes.isCurrent(client, '{client}')).toBe(true);

  // As behind a cut: it hears nobody, and still answers its clients.
  for (const other of [...cluster.nodes, replica]) {
    if (other !== primary) await primary.admin.cluster('FORGET', String(await other.admin.cluster('MYID')));
  }
  await replica.admin.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
  const oldId = String(await primary.admin.cluster('MYID'));
  for (const node of cluster.nodes.filter((node) => node !== primary)) {
    await until(
      async () =>
        !new RegExp(`^${oldId} .* connected .*\\d`, 'm').test(String(await node.admin.cluster('NODES'))),
    );
  }
  expect(String(await primary.admin.cluster('NODES'))).toMatch(/myself,master/);
  await until(async () => !(await primary.admin.info('replication')).includes('state=online'));
  expect(await writes.isCurrent(client, '{client}')).toBe(false);
});

it('a slot that is on its way to another node refuses no write', async () => {
  await using cluster = await startCluster();
  const client = connect(cluster.url);
  const writes = new DurableWrites(cluster.url, 300);
  await looked(writes, client);
  // That of the key by which a node is asked whether it takes writes.
  const migration = await startMigration(cluster, 'pasarela:probe:0');
  await writes.look(client);
  expect(writes).toMatchObject({ isDurable: true, problems: [] });
  await migration.finish();
});
