import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { drained } from '../helpers/events.ts';
import type { RedisServer } from '../helpers/redis.ts';
import {
  inStep,
  type RedisWithSentinel,
  startCluster,
  startWithSentinel,
} from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import {
  difference,
  load,
  loadDecided,
  loadPayments,
  readAll,
  startWritingGateway,
} from '../helpers/writing-gateway.ts';
import { startUpstream } from '../money/upstream.ts';

const TIMEOUT_MS = 120_000;
/** So many events are answered between two faults: for a second and more, in which the gateway asks who could be promoted. */
const SOME = 500;

/** Resolves once the Sentinel has made a server the primary. */
const leads = ({ sentinel }: RedisWithSentinel, server: RedisServer) =>
  until(async () => {
    const named = await sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
    const info = await server.admin.info('replication').catch(() => '');
    return Array.isArray(named) && named[1] === String(server.port) && info.includes('role:master');
  });

/** Resolves once the Sentinel has seen that a server which was replaced is away. */
const isMissed = ({ sentinel }: RedisWithSentinel, server: RedisServer) =>
  until(async () => {
    const rows: unknown = await sentinel.admin.call('SENTINEL', 'REPLICAS', 'events');
    const row = Array.isArray(rows)
      ? rows.find((words) => String(words).includes(`:${server.port},`))
      : undefined;
    return /s_down/.test(String(row));
  });

const HOW = {
  killed: { away: (server: RedisServer) => server.kill(), back: (server: RedisServer) => server.start() },
  stopped: {
    away: async (server: RedisServer) => server.freeze(),
    back: async (server: RedisServer) => server.thaw(),
  },
} as const;

/** Everything that writes, through one gateway and, after a first fault, through one that has never seen a replica. */
async function startWriting(redisUrl: string, decided: boolean, client: string = randomUUID()) {
  const upstream = await startUpstream();
  const gateway = await startWritingGateway(redisUrl, upstream);
  const gateways = [gateway];
  await drained(gateway.log);
  const events = [load(gateway.log, client)];
  const payments = loadPayments(gateway);
  let credits: ReturnType<typeof loadDecided> | undefined;
  /** Resolves once every gateway has answered some more. */
  const some = async (count = SOME): Promise<void> => {
    const before = events.map(({ answered }) => answered.length);
    await until(() => events.every(({ answered }, index) => answered.length > (before[index] ?? 0) + count));
  };
  return {
    some,
    async join() {
      const fresh = await startWritingGateway(redisUrl, upstream);
      gateways.push(fresh);
      events.push(load(fresh.log, client));
      if (decided) credits = loadDecided([gateway.log, fresh.log], randomUUID());
    },
    /** Once all servers are there again: what was answered is true. */
    async compare() {
      await Promise.all([...events.map((lanes) => lanes.stop()), credits?.stop(), payments.stop()]);
      for (const { log } of gateways) await drained(log);
      const kept = await readAll(gateway.log, client);
      const answered = events.flatMap((lanes) => lanes.answered);
      expect(difference(answered, kept)).toHaveLength(0);
      expect(new Set(kept).size).toBe(kept.length);
      await credits?.again();
      const torn = [...(credits?.verdicts ?? [])].filter(([, statuses]) => statuses.size > 1);
      expect(torn).toEqual([]);
      expect(payments.results.size).toBeGreaterThan(0);
      for (const [key, kind] of payments.results) {
        const moved = upstream.ledger.get(key) ?? 0;
        expect(moved).toBeLessThanOrEqual(1);
        if (kind === 'done') expect(moved).toBe(1);
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...events.map((lanes) => lanes.stop()), credits?.stop(), payments.stop()]);
      for (const each of gateways) await each[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

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
    await writing.compare();
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
  await writing.compare();
});
