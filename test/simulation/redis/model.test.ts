import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FIND } from '../../../src/events/redis/find-script.ts';
import {
  APPEND,
  BEGIN,
  BOUNDS,
  HEAD,
  REACH,
  READ,
  RECALL,
  SEAL_KEY,
} from '../../../src/events/redis/scripts.ts';
import { UNINDEXED } from '../../../src/events/redis/search-scripts.ts';
import { MARK } from '../../../src/events/search.ts';
import { ANSWER, CHECK, CLAIM, RELEASE, RENEW, SENT, SENT_AGAIN } from '../../../src/money/redis/scripts.ts';
import type { Primary } from '../../../src/redis/replication.ts';
import { primaryIn } from '../../../src/redis/replication.ts';
import type { Script } from '../../../src/redis/script.ts';
import { type RedisServer as RealServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { Chance } from '../chance.ts';
import { Simulation } from '../core.ts';
import { LuaError } from './lua-runtime.ts';
import { RedisServer } from './server.ts';

let real: RealServer;

beforeAll(async () => {
  real = await startRedis();
});

afterAll(() => real.stop());

const model = (): RedisServer => new RedisServer(new Simulation('model'), 'model', true);

/** What the model replies; an error as its words. */
function ask(server: RedisServer, [command = '', ...args]: readonly string[]): unknown {
  try {
    return server.run(command, args);
  } catch (error) {
    if (error instanceof LuaError)
      return `error ${error.message.startsWith('attempt') ? 'ERR' : error.message.split(' ', 1)[0]}`;
    throw error;
  }
}

async function askReal(redis: Redis, commands: readonly (readonly string[])[]): Promise<unknown[]> {
  const pipeline = redis.pipeline();
  for (const [command = '', ...args] of commands) pipeline.call(command, ...args);
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, reply]) =>
    error === null ? reply : `error ${error.message.split(' ', 1)[0]}`,
  );
}

const KEYS = ['one', 'two', 'three'];
const WORDS = ['a', 'b', 'bb', 'c', 'é', ''];

/** A command of each kind that the gateway's scripts use, on few keys, so that types clash. */
function commandFrom(chance: Chance, number: number): readonly string[] {
  const key = chance.pick(KEYS);
  const word = () => chance.pick(WORDS);
  const id = () => `${chance.below(Math.max(2, number))}-${chance.below(3)}`;
  const bound = () => chance.pick(['-', '+', id(), `(${id()}`]);
  const lex = () => chance.pick(['-', '+', `[${word()}`, `(${word()}`]);
  return chance.pick<() => readonly string[]>([
    () => ['SET', key, word()],
    () => ['SET', key, word(), 'PX', '600000', 'NX'],
    () => ['SET', key, word(), 'XX'],
    () => ['GET', key],
    () => ['DEL', key],
    () => ['EXISTS', key],
    () => ['PEXPIRE', key, '600000'],
    () => ['HSET', key, word(), word(), word(), word()],
    () => ['HSETNX', key, word(), word()],
    () => ['HGET', key, word()],
    () => ['HMGET', key, word(), word()],
    () => ['HEXISTS', key, word()],
    () => ['HDEL', key, word(), word()],
    () => ['HINCRBY', key, 'count', String(chance.below(5))],
    () => ['SADD', key, word(), word()],
    () => ['SREM', key, word()],
    () => ['RPUSH', key, word(), word()],
    () => ['LPOP', key],
    () => ['LINDEX', key, String(chance.below(3))],
    () => ['LLEN', key],
    () => ['ZADD', key, '0', word(), '0', word()],
    () => ['ZREM', key, word()],
    () => ['ZRANGE', key, lex(), lex(), 'BYLEX', 'LIMIT', '0', '3'],
    () => ['ZRANGE', key, lex(), lex(), 'BYLEX', 'REV', 'LIMIT', '0', '3'],
    () => ['ZREMRANGEBYLEX', key, '-', lex()],
    () => ['XADD', key, `${number}-${chance.below(3)}`, 'field', word()],
    () => ['XADD', key, 'MAXLEN', '=', '4', `${number}-5`, 'field', word()],
    () => ['XLEN', key],
    () => ['XRANGE', key, bound(), bound(), 'COUNT', '3'],
    () => ['XREVRANGE', key, bound(), bound(), 'COUNT', '3'],
    () => ['XTRIM', key, 'MINID', '=', id()],
    () => ['XDEL', key, id()],
    () => ['ZSCORE', key, word()],
  ])();
}

it('the model replies to 12,000 random commands as Redis does', async () => {
  const chance = new Chance('commands');
  const server = model();
  await real.admin.flushall();
  const commands = Array.from({ length: 12_000 }, (_, number) => commandFrom(chance, number + 1));
  const replies = await askReal(real.admin, commands);
  for (const [index, command] of commands.entries()) {
    expect({ index, command, reply: ask(server, command) }).toEqual({
      index,
      command,
      reply: replies[index],
    });
  }
});

/** Ids that the servers make by their clocks are named by their order; times are left out. */
function leveled(reply: unknown, names: Map<string, string>): unknown {
  // How long ago a payment was sent is the servers' to know.
  if (Array.isArray(reply) && reply[0] === 'sent' && reply.length > 3)
    return leveled(['sent again', ...reply.slice(1, 3), ...reply.slice(4)], names);
  if (Array.isArray(reply)) return reply.map((item) => leveled(item, names));
  if (typeof reply !== 'string') return reply;
  return reply
    .replaceAll(/\b\d{13}-\d+,\d+,\d+\b/g, 'times of a payment')
    .replaceAll(/\b\d{13}-\d+\b/g, (id) => {
      const name = names.get(id) ?? `id ${names.size}`;
      names.set(id, name);
      return name;
    })
    .replaceAll(/\b\d{13}\b/g, 'time');
}

const run = (
  { lua }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): readonly string[] => ['EVAL', lua, String(keys.length), ...keys, ...args.map(String)];

/** A step of the event log or of the record of payments. */
function stepFrom(chance: Chance): readonly string[] {
  const log = ['{c}:meta', '{c}:log'];
  const index = ['{c}:index', '{c}:names', '{c}:indexed'];
  const seen = `{c}:seen:${chance.below(12)}`;
  const record = `pasarela:money:{c}:${chance.below(50)}`;
  const owner = chance.pick(['one', 'two']);
  const input = chance.pick(['input', 'input', 'other']);
  const asked = JSON.stringify([1, 'createMoneyOut', chance.pick(['', 'customer'])]);
  const event = (text: string) => [
    'contents',
    text,
    '{}',
    String(1 + chance.below(3)),
    `${MARK} digest${chance.below(3)}`,
  ];
  return chance.pick<() => readonly string[]>([
    () =>
      run(
        APPEND,
        [...log, ...index, seen],
        [
          'epoch',
          5,
          0,
          600_000,
          '{c}:events',
          'PUBLISH',
          chance.pick(['', 'other epoch']),
          ...event('{"e":1}'),
        ],
      ),
    () =>
      run(
        APPEND,
        [...log, ...index, seen, `${seen}b`],
        ['epoch', 8, 40, 600_000, '{c}:events', 'PUBLISH', '', ...event('{"e":2}'), ...event('{"e":33}')],
      ),
    () => run(RECALL, [...log, seen], ['epoch', 600_000]),
    () => run(BEGIN, log, ['epoch']),
    () => run(BOUNDS, log, []),
    () => run(HEAD, log, []),
    () => run(REACH, log, []),
    () => run(READ, log, ['XRANGE', '-', '+', '4']),
    () => run(SEAL_KEY, ['{c}:meta'], ['key']),
    () =>
      run(
        FIND,
        [...log, ...index],
        [
          chance.pick(['on', 'back']),
          '',
          chance.pick([1, 3]),
          chance.pick(['', 1, 2]),
          chance.pick(['', 2, 3]),
          chance.pick(['', 'digest1']),
        ],
      ),
    () => run(UNINDEXED, [...log, ...index], [10]),
    () =>
      run(
        CLAIM,
        [record, 'pasarela:money:{c}:twin:t', `pasarela:money:{c}:${chance.pick(['a', 'b', 'none'])}`],
        [
          owner,
          input,
          600_000,
          6_000_000,
          chance.pick(['me', 'me', 'you']),
          chance.below(2),
          asked,
          600_000_000,
          chance.below(2),
          chance.below(2),
        ],
      ),
    () =>
      run(
        SENT,
        [record, 'pasarela:money:{c}:ledger'],
        [
          owner,
          'body',
          6_000_000,
          0,
          0,
          'wall',
          'boot',
          5,
          '["sent"',
          ']',
          chance.pick(['', 'upstream']),
          '',
        ],
      ),
    () =>
      run(
        ANSWER,
        [record, `pasarela:money:{c}:transaction:${record.slice(-1)}`],
        [
          input,
          chance.pick(['done', 'refused', 'unknown']),
          200,
          'text',
          6_000_000,
          '["answered"',
          ']',
          chance.pick(['me', 'you']),
          chance.pick(['', asked]),
          chance.pick(['', owner]),
        ],
      ),
    () => run(RENEW, [record], [owner, 600_000]),
    () => run(SENT_AGAIN, [record], []),
    () => run(RELEASE, [record], [owner]),
    () => run(CHECK, ['pasarela:money:{c}:ledger'], [0, 0]),
  ])();
}

it('the scripts of the event log and of payments do in the model what they do in Redis', async () => {
  const chance = new Chance('steps');
  const server = model();
  await real.admin.flushall();
  const steps = Array.from({ length: 1_500 }, () => stepFrom(chance));
  const replies = await askReal(real.admin, steps);
  const [here, there] = [new Map<string, string>(), new Map<string, string>()];
  for (const [index, step] of steps.entries()) {
    // What a durable script says of the server is not the model's to know: see the test below.
    const own = (reply: unknown) =>
      Array.isArray(reply) && reply.length === 6 && typeof reply[1] === 'string' && reply[1].length === 40
        ? reply[0]
        : reply;
    expect({ index, step: step.slice(3), reply: leveled(own(ask(server, step)), here) }).toEqual({
      index,
      step: step.slice(3),
      reply: leveled(own(replies[index]), there),
    });
  }
});

it('replicas, WAIT and a failover are told of in the model as by Redis', async () => {
  await using other = await startRedis();
  const sim = new Simulation('replicas');
  const primary = new RedisServer(sim, 'primary', true);
  const replica = new RedisServer(sim, 'replica', false);
  const told = (info: string): Omit<Primary, 'replid' | 'former'> & { readonly wasPromoted: boolean } => {
    const { replicas, lately, syncs, former } = primaryIn(info);
    return { replicas, lately, syncs, wasPromoted: former !== '' };
  };
  const tell = (server: RedisServer) =>
    told(`${server.run('INFO', ['replication'])}${server.run('INFO', ['stats'])}`);
  const tellReal = async ({ admin }: RealServer) =>
    told(`${await admin.info('replication')}${await admin.info('stats')}`);
  expect(tell(primary)).toEqual(await tellReal(real));

  replica.follow(primary);
  await other.admin.replicaof('127.0.0.1', real.port);
  await until(async () => (await tellReal(real)).replicas === 1);
  expect(tell(primary)).toEqual({ ...(await tellReal(real)), syncs: 1 });

  primary.run('SET', ['key', 'kept']);
  await real.admin.set('key', 'kept');
  await sim.runUntil(1_000);
  expect(primary.acknowledged(primary.offset)).toBe(await real.admin.wait(1, 5_000));

  const refused = ask(replica, ['SET', 'key', 'no']);
  expect(refused).toBe(
    `error ${await other.admin.set('key', 'no').catch((error: Error) => error.message.split(' ', 1)[0])}`,
  );

  replica.promote(primary);
  await other.admin.replicaof('NO', 'ONE');
  expect({ ...tell(replica), key: ask(replica, ['GET', 'key']) }).toEqual({
    ...(await tellReal(other)),
    key: await other.admin.get('key'),
  });
});
