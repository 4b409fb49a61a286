import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { EventsGapError, StoreUnavailableError } from '../../../src/events/errors.ts';
import { RedisLog } from '../../../src/events/redis/redis-log.ts';
import { countingMetrics, ids, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { startRedis } from '../../helpers/redis.ts';

const KEPT = 20;

it('a Redis out of memory takes no event, whatever is to be retained, until there is more memory or its log is trimmed by hand', async () => {
  await using redis = await startRedis();
  const client = randomUUID();
  const open = async (retention: number) => {
    const log = new RedisLog({
      redisUrl: redis.url,
      retention,
      logger: recordingLogger(),
      metrics: countingMetrics(),
      now: Date.now,
      names: ({ id }) => [id],
    });
    await log.settled();
    return log;
  };
  const large = () => {
    const event = moneyIn();
    return { ...event, payload: JSON.stringify({ id_msg: event.id, filler: 'x'.repeat(20_000) }) };
  };
  const before = await open(1000);
  const start = await before.head(client);
  const sent = Array.from({ length: 150 }, large);
  for (const event of sent) await before.append(client, event);
  await before.stop();
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.admin.info('memory'))?.[1]);
  await redis.admin.config('SET', 'maxmemory', String(used - 500_000));

  const lowered = await open(KEPT);
  const refused: unknown = await lowered.append(client, large()).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StoreUnavailableError);
  expect(await redis.admin.xlen(`{${client}}:log`)).toBe(sent.length);

  await redis.admin.xtrim(`{${client}}:log`, 'MAXLEN', KEPT);
  const next = large();
  await lowered.append(client, next);
  const retained = [...sent, next].slice(-KEPT).map(({ id }) => id);
  const gap: unknown = await lowered.readAfter(client, start, 200).catch((error: unknown) => error);
  if (!(gap instanceof EventsGapError)) throw new Error('a gap is told', { cause: gap });
  expect(gap.gap.reason).toBe('trimmed');
  expect(ids((await lowered.readAfter(client, gap.oldest, 200)).events)).toEqual(retained);
  // The index finds what is left, and nothing else; and nobody is told that the log reaches further back.
  for (const { id } of [...sent, next]) {
    const { events } = await lowered.readAfter(client, null, 5, { name: id });
    expect(ids(events)).toEqual(retained.includes(id) ? [id] : []);
  }
  const gone = sent[sent.length - KEPT];
  expect(await lowered.wholeSince(client)).toBeGreaterThan(Date.parse(gone?.receivedAt ?? ''));
  await lowered.stop();
});

it('a process that starts while Redis is out of memory has the seal key and the epoch that are there', async () => {
  await using redis = await startRedis();
  const [client, stranger] = [randomUUID(), randomUUID()];
  await using stack = new AsyncDisposableStack();
  const open = async () => {
    const log = new RedisLog({
      ...{ redisUrl: redis.url, retention: 10, logger: recordingLogger(), metrics: countingMetrics() },
      now: Date.now,
    });
    stack.defer(() => log.stop());
    await log.settled();
    return log;
  };
  const before = await open();
  const [key, head] = [await before.sealKey(client), await before.head(client)];
  await redis.admin.config('SET', 'maxmemory', '1');
  const after = await open();
  expect(await after.sealKey(client)).toEqual(key);
  expect(await after.head(client)).toBe(head);
  // What would take memory is refused.
  await expect(after.sealKey(stranger)).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(after.head(stranger)).rejects.toBeInstanceOf(StoreUnavailableError);
  await redis.admin.config('SET', 'maxmemory', '0');
  expect(await after.sealKey(stranger)).not.toEqual(key);
  expect(await before.sealKey(client)).toEqual(key);
});
