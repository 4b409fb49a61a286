import { expect, it } from 'vitest';
import { redisWarnings } from '../../../src/events/redis/settings.ts';
import { SettingsWatch } from '../../../src/events/redis/settings-watch.ts';
import { connectRedis } from '../../../src/redis/connection.ts';
import { recordingLogger } from '../../helpers/events.ts';
import { DURABLE, type RedisServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';

it('what an operator changes while Redis runs is seen with the next look, and told once each time', async () => {
  await using redis = await startRedis();
  const client = connectRedis(redis.url, {});
  await client.ping();
  const logger = recordingLogger();
  const watch = new SettingsWatch(client, redis.url, logger);
  const aboutSync = () => logger.lines.filter(({ message }) => message.includes('appendfsync')).length;
  await watch.look();
  expect(aboutSync()).toBe(0);
  for (const times of [1, 2]) {
    await redis.admin.config('SET', 'appendfsync', 'everysec');
    for (const _look of ['first', 'second']) await watch.look();
    expect(aboutSync()).toBe(times);
    await redis.admin.config('SET', 'appendfsync', 'always');
    await watch.look();
  }
  client.disconnect();
});

it('a Redis that a script holds up is not taken for one that lets nobody read its settings', async () => {
  await using redis = await startRedis([...DURABLE, '--busy-reply-threshold', '1']);
  const client = connectRedis(redis.url, {});
  await client.ping();
  // Redis refuses a new connection while the script runs, and what waits for one fails.
  await redis.admin.ping();
  const script = redis.admin.duplicate();
  const held = script.eval('while true do end', 0).catch((error: Error) => error.message);
  await until(() =>
    redis.admin.ping().then(
      () => false,
      ({ message }) => message.startsWith('BUSY '),
    ),
  );
  const logger = recordingLogger();
  await new SettingsWatch(client, redis.url, logger).look();
  expect(logger.lines).toEqual([]);
  await redis.admin.script('KILL');
  expect(await held).toContain('SCRIPT KILL');
  for (const connection of [script, client]) connection.disconnect();
});

it('keys that a server has evicted are told of until its counters are reset, also once it was started again', async () => {
  await using redis = await startRedis();
  const client = connectRedis(redis.url, { enableOfflineQueue: false });
  client.on('error', () => undefined);
  const watch = new SettingsWatch(client, redis.url, recordingLogger());
  const isTold = async () => {
    await until(() => client.status === 'ready');
    await watch.look();
    return watch.risks.some((text) => text.startsWith('Redis has evicted keys'));
  };
  const evict = async () => {
    await redis.admin.set('victim', '1');
    await redis.admin.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'allkeys-random');
    await until(async () => {
      await redis.admin.set('another', '1').catch(() => undefined);
      return !(await redis.admin.info('stats')).includes('evicted_keys:0');
    });
    await redis.admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
  };
  expect(await isTold()).toBe(false);
  await evict();
  expect(await isTold()).toBe(true);
  await redis.admin.config('RESETSTAT');
  expect(await isTold()).toBe(false);
  await evict();
  expect(await isTold()).toBe(true);
  await redis.kill();
  await until(() => client.status !== 'ready');
  await redis.start();
  expect(await isTold()).toBe(true);
  expect(await redis.admin.info('stats')).toContain('evicted_keys:0');
  client.disconnect();
});

/** Makes a replica, which syncs its file once a second alone. */
async function followLoosely(redis: RedisServer, replica: RedisServer): Promise<void> {
  await redis.admin.config('SET', 'repl-diskless-sync-delay', '0');
  await replica.admin.replicaof('127.0.0.1', redis.port);
  await until(async () => (await redis.admin.info('replication')).includes('state=online'));
  await replica.admin.config('SET', 'appendfsync', 'everysec');
}

it('a replica is asked for its settings by a connection of each look, which ends with it', async () => {
  await using redis = await startRedis();
  await using replica = await startRedis();
  await followLoosely(redis, replica);
  const client = connectRedis(redis.url, {});
  await client.ping();
  const logger = recordingLogger();
  const watch = new SettingsWatch(client, redis.url, logger);
  for (const _look of ['first', 'second']) await watch.look();
  expect(logger.lines.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^A replica of Redis .*appendfsync/),
  );
  const connections = async () => String(await replica.admin.client('LIST', 'TYPE', 'NORMAL')).trim();
  await until(async () => (await connections()).split('\n').length === 1);
  // As many a managed Redis does.
  await replica.admin.call('ACL', 'SETUSER', 'default', '-config');
  for (const _look of ['first', 'second']) await watch.look();
  expect(logger.lines.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^A replica of Redis cannot be asked for its settings .*CONFIG/i),
  );
  await until(async () => (await connections()).split('\n').length === 1);
  client.disconnect();
});

it('of a Redis that refuses CONFIG, as many a managed one does, all is told that INFO tells, and its replicas are asked', async () => {
  await using redis = await startRedis();
  await using replica = await startRedis();
  await followLoosely(redis, replica);
  await redis.admin.call('ACL', 'SETUSER', 'default', '-config');
  const client = connectRedis(redis.url, {});
  await client.ping();
  const logger = recordingLogger();
  const watch = new SettingsWatch(client, redis.url, logger);
  await watch.look();
  const told = () => logger.lines.map(({ message }) => message);
  for (const wanted of [
    /^Redis does not let its settings be read .*CONFIG/i,
    /^REDIS_URL names one Redis, which has replicas/,
    /^A replica of Redis runs with appendfsync everysec/,
  ])
    expect(told()).toContainEqual(expect.stringMatching(wanted));
  expect(told()).toHaveLength(3);
  expect(watch.risks).toEqual([]);
  client.disconnect();

  await using forgetful = await startRedis(['--save', '', '--appendonly', 'no']);
  await forgetful.admin.call('ACL', 'SETUSER', 'default', '-config');
  const other = connectRedis(forgetful.url, {});
  await other.ping();
  const noticed = new SettingsWatch(other, forgetful.url, recordingLogger());
  await noticed.look();
  expect(noticed.risks).toEqual([expect.stringContaining('runs without appendonly yes')]);
  other.disconnect();
});

it.each([
  ['6.2.14', 1],
  ['7.0.2', 1],
  ['7.0.3', 0],
  ['7.2.4', 0],
  ['7.4', 0],
  ['10.0.0', 0],
])('a Redis of version %s is told of %i times', async (version, times) => {
  await using redis = await startRedis(DURABLE);
  const client = connectRedis(redis.url, {});
  const info = client.info.bind(client);
  Object.assign(client, {
    info: async (...sections: string[]) =>
      (await info(...sections)).replace(/^redis_version:.*/m, `redis_version:${version}`),
  });
  const warnings = await redisWarnings(client, redis.url);
  expect(warnings.filter(({ text }) => text.includes(`is of version ${version}, and`))).toHaveLength(times);
  expect(warnings).toHaveLength(times);
  client.disconnect();
});

it.each([
  [
    'the Sentinels',
    'redis+sentinel://127.0.0.1:1/main',
    /^No Sentinel of REDIS_URL .* and no payment is sent/,
  ],
  [
    'the nodes of a Cluster',
    'redis+cluster://127.0.0.1:1',
    /^A primary of the Cluster does not answer CLUSTER NODES/,
  ],
])(
  'that %s cannot be asked is told, for no payment is sent while a replica is away',
  async (_whom, url, wanted) => {
    await using redis = await startRedis();
    const client = connectRedis(redis.url, {});
    await client.ping();
    const logger = recordingLogger();
    await new SettingsWatch(client, url, logger).look();
    expect(logger.lines.map(({ message }) => message)).toEqual([expect.stringMatching(wanted)]);
    client.disconnect();
  },
);

it('a look amid which the connection breaks says nothing of the settings', async () => {
  await using redis = await startRedis();
  const client = connectRedis(redis.url, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  await until(() => client.status === 'ready');
  const logger = recordingLogger();
  const looking = new SettingsWatch(client, redis.url, logger).look();
  client.disconnect();
  await looking;
  expect(logger.lines).toEqual([]);
});

it('what is told of a Redis stays told while that is away, and is not logged again once it is back, each time', async () => {
  await using redis = await startRedis();
  const client = connectRedis(redis.url, { enableOfflineQueue: false });
  client.on('error', () => undefined);
  await until(() => client.status === 'ready');
  const logger = recordingLogger();
  const watch = new SettingsWatch(client, redis.url, logger);
  const isTold = () => watch.risks.some((text) => text.includes('appendonly yes'));
  for (const times of [1, 2]) {
    await redis.admin.config('SET', 'appendonly', 'no');
    await watch.look();
    expect(isTold()).toBe(true);
    // It is away, as far as this process can see.
    client.disconnect();
    await until(() => client.status === 'end');
    await watch.look();
    expect(isTold()).toBe(true);
    await client.connect();
    await watch.look();
    expect(isTold()).toBe(true);
    expect(logger.lines.filter(({ message }) => message.includes('appendonly yes'))).toHaveLength(times);
    await redis.admin.config('SET', 'appendonly', 'yes');
    await watch.look();
    expect(isTold()).toBe(false);
  }
  client.disconnect();
});
