import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { afterEach, expect, it } from 'vitest';
import { connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { durableScript } from '../../src/redis/durable-script.ts';
import { DurableWrites } from '../../src/redis/durable-write.ts';
import { failoverAuthorityOf, serversOf } from '../../src/redis/failover.ts';
import { ALONE_FOR_MS } from '../../src/redis/replication.ts';
import { withTlsFiles } from '../../src/redis/url.ts';
import { startSecureRedis } from '../helpers/private-ca.ts';
import { freePort, type RedisServer, startRedis } from '../helpers/redis.ts';
import {
  inStep,
  startCluster,
  startMigration,
  startSentinel,
  startWithSentinel,
} from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

const SET = durableScript(`
  local known = redis.call('GET', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1])
  return known or 'new'`);
const PROMPT = ['--repl-diskless-sync-delay', '0'];

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

async function startReplica(primary: RedisServer): Promise<RedisServer> {
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(primary.port)]);
  await inStepWith(primary, replica);
  return replica;
}

/** Resolves once the replica has all, and the primary counts it, and has heard from it. */
async function inStepWith(primary: RedisServer, replica: RedisServer): Promise<void> {
  await until(async () => (await replica.admin.info('replication')).includes('master_link_status:up'));
  await until(async () => {
    const followers = (await primary.admin.info('replication')).match(/^slave\d+:.*$/gm) ?? [];
    const isOnline = followers.some((line) => line.includes(`port=${replica.port},state=online`));
    return isOnline && (await primary.admin.wait(followers.length, 100)) >= followers.length;
  });
}

/** Resolves once the primary says that a replica which it still lists as in step has been silent for longer than it may be. */
const isHeardNoMore = ({ admin }: RedisServer): Promise<unknown> =>
  until(async () => {
    const [, lag] = /state=online,offset=\d+,lag=(\d+)/.exec(await admin.info('replication')) ?? [];
    return Number(lag) > 2;
  });

const sentinelRows = ({ admin }: RedisServer): Promise<unknown> =>
  admin.call('SENTINEL', 'REPLICAS', 'events');

const writing = (writes: DurableWrites, client: RedisClient) => (key: string, value: string) =>
  writes.write(client, SET, [key], [value]);

it('is on every replica once it is done, and replies what its first run did', async () => {
  await using primary = await startRedis(PROMPT);
  await using one = await startReplica(primary);
  await using other = await startReplica(primary);
  const set = writing(new DurableWrites(primary.url, 2_000), connect(primary.url));
  // The first write learns that there are replicas, and has to be run again in front of WAIT.
  expect(await set('first', '1')).toBe('new');
  for (const replica of [one, other]) expect(await replica.admin.get('first')).toBe('1');
  expect(await set('first', '2')).toBe('1');
});

it('is done where a replica has come since the last one: each of ten processes waits for it too, and refuses nothing', async () => {
  await using primary = await startRedis(PROMPT);
  await using one = await startReplica(primary);
  const client = connect(primary.url);
  const all = Array.from({ length: 10 }, () => new DurableWrites(primary.url, 2_000));
  for (const writes of all)
    await until(() => writing(writes, client)('key', 'by one').catch(() => undefined));
  await using other = await startReplica(primary);
  for (const [number, writes] of all.entries()) {
    await writing(writes, client)('key', `by both ${number}`);
    for (const replica of [one, other]) expect(await replica.admin.get('key')).toBe(`by both ${number}`);
    expect(writes).toMatchObject({ isDurable: true });
  }
});

it('replies what its first run did in the history that has it', async () => {
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  await primary.admin.set('key', 'of the first');
  const client = connect(primary.url);
  // The server knows the script from then on.
  await writing(new DurableWrites(primary.url, 2_000), client)('other', '1');
  let runs = 0;
  const followed = new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name !== 'pipeline') return typeof value === 'function' ? value.bind(target) : value;
      return () => {
        const pipeline = (target as Redis).pipeline();
        const exec = pipeline.exec.bind(pipeline);
        return Object.assign(pipeline, {
          async exec() {
            const replies = await exec();
            runs += 1;
            // Between the two runs the server begins another history, in which somebody else has written.
            if (runs === 1) {
              await primary.admin.replicaof('127.0.0.1', 1);
              await primary.admin.replicaof('NO', 'ONE');
              await primary.admin.set('key', 'of the second');
              await inStepWith(primary, replica);
            }
            return replies;
          },
        });
      };
    },
  });
  const set = writing(new DurableWrites(primary.url, 2_000), followed);
  expect(await set('key', 'written')).toBe('of the second');
  expect(runs).toBeGreaterThan(1);
});

it('is not done when one of two replicas falls silent or goes, and is again when it is back', async () => {
  await using primary = await startRedis(PROMPT);
  await using _one = await startReplica(primary);
  await using other = await startReplica(primary);
  const set = writing(new DurableWrites(primary.url, 300), connect(primary.url));
  await until(() => set('key', '1').catch(() => undefined));
  other.freeze();
  await expect(set('key', '2')).rejects.toThrow('2 replicas should have this');
  other.thaw();
  await until(() => set('key', '3').catch(() => undefined));
  await other.kill();
  await until(async () => !(await primary.admin.info('replication')).includes('slave1'));
  await expect(set('key', '4')).rejects.toThrow('1 follow');
});

it('is not done without a replica that fell silent before this process began, for as long as without one that goes', async () => {
  let now = 0;
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  replica.freeze();
  await isHeardNoMore(primary);
  const writes = new DurableWrites(primary.url, 300, () => now);
  const client = connect(primary.url);
  const set = writing(writes, client);
  await expect(set('key', '1')).rejects.toThrow('1 replicas should have this: 0 follow');
  expect(writes.problems).toEqual(['A write counts once 1 replica has it, and 0 answer now.']);
  const looking = new DurableWrites(primary.url, 300, () => now);
  await looking.look(client);
  expect(looking.isDurable).toBe(false);
  now = ALONE_FOR_MS;
  expect(await set('key', '2')).toBe('1');
  expect(writes).toMatchObject({ isDurable: true, problems: [] });
});

it('is not done on a primary whose replica came back for a moment, after long without, and saw nothing of it', async () => {
  let now = 0;
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  const client = connect(primary.url);
  const set = writing(new DurableWrites(primary.url, 300, () => now), client);
  const isFollowed = async () => /slave0:/.test(await primary.admin.info('replication'));
  await until(() => set('key', '1').catch(() => undefined));
  await replica.admin.replicaof('NO', 'ONE');
  await until(async () => !(await isFollowed()));
  await expect(set('key', '2')).rejects.toThrow('0 follow');
  now = ALONE_FOR_MS;
  expect(await set('key', '3')).toBe('2');

  await replica.admin.replicaof('127.0.0.1', primary.port);
  await until(async () => (await replica.admin.info('replication')).includes('master_link_status:up'));
  await replica.admin.replicaof('NO', 'ONE');
  await until(async () => !(await isFollowed()));
  await expect(set('key', '4')).rejects.toThrow('0 follow');
  now += ALONE_FOR_MS;
  expect(await set('key', '5')).toBe('4');
});

it('holds up its connection only where enough replicas follow', async () => {
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  const set = writing(new DurableWrites(primary.url, 300), connect(primary.url));
  await until(() => set('key', '1').catch(() => undefined));
  await replica.kill();
  await until(async () => !(await primary.admin.info('replication')).includes('slave0'));
  // This one may still be sent with a WAIT.
  await expect(set('key', '2')).rejects.toThrow('0 follow');
  await primary.admin.config('RESETSTAT');
  for (let count = 0; count < 10; count += 1) await expect(set('key', '3')).rejects.toThrow('0 follow');
  expect(await primary.admin.info('commandstats')).not.toContain('cmdstat_wait');
});

it('finds out by one write at a time whether replicas acknowledge that did not, each time', async () => {
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  const set = writing(new DurableWrites(primary.url, 300), connect(primary.url));
  const many = () => Promise.allSettled(Array.from({ length: 30 }, (_, number) => set(`key${number}`, '1')));
  await until(() => set('key', '1').catch(() => undefined));
  const monitor = await primary.admin.monitor();
  const waits: string[][] = [];
  monitor.on('monitor', (_time: string, command: string[]) => {
    if (command[0]?.toLowerCase() === 'wait') waits.push(command.slice(1));
  });
  for (const _time of ['first', 'second']) {
    // Again where the primary noticed sooner that the replica is silent: then nothing waits for it.
    await until(async () => {
      replica.thaw();
      await until(() => set('key', '1').catch(() => undefined));
      waits.length = 0;
      replica.freeze();
      await expect(set('key', '2')).rejects.toThrow('acknowledged');
      await primary.admin.echo('seen');
      return waits.some(([, timeoutMs]) => timeoutMs === '300');
    });
    waits.length = 0;
    expect((await many()).map(({ status }) => status)).not.toContain('fulfilled');
    await primary.admin.echo('seen');
    // None where the primary has noticed by then that the replica is silent.
    expect([[], [['1', '50']]]).toContainEqual(waits);
    replica.thaw();
    await until(() => set('key', '3').catch(() => undefined));
    expect((await many()).map(({ status }) => status)).not.toContain('rejected');
    waits.length = 0;
  }
  monitor.disconnect();
});

it('knows that replicas do not acknowledge also where the client gives up sooner', async () => {
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  const writes = new DurableWrites(primary.url, 60_000);
  const set = writing(writes, connect(primary.url));
  await until(() => set('key', '1').catch(() => undefined));
  expect(writes.isDurable).toBe(true);
  replica.freeze();
  await expect(set('key', '2')).rejects.toThrow('timed out');
  expect(writes.isDurable).toBe(false);
});

it('says nothing of replicas where it has none, and is given up by the client', async () => {
  await using primary = await startRedis(PROMPT);
  const client = connectRedis(primary.url, { commandTimeout: 300, maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  opened.push(client);
  const writes = new DurableWrites(primary.url, 300);
  await until(() => writing(writes, client)('key', '1').catch(() => undefined));
  primary.freeze();
  await expect(writing(writes, client)('key', '2')).rejects.toThrow('timed out');
  expect(writes.isDurable).toBe(true);
  primary.thaw();
});

it('that a demoted primary refuses is sent again to the one in its place', async () => {
  await using primary = await startRedis(PROMPT);
  const client = connectRedis(primary.url, {});
  client.on('error', () => {});
  opened.push(client);
  await client.ping();
  await primary.admin.replicaof('127.0.0.1', 1);
  const again = new Promise((resolve) => client.once('reconnecting', resolve));
  const written = client.set('key', 'value');
  await again;
  await primary.admin.replicaof('NO', 'ONE');
  expect(await written).toBe('OK');
});

it('tells why a Redis cannot be reached, in the words of the attempt to connect, and without an address', async () => {
  await using redis = await startSecureRedis(true);
  const { authority: ca } = redis;
  const reasonOf = async (url: string, reason: string) => {
    const client = connectRedis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
    opened.push(client);
    const writes = new DurableWrites(url, 300);
    const told = new Set<string>();
    await until(async () => {
      await writes.look(client).catch(() => told.add(writes.problems.join()));
      return told.has(`Redis does not answer: ${reason}.`);
    });
    // Before the first attempt has failed nobody knows why. A server that wants a certificate may be heard to hang up before it says so.
    for (const early of ['there is no connection', 'write ECONNRESET', 'read ECONNRESET'])
      told.delete(`Redis does not answer: ${early}.`);
    expect(told.size).toBe(1);
  };
  await reasonOf(
    withTlsFiles(redis.url, { ca, cert: undefined, key: undefined }),
    'tlsv13 alert certificate required',
  );
  await reasonOf(redis.url, 'self-signed certificate in certificate chain');
  await using elsewhere = await startSecureRedis(false, { names: 'IP:192.0.2.1' });
  await reasonOf(
    withTlsFiles(elsewhere.url, { ca: elsewhere.authority, cert: undefined, key: undefined }),
    "Hostname/IP does not match certificate's altnames",
  );
  const port = await freePort();
  await reasonOf(`redis://127.0.0.1:${port}`, 'connect ECONNREFUSED');
  await reasonOf('redis://nowhere.invalid', 'getaddrinfo ENOTFOUND');
  await reasonOf(`redis+sentinel://127.0.0.1:${port}/main`, 'No Sentinel can be asked: connect ECONNREFUSED');
});

it('is told as silent where it does not answer, and forgotten once another has begun in its place', async () => {
  let now = 0;
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  const client = connect(primary.url);
  const writes = new DurableWrites(primary.url, 300, () => now);
  await until(() => writing(writes, client)('key', '1').catch(() => undefined));
  await replica.kill();
  await until(async () => !(await primary.admin.info('replication')).includes('slave0'));
  await writes.look(client);
  expect(writes.isDurable).toBe(false);
  await primary.kill();
  await expect(writes.look(client)).rejects.toThrow();
  expect(writes.problems[0]).toMatch(/^Redis does not answer: /);
  // What it has to have is not forgotten meanwhile.
  expect(writes.problems[1]).toMatch(/^A write counts once 1 replica has it/);
  await primary.start();
  // It has another history now.
  await until(() =>
    writes.look(client).then(
      () => true,
      () => false,
    ),
  );
  now = ALONE_FOR_MS;
  await writes.look(client);
  expect(writes).toMatchObject({ isDurable: true, problems: [] });
});

it('never shows what was to be written', async () => {
  await using redis = await startRedis();
  await redis.admin.config('SET', 'maxmemory', '1');
  const set = writing(new DurableWrites(redis.url, 300), connect(redis.url));
  const error = await set('key', 'a-secret').catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('a-secret');
  expect(error).not.toHaveProperty('command');
});

it('follows a slot that is just moving to another node of the Cluster', async () => {
  await using cluster = await startCluster();
  const set = writing(new DurableWrites(cluster.url, 300), connect(cluster.url));
  const tag = randomUUID();
  await until(() => set(`{${tag}}`, '1').catch(() => undefined));
  const migration = await startMigration(cluster, tag);
  // What the slot held is still at its old owner; what is new goes to the new one.
  expect(await set(`{${tag}}`, '2')).toBe('1');
  expect(await set(`{${tag}}:new`, '1')).toBe('new');
  expect(await migration.source.admin.cluster('COUNTKEYSINSLOT', migration.slot)).toBe(1);
  expect(await migration.target.admin.cluster('COUNTKEYSINSLOT', migration.slot)).toBe(1);
  await migration.finish();
  expect(await set(`{${tag}}:new`, '2')).toBe('1');
  expect(await set(`{${tag}}`, '3')).toBe('2');
});

it('goes to the node that a Cluster names, though the one that tells whose the slots are has not heard of the move', async () => {
  await using cluster = await startCluster();
  const [source, teller, target] = cluster.nodes;
  if (source === undefined || teller === undefined || target === undefined)
    throw new Error('there are three');
  const set = writing(new DurableWrites(cluster.url, 300), connect(cluster.url));
  const key = '{bar}';
  expect(await cluster.nodeOf('bar')).toBe(source);
  await until(() => set(key, '1').catch(() => undefined));
  // A slot is moved once it is empty.
  await source.admin.del(key);
  const slot = await source.admin.cluster('KEYSLOT', key);
  const targetId = await target.admin.cluster('MYID');
  for (const { admin } of [target, source]) await admin.call('ACL', 'SETUSER', 'default', '-cluster|slots');
  for (const { admin } of [target, source]) await admin.cluster('SETSLOT', slot, 'NODE', targetId);
  expect(await set(key, '2')).toBe('new');
  expect(await target.admin.get(key)).toBe('2');
});

it('is given up where each of two nodes of a Cluster says that a slot is the other’s, and the next is done once they agree', async () => {
  await using cluster = await startCluster();
  const set = writing(new DurableWrites(cluster.url, 300), connect(cluster.url));
  const tag = randomUUID();
  const source = await cluster.nodeOf(tag);
  const target = cluster.nodes.find((node) => node !== source);
  if (target === undefined) throw new Error('there are three');
  const slot = await source.admin.cluster('KEYSLOT', `{${tag}}`);
  const targetId = await target.admin.cluster('MYID');
  await source.admin.cluster('SETSLOT', slot, 'NODE', targetId);
  await expect(set(`{${tag}}`, '1')).rejects.toThrow('changed too often');
  await target.admin.cluster('SETSLOT', slot, 'NODE', targetId);
  expect(await until(() => set(`{${tag}}`, '2').catch(() => undefined))).toBe('new');
});

it('is done on a primary that a Cluster has promoted, or whose replica it has given up', async () => {
  await using cluster = await startCluster();
  const tag = randomUUID();
  const primary = await cluster.nodeOf(tag);
  const replica = await cluster.addReplica(primary);
  const client = connect(cluster.url);
  const writes = new DurableWrites(cluster.url, 300);
  const set = writing(writes, client);
  await until(() => set(`{${tag}}`, '1').catch(() => undefined));
  await primary.kill();
  // The promoted replica follows nobody, and nobody follows it.
  await until(() => set(`{${tag}}`, '2').catch(() => undefined));
  await until(() =>
    writes.look(client).then(
      () => writes.isDurable,
      () => false,
    ),
  );
  expect(await replica.admin.info('replication')).toContain('role:master');
});

it('is done on a primary that Sentinels have promoted once the one that it replaced has it, each time', async () => {
  await using redis = await startWithSentinel();
  const client = connect(redis.url);
  const set = writing(new DurableWrites(redis.url, 300), client);
  await until(() => set('key', 'before').catch(() => undefined));
  const both = [redis.primary, redis.replica] as const;
  for (const [time, [replaced, promoted]] of [both, both.toReversed()].entries()) {
    if (replaced === undefined || promoted === undefined) throw new Error('there are two');
    await replaced.kill();
    await until(async () =>
      (await client.info('server').catch(() => '')).includes(`tcp_port:${promoted.port}`),
    );
    await until(async () => String(await sentinelRows(redis.sentinel)).includes('s_down'));
    // This one has never seen a replica.
    const freshly = writing(new DurableWrites(redis.url, 1_500), connect(redis.url));
    for (const write of [set, freshly]) {
      // The first looks at who could be promoted may be from before the Sentinels have noticed.
      for (let count = 0; count < 20; count += 1) {
        await expect(write('key', 'meanwhile')).rejects.toThrow('1 replicas should have this: 0 follow');
        await promoted.admin.ping();
      }
    }
    await replaced.start();
    await until(() => set('key', `after-${time}`).catch(() => undefined));
    expect(await replaced.admin.get('key')).toBe(`after-${time}`);
    expect(await freshly('key', `again-${time}`)).toBe(`after-${time}`);
    expect(await replaced.admin.get('key')).toBe(`again-${time}`);
    await inStep(promoted, replaced);
  }
});

it('is not done on one Redis that was promoted, until the one that it replaced must have been noticed', async () => {
  let now = 0;
  await using primary = await startRedis(PROMPT);
  await using replica = await startReplica(primary);
  await replica.admin.replicaof('NO', 'ONE');
  const writes = new DurableWrites(replica.url, 300, () => now);
  const client = connect(replica.url);
  const set = writing(writes, client);
  await expect(set('key', '1')).rejects.toThrow('0 follow');
  expect(writes.isDurable).toBe(false);
  expect(writes.problems).toEqual(['A write counts once 1 replica has it, and 0 answer now.']);
  now = ALONE_FOR_MS;
  expect(await set('key', '2')).toBe('1');
  expect(writes).toMatchObject({ isDurable: true, problems: [] });
});

it('is looked at by a write of its own on each primary, which leaves nothing', async () => {
  await using cluster = await startCluster();
  const client = connect(cluster.url);
  const writes = new DurableWrites(cluster.url, 300);
  await until(() =>
    writes.look(client).then(
      () => writes.isDurable,
      () => false,
    ),
  );
  for (const { admin } of cluster.nodes) {
    await admin.config('SET', 'min-replicas-to-write', '1');
    await writes.look(client);
    expect(writes.isDurable).toBe(false);
    expect(writes.problems).toEqual(['Redis refuses writes: NOREPLICAS Not enough good replicas to write.']);
    await admin.config('SET', 'min-replicas-to-write', '0');
    await until(async () => (await admin.dbsize()) === 0);
  }
  await writes.look(client);
  expect(writes).toMatchObject({ isDurable: true, problems: [] });
  // What one refuses is told also while another says nothing.
  const [refusing, silent] = cluster.nodes;
  await refusing?.admin.config('SET', 'min-replicas-to-write', '1');
  silent?.freeze();
  await expect(writes.look(client)).rejects.toThrow();
  expect(writes.problems).toContain('Redis refuses writes: NOREPLICAS Not enough good replicas to write.');
  silent?.thaw();
  await refusing?.admin.config('SET', 'min-replicas-to-write', '0');
  // Also the one that the client has given up as a node.
  await cluster.nodes[1]?.kill();
  await until(() =>
    writes.look(client).then(
      () => false,
      () => writes.problems.some((text) => /^Redis does not answer: a primary of the Cluster/.test(text)),
    ),
  );
  // The client takes it for a node again as it reads the slots anew: for a moment it is neither looked at nor missing.
  await until(() =>
    writes.look(client).then(
      () => false,
      (error: unknown) => String(error).includes('is not there'),
    ),
  );
  await cluster.nodes[1]?.start();
  await until(() =>
    writes.look(client).then(
      () => writes.isDurable,
      () => false,
    ),
  );
});

it('is asked of the Sentinels how soon they act, which replicas they could promote, and who is the primary', async () => {
  await using redis = await startWithSentinel();
  const watchers = failoverAuthorityOf(redis.url);
  const [primary] = serversOf(connect(redis.primary.url));
  const [replica] = serversOf(connect(redis.replica.url));
  if (watchers === undefined || primary === undefined || replica === undefined)
    throw new Error('all are there');
  expect(await until(() => watchers.ask(primary))).toEqual({ promotable: 1, noticedAfterMs: 500 });
  await redis.sentinel.admin.call('SENTINEL', 'SET', 'events', 'down-after-milliseconds', '45000');
  expect(await until(() => watchers.ask(primary))).toEqual({ promotable: 1, noticedAfterMs: 45_000 });
  expect(await until(() => watchers.ask(replica))).toBe('replaced');
  await redis.sentinel.admin.call('SENTINEL', 'SET', 'events', 'down-after-milliseconds', '500');
  await using patient = await startSentinel(redis.primary.port);
  await patient.admin.call('SENTINEL', 'SET', 'events', 'down-after-milliseconds', '60000');
  const both = failoverAuthorityOf(redis.url.replace('/events', `,127.0.0.1:${patient.port}/events`));
  await until(async () => String(await sentinelRows(patient)).includes(String(redis.replica.port)));
  await redis.replica.kill();
  await until(async () => String(await sentinelRows(redis.sentinel)).includes('s_down'));
  // It may be back in a moment.
  expect(await until(() => watchers.ask(primary))).toMatchObject({ promotable: 1 });
  await until(async () => {
    const word = await watchers.ask(primary);
    return typeof word === 'object' && word.promotable === 0;
  });
  // Another may promote it all the same: it takes it for gone later.
  expect(await until(() => both?.ask(primary))).toEqual({ promotable: 1, noticedAfterMs: 60_000 });
  await redis.sentinel.kill();
  expect(await watchers.ask(primary)).toBeUndefined();
});

it('says in Redis’ words that the address leads to a replica', async () => {
  await using primary = await startRedis();
  await using replica = await startReplica(primary);
  const client = connectRedis(replica.url, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  opened.push(client);
  const writes = new DurableWrites(replica.url, 500);
  for (const round of [1, 2]) {
    await until(() => client.status === 'ready');
    await expect(writes.look(client), `look ${round}`).rejects.toThrow();
    expect(writes.problems).toEqual([
      "Redis does not answer: READONLY You can't write against a read only replica.",
    ]);
  }
});
