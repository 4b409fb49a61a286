import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SEEN_FOR_MS } from '../../../src/events/entry.ts';
import { StoreUnavailableError, UnreplicatedError } from '../../../src/events/errors.ts';
import { openEventLog } from '../../../src/events/open.ts';
import { APPEND, historyOf, RECALL } from '../../../src/events/redis/scripts.ts';
import { RedisWriters } from '../../../src/events/redis/writers.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/connection.ts';
import { DurableWrites, UnacknowledgedError } from '../../../src/redis/durable-write.ts';
import type { Script } from '../../../src/redis/script.ts';
import { available, moneyIn, recordingLogger } from '../../helpers/events.ts';
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
function writersTo(urls: readonly string[], writes = new DurableWrites(redis.url, 500)): RedisWriters {
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
    writes,
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
    expect([await writers.check(), writers.problems]).toEqual([true, []]);
  },
);

it('takes turns where all stand, and says so where none does', async () => {
  const all = writersTo([redis.url, redis.url, redis.url]);
  await until(() => all.connections.every(({ status }) => status === 'ready'));
  const order = Array.from({ length: 6 }, () => all.connections.indexOf(all.next()));
  expect(order).toEqual([0, 1, 2, 0, 1, 2]);
  await expect(run(writersTo([gone, gone, gone]))).rejects.toThrow(StoreUnavailableError);
});

it('a write that replicas lack is told as such where it has appended, to a server that names its history', async () => {
  const lacking = async (durable: Script, replid: string): Promise<unknown> => {
    const writes = new DurableWrites(redis.url, 500);
    writes.write = async () => {
      throw new UnacknowledgedError('1 replica should have this', replid, ['an epoch', 0, [1, '1-0']]);
    };
    const keys = ['{c}:meta', '{c}:log', '{c}:seen'];
    return writersTo([redis.url], writes)
      .run(durable, keys, [])
      .catch((error: unknown) => error);
  };
  const told = await lacking(APPEND, 'a1');
  expect(told).toBeInstanceOf(UnreplicatedError);
  expect(told).toHaveProperty('history', historyOf('a1', 'an epoch'));
  for (const [durable, replid] of [[APPEND, ''] as const, [RECALL, 'a1'] as const]) {
    const error = await lacking(durable, replid);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).not.toBeInstanceOf(UnreplicatedError);
  }
});

it.each([
  ['script', ['&*', '-@scripting'], /^Redis refuses events: NOPERM .*'evalsha'/],
  ['command of a script', ['&*', '-xadd'], /^Redis refuses events: .*run .*command/],
  ['key of a client', ['&*', 'resetkeys', '~pasarela:*'], /^Redis refuses events: NOPERM .*key/],
  // Redis lets a new user have none.
  ['channel', ['resetchannels'], /^Redis refuses the channels of events: NOPERM .*channel/],
])(
  'a user of Redis without the right to a %s is told of until the right is given',
  async (_what, rules, words) => {
    const user = 'careful';
    await redis.admin.acl('SETUSER', user, 'reset', 'on', '>password', '~*', '+@all', ...rules);
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-rights-'));
    const logger = recordingLogger();
    const redisUrl = redis.url.replace('//', `//${user}:password@`);
    const log = await openEventLog({ redisUrl, dataDir, retention: 10, logger });
    const follow = () => log.follow('c').then((events) => events.return?.());
    await available(log);
    expect(await log.append('c', moneyIn())).toMatchObject({ answer: { status: 201 }, cursor: null });
    await follow().catch(() => undefined);
    await until(async () => {
      const { available: isAvailable, writable, reasons = [] } = await log.health();
      return !isAvailable && writable && reasons.length === 1 && words.test(reasons[0] ?? '');
    });
    await redis.admin.acl('SETUSER', user, '~*', '&*', '+@all');
    await until(async () => (await log.health()).spooled === 0);
    await follow();
    expect(await log.health()).toMatchObject({ available: true, writable: true, spooled: 0 });
    const told = logger.lines.map(({ message }) => message).filter((text) => text.includes('no payment'));
    expect(told).toEqual([]);
    await log.stop();
    await rm(dataDir, { recursive: true });
  },
);
