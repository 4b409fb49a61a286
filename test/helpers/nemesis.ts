import { randomUUID } from 'node:crypto';
import { startUpstream } from '../money/upstream.ts';
import { drained } from './events.ts';
import type { RedisServer } from './redis.ts';
import type { RedisWithSentinel } from './redis-topologies.ts';
import { until } from './until.ts';
import {
  difference,
  load,
  loadDecided,
  loadPayments,
  readAll,
  startWritingGateway,
} from './writing-gateway.ts';

/** So many events are answered between two faults: for a second and more, in which the gateway asks who could be promoted. */
const SOME = 500;

/** Resolves once the Sentinel has made a server the primary. */
export const leads = ({ sentinel }: RedisWithSentinel, server: RedisServer) =>
  until(async () => {
    const named = await sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
    const info = await server.admin.info('replication').catch(() => '');
    return Array.isArray(named) && named[1] === String(server.port) && info.includes('role:master');
  });

/** Resolves once the Sentinel has seen that a server which was replaced is away. */
export const isMissed = ({ sentinel }: RedisWithSentinel, server: RedisServer) =>
  until(async () => {
    const rows: unknown = await sentinel.admin.call('SENTINEL', 'REPLICAS', 'events');
    const row = Array.isArray(rows)
      ? rows.find((words) => String(words).includes(`:${server.port},`))
      : undefined;
    return /s_down/.test(String(row));
  });

/** Everything that writes, through one gateway and, after a first fault, through one that has never seen a replica. */
export async function startWriting(redisUrl: string, decided: boolean, client: string = randomUUID()) {
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
    /** What has been answered so far. */
    counts: () => ({
      events: events.reduce((sum, { answered }) => sum + answered.length, 0),
      credits: credits?.verdicts.size ?? 0,
      payments: payments.results.size,
    }),
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
      await credits?.again();
      const verdicts = [...(credits?.verdicts.values() ?? [])];
      const paid = [...payments.results].map(([key, kind]) => ({
        kind,
        moved: upstream.ledger.get(key) ?? 0,
      }));
      return {
        /** Events answered 201 that the log does not hold. */
        lost: difference(answered, kept).length,
        repeated: kept.length - new Set(kept).size,
        /** Credits answered 201 and 422. */
        torn: verdicts.filter((statuses) => statuses.size > 1).length,
        paidTwice: paid.filter(({ moved }) => moved > 1).length,
        /** Payments told as done of which the ledger knows nothing. */
        unpaid: paid.filter(({ kind, moved }) => kind === 'done' && moved === 0).length,
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...events.map((lanes) => lanes.stop()), credits?.stop(), payments.stop()]);
      for (const each of gateways) await each[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
