import { afterAll, beforeAll, expect, it } from 'vitest';
import { SEEN_FOR_MS } from '../../../src/events/entry.ts';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import { RECALL } from '../../../src/events/redis/scripts.ts';
import { RedisWriters } from '../../../src/events/redis/writers.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/connection.ts';
import { DurableWrites } from '../../../src/redis/durable-write.ts';
import { recordingLogger } from '../../helpers/events.ts';
import { type RedisServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';

let redis: RedisServer;
let gone: string;
const opened: RedisClient[] = [];
beforeAll(async () => {
  redis = await startRedis();
  const other = await startRedis();
  gone = other.url;
  await other.stop();
});
afterAll(async () => {
  for (const connection of opened) connection.disconnect();
  await redis.stop();
});

/** Writers whose connections lead to these places, in this order. */
function writersTo(urls: readonly string[]): RedisWriters {
  const left = [...urls];
  const connect = (): RedisClient => {
    const connection = connectRedis(left.shift() ?? gone, { enableOfflineQueue: false });
    connection.on('error', () => {});
    opened.push(connection);
    return connection;
  };
  const redisUrl = redis.url;
  return new RedisWriters({
    connect,
    redisUrl,
    writes: new DurableWrites(redisUrl, 500),
    logger: recordingLogger(),
    deadlineMs: 1000,
  });
}

const run = (writers: RedisWriters): Promise<readonly unknown[]> =>
  writers.run(RECALL, ['{c}:meta', '{c}:log', '{c}:seen'], ['an epoch', SEEN_FOR_MS]);

it.each([[[0]], [[1]], [[2]], [[0, 2]]])(
  'writes where of three connections these stand: %j',
  async (standing) => {
    const writers = writersTo([0, 1, 2].map((index) => (standing.includes(index) ? redis.url : gone)));
    const { connections } = writers;
    await until(() => standing.every((index) => connections[index]?.status === 'ready'));
    const used = new Set<number>();
    for (let count = 0; count < 12; count += 1) used.add(connections.indexOf(writers.next()));
    expect([...used].sort()).toEqual(standing);
    for (let count = 0; count < 12; count += 1) expect(await run(writers)).toEqual([]);
  },
);

it('takes turns where all stand, and says so where none does', async () => {
  const all = writersTo([redis.url, redis.url, redis.url]);
  await until(() => all.connections.every(({ status }) => status === 'ready'));
  const order = Array.from({ length: 6 }, () => all.connections.indexOf(all.next()));
  expect(order).toEqual([0, 1, 2, 0, 1, 2]);
  await expect(run(writersTo([gone, gone, gone]))).rejects.toThrow(StoreUnavailableError);
});
