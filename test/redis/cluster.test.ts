import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { Cluster } from 'ioredis';
import { expect, it, onTestFinished, vi } from 'vitest';
import { connectRedis, silenceOf } from '../../src/redis/connection.ts';
import { durableScript } from '../../src/redis/durable-script.ts';
import { DurableWrites } from '../../src/redis/durable-write.ts';
import { withTlsFiles } from '../../src/redis/url.ts';
import { MEMORY_FOLDER } from '../helpers/memory-folder.ts';
import { freePort, type RedisServer } from '../helpers/redis.ts';
import { startCluster, startMigration } from '../helpers/redis-topologies.ts';
import { startSecureCluster } from '../helpers/secure-redis.ts';
import { until } from '../helpers/until.ts';

const WRITE = durableScript("redis.call('SET', KEYS[1], '')");

function connected(url: string) {
  const redis = connectRedis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 1000,
    connectTimeout: 1000,
  });
  redis.on('error', () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** A port that passes on to another, as a name does that is given to other servers. */
async function startName(to: number) {
  let target = to;
  const server = createServer((client) => {
    const node = connect(target, '127.0.0.1');
    client.pipe(node).pipe(client);
    client.on('error', () => node.destroy());
    node.on('error', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    // A TCP server has a port.
    url: `redis+cluster://127.0.0.1:${(server.address() as AddressInfo).port}`,
    give: (port: number) => {
      target = port;
    },
    [Symbol.dispose]: () => void server.close(),
  };
}

it('is connected to by those of its names that resolve', async () => {
  await using cluster = await startCluster();
  const redis = connected(`${cluster.url},nowhere.invalid:6379`);
  await once(redis, 'ready');
  expect(await redis.set('key', 'kept')).toBe('OK');
});

it('is connected to over TLS by names alone where its servers announce theirs', async () => {
  const folder = await mkdtemp(join(MEMORY_FOLDER, 'pasarela-tls-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const named = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'];
  await using cluster = await startSecureCluster(folder, 'DNS:localhost', named);
  const [node] = cluster.servers;
  // They hear of each other's names a moment after they have met.
  await until(async () => JSON.stringify(await node?.admin.cluster('SLOTS')).split('"localhost"').length > 3);
  const { authority: ca, certificate: cert, key } = cluster.certificates;
  const redis = connected(withTlsFiles(`rediss+cluster://localhost:${node?.tlsPort}`, { ca, cert, key }));
  await once(redis, 'ready');
  expect(await redis.set('key', 'kept')).toBe('OK');
});

it('is not sent by a node what that node could not send in its time', async () => {
  await using cluster = await startCluster();
  const redis = connected(cluster.url);
  await once(redis, 'ready');
  // ioredis connects to a node once it needs it, and has needed one of the three. Commands wait for that.
  const isUnused = ({ port }: RedisServer): boolean =>
    redis instanceof Cluster &&
    redis.nodes().some(({ options, status }) => options.port === port && status === 'wait');
  const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];
  const owners = await Promise.all(names.map(async (name) => ({ name, node: await cluster.nodeOf(name) })));
  const { name, node } = owners.find((owner) => isUnused(owner.node)) ?? expect.unreachable();
  node.freeze();
  // The question whether the new connection is ready ends in the same second, and closes it: either may come first.
  const message = expect.stringMatching(/^(Command timed out|Connection is closed\.)$/);
  const late = expect.objectContaining({ message });
  const sent = [redis.set(`{${name}}:alone`, ''), redis.pipeline().set(`{${name}}:piped`, '').exec()];
  expect(await Promise.allSettled(sent)).toEqual([
    { status: 'rejected', reason: late },
    { status: 'fulfilled', value: [[late]] },
  ]);
  node.thaw();
  await until(() =>
    redis.set(`{${name}}:after`, '').then(
      () => true,
      () => false,
    ),
  );
  expect(await redis.mget(`{${name}}:alone`, `{${name}}:piped`)).toEqual([null, null]);
});

it('says why none of its nodes can be asked', async () => {
  const redis = connected(`redis+cluster://127.0.0.1:${await freePort()}`);
  const [error] = await once(redis, 'error').catch((reason: Error) => [reason]);
  expect(error).toMatchObject({ code: 'ECONNREFUSED' });
  expect(silenceOf(redis, new Error('Connection is closed.'))).toBe('connect ECONNREFUSED');
});

it('says that it is down', async () => {
  await using cluster = await startCluster();
  const [first, ...others] = cluster.nodes;
  for (const node of others) await node.kill();
  await until(async () => String(await first?.admin.cluster('INFO')).includes('cluster_state:fail'));
  const redis = connected(`redis+cluster://127.0.0.1:${first?.port}`);
  await until(() => silenceOf(redis, new Error('Connection is closed.')).startsWith('the Cluster is down'));
});

it('fails alone what is written to a slot on its way to a node that has gone', async () => {
  await using cluster = await startCluster();
  const unhandled = vi.fn<() => void>();
  process.on('unhandledRejection', unhandled);
  onTestFinished(() => void process.off('unhandledRejection', unhandled));
  const { target } = await startMigration(cluster, 'client');
  const redis = connected(cluster.url);
  await once(redis, 'ready');
  await target.kill();
  const writes = new DurableWrites(cluster.url, 500);
  await expect(writes.write(redis, WRITE, ['{client}:key'], [])).rejects.toThrow();
  expect(unhandled).not.toHaveBeenCalled();
});

it('is found again by its names where it has come back at other addresses, also by a client that has lost all but replicas', async () => {
  await using before = await startCluster();
  const node = await before.nodeOf('client');
  const replica = await before.addReplica(node);
  // CLUSTER SLOTS leaves out a replica that nothing was copied to.
  await node.admin.set('{client}:key', '');
  await until(async () => JSON.stringify(await node.admin.cluster('SLOTS')).includes(`${replica.port}`));
  using name = await startName(node.port);
  const redis = connected(name.url);
  await once(redis, 'ready');
  const writes = new DurableWrites(name.url, 500);
  const looked = () =>
    writes.look(redis).then(
      () => true,
      () => false,
    );
  await until(looked);
  await using after = await startCluster();
  name.give(after.nodes[0]?.port ?? 0);
  await before[Symbol.asyncDispose]();
  await until(looked);
  expect(await writes.write(redis, WRITE, ['{client}:key'], [])).toBeNull();
});
