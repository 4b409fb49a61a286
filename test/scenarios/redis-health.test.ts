import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { pasarela } from '../cli/run.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { DURABLE, type RedisServer, startRedis } from '../helpers/redis.ts';
import { failOverBySentinel, inStep, startCluster, startWithSentinel } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

const LONG = { timeout: 300_000 };
const PROMPT = [...DURABLE, '--repl-diskless-sync-delay', '0'];

interface Readiness {
  readonly status: string;
  readonly degraded: readonly string[];
  readonly reasons?: readonly string[];
}

const readiness = async ({ url }: RunningGateway): Promise<Readiness> =>
  // The gateway's own answer.
  (await (await fetch(`${url}/readyz`)).json()) as Readiness;

const ready = (gateway: RunningGateway) => until(async () => (await readiness(gateway)).status === 'ready');

/** Resolves once the gateway says that these parts are missing, for a reason. */
const degraded = (gateway: RunningGateway, parts: readonly string[], reason: RegExp) =>
  until(async () => {
    const { degraded = [], reasons = [] } = await readiness(gateway);
    return String(degraded) === String(parts) && reasons.some((text) => reason.test(text));
  });

const on = (redisUrl: string) =>
  startGateway({ config: { redisUrl: new Secret(redisUrl) }, webhooks: false });

const told = ({ log }: RunningGateway, text: string): number =>
  log.filter((line) => line.includes(text)).length;

/** What the gateway has logged of whether Redis keeps what it is given: each state once. Beside other work it may not answer in time. */
function states({ log }: RunningGateway): readonly string[] {
  const lines = log.filter((line) => /Events go to the spool|keeps events and payments again/.test(line));
  expect(lines.filter((line, index) => line === lines[index - 1])).toEqual([]);
  return lines;
}

const doctor = async (redisUrl: string): Promise<string> =>
  (await pasarela(['doctor', '--json'], { REDIS_URL: redisUrl })).stdout;

describe('a Redis that takes nothing while a replica is away (min-replicas-to-write)', () => {
  it('is told by /readyz, the log and the doctor for as long as it lasts, each time', LONG, async () => {
    await using primary = await startRedis([...PROMPT, '--min-replicas-to-write', '1']);
    await using replica = await startRedis([...PROMPT, '--replicaof', '127.0.0.1', String(primary.port)]);
    await inStep(primary, replica);
    await using gateway = await on(primary.url);
    await ready(gateway);
    for (const time of [1, 2]) {
      const before = states(gateway).length;
      await replica.kill();
      await degraded(gateway, ['events', 'payments'], /^Redis refuses writes: NOREPLICAS/);
      // One that has never seen a replica waits for none.
      await using other = await on(primary.url);
      await degraded(other, ['events', 'payments'], /^Redis refuses writes: NOREPLICAS/);
      await degraded(other, ['events', 'payments'], /NOREPLICAS/);
      for (const said of [states(other), states(gateway).slice(before)])
        expect(said.join('\n')).toContain('NOREPLICAS');
      if (time === 1)
        expect(await doctor(primary.url)).toMatch(/"takes nothing that would stay. .*NOREPLICAS/);
      await replica.start();
      await ready(other);
      await ready(gateway);
      expect(states(gateway).at(-1)).toContain('keeps events and payments again');
    }
  });

  it('is told of a primary that has just been promoted, and has nobody to follow it', LONG, async () => {
    await using redis = await startWithSentinel(['--min-replicas-to-write', '1']);
    await using gateway = await on(redis.url);
    await ready(gateway);
    await redis.primary.kill();
    await until(async () => (await redis.replica.admin.info('replication')).includes('role:master'));
    await degraded(gateway, ['events', 'payments'], /NOREPLICAS/);
    await using other = await on(redis.url);
    await degraded(other, ['events', 'payments'], /NOREPLICAS/);
    await redis.primary.start();
    await ready(gateway);
    await ready(other);
  });

  it('is told where the server that a planned failover has replaced does not come back', LONG, async () => {
    await using redis = await startWithSentinel(['--min-replicas-to-write', '1']);
    await using gateway = await on(redis.url);
    await ready(gateway);
    await failOverBySentinel(redis.sentinel);
    const isFollowed = async () =>
      /slave0:.*state=online/.test(await redis.replica.admin.info('replication'));
    await until(isFollowed);
    await ready(gateway);
    for (const _time of [1, 2]) {
      await redis.primary.kill();
      await degraded(gateway, ['events', 'payments'], /NOREPLICAS/);
      expect(await doctor(redis.url)).toContain('NOREPLICAS');
      await redis.primary.start();
      await ready(gateway);
    }
  });
});

describe('what Redis may lose', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let gateway: RunningGateway;
  beforeAll(async () => {
    primary = await startRedis(PROMPT);
    replica = await startRedis([...PROMPT, '--replicaof', '127.0.0.1', String(primary.port)]);
    await inStep(primary, replica);
    gateway = await on(primary.url);
    await ready(gateway);
  });
  afterAll(async () => {
    await gateway.stop();
    await replica.stop();
    await primary.stop();
  });

  it(
    'by settings that are changed while it runs is told until they are changed back, each time',
    LONG,
    async () => {
      for (const time of [1, 2]) {
        await primary.admin.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
        await degraded(gateway, ['redis'], /^Redis runs with maxmemory-policy allkeys-lru/);
        expect(told(gateway, '"message":"Redis runs with maxmemory-policy allkeys-lru')).toBe(time);
        await primary.admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
        await ready(gateway);
      }
    },
  );

  it('by the settings of a replica is told before that is promoted', LONG, async () => {
    await replica.admin.config('SET', 'appendonly', 'no');
    await degraded(gateway, ['redis'], /^A replica of Redis runs without appendonly yes/);
    expect(await doctor(primary.url)).toContain('A replica of Redis runs without appendonly yes');
    await replica.admin.config('SET', 'appendonly', 'yes');
    await replica.admin.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'volatile-ttl');
    await degraded(gateway, ['redis'], /^A replica of Redis runs with maxmemory-policy volatile-ttl/);
    await replica.admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
    await ready(gateway);
  });

  it(
    'and has lost already, by evicting keys, is told until an operator says that he has seen it',
    LONG,
    async () => {
      await primary.admin.set('victim', '1');
      await primary.admin.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'allkeys-random');
      await until(async () => {
        await primary.admin.set('another', '1').catch(() => undefined);
        return !(await primary.admin.info('stats')).includes('evicted_keys:0');
      });
      await primary.admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
      await degraded(gateway, ['redis'], /^Redis has evicted keys/);
      expect(await doctor(primary.url)).toContain('Redis has evicted keys');
      await primary.admin.config('RESETSTAT');
      await ready(gateway);
    },
  );
});

it('settings and refusals of one node of a Cluster are told', LONG, async () => {
  await using cluster = await startCluster();
  await using gateway = await on(cluster.url);
  await ready(gateway);
  const [, , node] = cluster.nodes;
  if (node === undefined) throw new Error('there are three');
  await node.admin.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
  await degraded(gateway, ['redis'], /^Redis runs with maxmemory-policy allkeys-lru/);
  await node.admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
  await ready(gateway);
  await node.admin.config('SET', 'min-replicas-to-write', '1');
  await degraded(gateway, ['events', 'payments'], /NOREPLICAS/);
  await node.admin.config('SET', 'min-replicas-to-write', '0');
  await ready(gateway);
});

it('settings that Redis does not tell are to be looked at where its provider shows them', LONG, async () => {
  await using redis = await startRedis(['--rename-command', 'CONFIG', '']);
  expect(await doctor(redis.url)).toContain('in the console of your Redis provider');
});
