import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { drained } from '../helpers/events.ts';
import type { RedisServer } from '../helpers/redis.ts';
import { startPartable } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { difference, load, readAll, startWritingGateway } from '../helpers/writing-gateway.ts';
import { startUpstream } from '../money/upstream.ts';

const TIMEOUT_MS = 300_000;

const isPrimary = async ({ admin }: RedisServer): Promise<boolean> =>
  (await admin.info('replication')).includes('role:master');

describe('a partition', { timeout: TIMEOUT_MS }, () => {
  it('with a replica on either side loses nothing that was answered 201, and pays once', async () => {
    await using redis = await startPartable(2, ['--min-replicas-to-write', '1']);
    await using upstream = await startUpstream();
    await using gateway = await startWritingGateway(redis.url, upstream);
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
    await using gateway = await startWritingGateway(redis.url, upstream);
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
