import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { drained } from '../helpers/events.ts';
import type { RedisServer } from '../helpers/redis.ts';
import { inStep, type RedisWithSentinel, startWithSentinel } from '../helpers/redis-topologies.ts';
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
/** So many events are answered between two faults: for seconds, in which Sentinels come to see that a server is away. */
const SOME = 500;

/** Resolves once the Sentinel has made a server the primary. */
const leads = ({ sentinel }: RedisWithSentinel, server: RedisServer) =>
  until(async () => {
    const named = await sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
    const info = await server.admin.info('replication').catch(() => '');
    return Array.isArray(named) && named[1] === String(server.port) && info.includes('role:master');
  });

const HOW = {
  killed: { away: (server: RedisServer) => server.kill(), back: (server: RedisServer) => server.start() },
  stopped: {
    away: async (server: RedisServer) => server.freeze(),
    back: async (server: RedisServer) => server.thaw(),
  },
} as const;

describe.each(['0', '1'])('two servers under Sentinel, min-replicas-to-write %s', (least) => {
  it.each(Object.entries(HOW))(
    'that change places before the one that was %s has caught up lose nothing, pay once, and answer a credit alike',
    {
      timeout: TIMEOUT_MS,
    },
    async (_, { away, back }) => {
      await using redis = await startWithSentinel(['--min-replicas-to-write', least]);
      await using upstream = await startUpstream();
      await using gateway = await startWritingGateway(redis.url, upstream);
      const { primary: a, replica: b } = redis;
      const [client, decidedClient] = [randomUUID(), randomUUID()];
      await drained(gateway.log);
      const events = load(gateway.log, client);
      const payments = loadPayments(gateway);
      const some = (answered = events.answered.length) =>
        until(() => events.answered.length > answered + SOME);
      await some();

      await away(a);
      await leads(redis, b);
      // This one has never seen a replica.
      await using fresh = await startWritingGateway(redis.url, upstream);
      const more = load(fresh.log, client);
      const credits = loadDecided([gateway.log, fresh.log], decidedClient);
      await some();
      await until(() => more.answered.length > SOME);

      // The one that comes back has none of it, and is promoted.
      await b.kill();
      await back(a);
      await leads(redis, a);
      await some();
      await b.start();
      // The same once more, while the one that came back is still to be made a replica.
      a.freeze();
      await leads(redis, b);
      await some();
      a.thaw();
      await inStep(b, a);
      await Promise.all([events.stop(), more.stop(), credits.stop(), payments.stop()]);
      await drained(gateway.log);
      await drained(fresh.log);

      const kept = await readAll(gateway.log, client);
      expect(difference([...events.answered, ...more.answered], kept)).toHaveLength(0);
      expect(new Set(kept).size).toBe(kept.length);
      await credits.again();
      const torn = [...credits.verdicts].filter(([, statuses]) => statuses.size > 1);
      expect(torn).toEqual([]);
      for (const [key, kind] of payments.results) {
        const moved = upstream.ledger.get(key) ?? 0;
        expect(`${kind} ${moved}`).toBe(kind === 'unknown' ? `unknown ${Math.min(moved, 1)}` : `done 1`);
      }
      expect(payments.results.size).toBeGreaterThan(0);
    },
  );
});
