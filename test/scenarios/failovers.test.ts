import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { isMissed, leads, startWriting } from '../helpers/nemesis.ts';
import type { RedisServer } from '../helpers/redis.ts';
import { inStep, startCluster, startWithSentinel } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

const TIMEOUT_MS = 300_000;
/** What of the answers turns out not to be true. */
const NOTHING = { lost: 0, repeated: 0, torn: 0, paidTwice: 0, unpaid: 0 };

const HOW = {
  killed: { away: (server: RedisServer) => server.kill(), back: (server: RedisServer) => server.start() },
  stopped: {
    away: async (server: RedisServer) => server.freeze(),
    back: async (server: RedisServer) => server.thaw(),
  },
} as const;

it.each([
  ['killed', '0'],
  ['stopped', '1'],
] as const)(
  'two servers under Sentinel that change places before the one that was %s has caught up lose nothing, pay once, and answer a credit alike (min-replicas-to-write %s)',
  {
    timeout: TIMEOUT_MS,
  },
  async (how, least) => {
    const { away, back } = HOW[how];
    await using redis = await startWithSentinel(['--min-replicas-to-write', least]);
    const { primary: a, replica: b } = redis;
    await using writing = await startWriting(redis.url, true);
    await writing.some(20);
    await away(a);
    await leads(redis, b);
    await isMissed(redis, a);
    await writing.join();
    await writing.some();
    // The one that comes back has none of it, and is promoted.
    await b.kill();
    await back(a);
    await leads(redis, a);
    await writing.some();
    await b.start();
    // The same once more, while the one that came back is still to be made a replica.
    a.freeze();
    await leads(redis, b);
    await isMissed(redis, a);
    await writing.some();
    a.thaw();
    await inStep(b, a);
    expect(await writing.compare()).toEqual(NOTHING);
  },
);

it('two servers of a Cluster that change places before the one that was away has caught up lose nothing, and pay once', {
  timeout: TIMEOUT_MS,
}, async () => {
  // The one that comes back may be elected however old its data is.
  await using cluster = await startCluster(['--cluster-replica-validity-factor', '0']);
  const [a, witness] = cluster.nodes;
  if (a === undefined || witness === undefined) throw new Error('there are three');
  const b = await cluster.addReplica(a);
  const owns = (server: RedisServer) =>
    until(async () => {
      const nodes = String(await witness.admin.cluster('NODES'));
      const info = await server.admin.info('replication').catch(() => '');
      const line = nodes.split('\n').find((row) => row.includes(`:${server.port}@`)) ?? '';
      return / master .* connected \d/.test(line.replace('myself,', '')) && info.includes('role:master');
    });
  let client = randomUUID();
  while ((await cluster.nodeOf(client)) !== a) client = randomUUID();
  await using writing = await startWriting(cluster.url, false, client);
  await writing.some(20);
  await a.kill();
  await owns(b);
  await writing.join();
  await writing.some();
  await b.kill();
  await a.start();
  await owns(a);
  await writing.some();
  await b.start();
  await inStep(a, b);
  expect(await writing.compare()).toEqual(NOTHING);
});
