import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { EventLog } from '../../src/events/log.ts';
import { openEventLog } from '../../src/events/open.ts';
import type { MoneyResult } from '../../src/money/call.ts';
import { createMoney } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open.ts';
import { drained, ids, moneyIn } from '../helpers/events.ts';
import type { RedisServer } from '../helpers/redis.ts';
import { startPartable } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { order } from '../money/orders.ts';
import { startUpstream, type Upstream } from '../money/upstream.ts';

const TIMEOUT_MS = 90_000;

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-partitions-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

interface Gateway extends AsyncDisposable {
  readonly log: EventLog;
  pay(key: string): Promise<MoneyResult>;
}

/** What of a gateway writes to Redis. */
async function startGateway(redisUrl: string, upstream: Upstream): Promise<Gateway> {
  const dataDir = await mkdtemp(join(root, 'data-'));
  const log = await openEventLog({ redisUrl, dataDir, retention: 100_000, logger });
  const records = await openMoneyRecords({ redisUrl, dataDir, logger });
  const money = createMoney({ records, logger });
  return {
    log,
    pay: (key) =>
      money.execute(order(upstream.url, 'createInternalTransaction', key), {
        deadline: Date.now() + 5_000,
        signal: new AbortController().signal,
      }),
    async [Symbol.asyncDispose]() {
      await money.stop();
      await records.stop();
      await log.stop();
    },
  };
}

const isPrimary = async ({ admin }: RedisServer): Promise<boolean> =>
  (await admin.info('replication')).includes('role:master');

/** All ids of a client's events, in the order of the log. */
async function readAll(log: EventLog, client: string): Promise<string[]> {
  const read: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const { events, hasMore } = await log.readAfter(client, cursor, 500);
    read.push(...ids(events));
    if (!hasMore) return read;
    cursor = events.at(-1)?.cursor ?? null;
  }
}

/** What is in the first and not in the second. */
const difference = (one: readonly string[], other: readonly string[]): string[] => [
  ...new Set(one).difference(new Set(other)),
];

/** Appends one event after another until it is stopped, and tells which were answered with 201. */
function load(log: EventLog, client: string): { readonly answered: string[]; stop(): Promise<void> } {
  const answered: string[] = [];
  let running = true;
  const lane = async (): Promise<void> => {
    while (running) {
      const event = moneyIn();
      const { answer } = await log.append(client, event);
      if (answer.status === 201) answered.push(event.id);
    }
  };
  const lanes = [lane(), lane()];
  return {
    answered,
    async stop() {
      running = false;
      await Promise.all(lanes);
    },
  };
}

describe('a partition', { timeout: TIMEOUT_MS }, () => {
  it('with a replica on either side loses nothing that was answered 201, and pays once', async () => {
    await using redis = await startPartable(2, ['--min-replicas-to-write', '1']);
    await using upstream = await startUpstream();
    await using gateway = await startGateway(redis.url, upstream);
    const { log, pay } = gateway;
    const [near, far] = redis.replicas;
    if (near === undefined || far === undefined) throw new Error('there are two');
    const client = randomUUID();
    await drained(log);
    const events = load(log, client);
    expect(await pay('before')).toMatchObject({ kind: 'done', replayed: false });
    await until(() => events.answered.length > 20);

    redis.part(['test', redis.primary, near], [far, redis.sentinel]);
    // The primary still takes writes, and one of its replicas acknowledges them: before, and after the other is promoted.
    const meanwhile = Array.from({ length: 5 }, (_, index) => `meanwhile-${index}`);
    for (const key of meanwhile) await pay(key).catch(() => undefined);
    await until(() => isPrimary(far));
    for (const key of meanwhile) await pay(key).catch(() => undefined);
    const answered = events.answered.length;
    await until(() => events.answered.length > answered + 20);

    redis.join();
    await until(async () => !(await isPrimary(redis.primary)));
    await until(() => log.readAfter(client, null, 1).then(Boolean, () => false));
    await events.stop();
    await drained(log);
    const kept = await readAll(log, client);
    expect(difference(events.answered, kept)).toEqual([]);
    expect(kept).toHaveLength(events.answered.length);
    for (const key of ['before', ...meanwhile]) {
      await until(async () => (await pay(key).catch(() => undefined))?.kind === 'done');
      expect(upstream.ledger.get(key)).toBe(1);
    }
  });

  it('after a restart of the Sentinels is followed to the promoted primary, while the other still answers', async () => {
    await using redis = await startPartable(1, ['--min-replicas-to-write', '0']);
    await using upstream = await startUpstream();
    await using gateway = await startGateway(redis.url, upstream);
    const { log, pay } = gateway;
    const [replica] = redis.replicas;
    if (replica === undefined) throw new Error('there is one');
    const client = randomUUID();
    await drained(log);
    await redis.sentinel.kill();
    await redis.sentinel.start();
    const events = load(log, client);
    await until(() => events.answered.length > 20);

    redis.part([redis.primary], [replica, redis.sentinel]);
    await pay('meanwhile').catch(() => undefined);
    await until(() => isPrimary(replica));
    expect(await isPrimary(redis.primary)).toBe(true);
    const answered = events.answered.length;
    await until(() => events.answered.length > answered + 20);
    await events.stop();
    // On the promoted primary, although the replaced one has not heard of it.
    await until(async () => (await readAll(log, client).catch(() => [])).length >= events.answered.length);
    expect(await replica.admin.xlen(`{${client}}:log`)).toBeGreaterThanOrEqual(events.answered.length);
    await until(async () => (await pay('meanwhile').catch(() => undefined))?.kind === 'done');
    redis.join();
    await until(async () => !(await isPrimary(redis.primary)));
    await drained(log);
    expect(difference(events.answered, await readAll(log, client))).toEqual([]);
    expect(await pay('meanwhile')).toMatchObject({ kind: 'done', replayed: true });
    expect(upstream.ledger.get('meanwhile')).toBe(1);
  });
});
