import { once } from 'node:events';
import type { Logger } from '../common/logger.ts';
import { connectRedis, type RedisClient } from '../redis/connection.ts';
import { primariesOf, Replication } from '../redis/replication.ts';
import type { RecordName } from './intent.ts';
import {
  type Claimed,
  type MoneyRecords,
  RETENTION_MS,
  type StoredAnswer,
  StoreUnavailableError,
} from './record.ts';

/** A step that has no reply by then has failed, in ms. */
const COMMAND_TIMEOUT_MS = 2_000;
/** How long `sent` waits for a replica, in ms. */
const REPLICA_TIMEOUT_MS = 1_000;
/** How often it is looked which primaries have replicas, in ms. */
const LOOK_EVERY_MS = 10_000;

/**
 * KEYS: record. ARGV: owner, input hash, now, lease until, retention.
 * Returns a state of `Claimed` and the fields that belong to it.
 */
const CLAIM = `
  local state, owner, lease, input = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'lease', 'input'))
  local free = owner == ARGV[1] or (lease and tonumber(lease) <= tonumber(ARGV[3]))
  if not state or (state == 'claimed' and free) then
    redis.call('HSET', KEYS[1], 'state', 'claimed', 'owner', ARGV[1], 'input', ARGV[2], 'lease', ARGV[4])
    redis.call('PEXPIRE', KEYS[1], ARGV[5])
    return {'claimed'}
  end
  if input ~= ARGV[2] then return {'other-input'} end
  if state == 'answered' then
    return {'answered', unpack(redis.call('HMGET', KEYS[1], 'kind', 'status', 'text'))}
  end
  if state == 'claimed' or not free then return {'busy'} end
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'lease', ARGV[4])
  return {'sent', unpack(redis.call('HMGET', KEYS[1], 'body', 'sentAt'))}`;

/** What SENT returns when the record is not the owner's. */
const NOT_THE_OWNER = -1;

/**
 * KEYS: record. ARGV: owner, body, sent at, retention.
 * Returns how many replicas follow this Redis, and its replication id, or NOT_THE_OWNER. One that is still copying does
 * not count: it may take long, and would hold up every payment. Where INFO is forbidden none counts.
 */
const SENT = `
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner ~= ARGV[1] or state == 'answered' then return ${NOT_THE_OWNER} end
  redis.call('HSET', KEYS[1], 'state', 'sent', 'body', ARGV[2], 'sentAt', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  local replicas, replid = 0, ''
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'string' then
    for _ in info:gmatch('state=online') do replicas = replicas + 1 end
    replid = info:match('master_replid:(%w+)') or ''
  end
  return {replicas, replid}`;

/** KEYS: record. ARGV: owner, lease until. */
const RENEW = `
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then redis.call('HSET', KEYS[1], 'lease', ARGV[2]) end`;

/** KEYS: record. ARGV: input hash, kind, status, text, retention. */
const ANSWER = `
  local state, input, kind = unpack(redis.call('HMGET', KEYS[1], 'state', 'input', 'kind'))
  if (state == 'answered' and kind ~= 'unknown') or (state and input ~= ARGV[1]) then return end
  redis.call('HSET', KEYS[1], 'state', 'answered', 'input', ARGV[1], 'kind', ARGV[2], 'status', ARGV[3], 'text', ARGV[4])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])`;

/** KEYS: record. ARGV: owner. */
const RELEASE = `
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then redis.call('DEL', KEYS[1]) end`;

/**
 * The record in Redis, shared by all processes of the gateway. One hash per intent, under the hash tag of its client;
 * one script per step, so that each step happens whole or not at all.
 *
 * Resolves once connected; without a connection in {@link COMMAND_TIMEOUT_MS} it resolves all the same, and every step
 * fails until there is one: a gateway without Redis can still read.
 *
 * @param url as {@link connectRedis} takes it.
 */
export async function openRedisRecords(url: string, logger: Logger): Promise<MoneyRecords> {
  const redis = connectRedis(url, {
    // A step that cannot run now must fail now: later, its caller has been told that nothing moved.
    enableOfflineQueue: false,
    // What was cut off in mid-air is sent once more on the next connection: steps may be repeated.
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: COMMAND_TIMEOUT_MS,
    connectionName: 'pasarela-money',
  });
  redis.on('error', (err: Error) => logger.warn({ err }, 'the Redis of the payment records is away'));
  await firstConnection(redis);

  const replication = new Replication();
  const look = async (): Promise<void> => {
    // Without an answer what was known last stands.
    for (const primary of await primariesOf(redis).catch(() => [])) replication.judge(primary);
  };
  const looking = setInterval(look, LOOK_EVERY_MS).unref();
  await look();

  const run = async (step: string, script: string, name: RecordName, ...args: (string | number)[]) => {
    try {
      return await redis.eval(script, 1, keyOf(name), ...args);
    } catch (cause) {
      throw unavailable(step, cause);
    }
  };

  return {
    claim: async (name, { owner, inputHash, now, leaseUntil }) =>
      claimed(await run('claim', CLAIM, name, owner, inputHash, now, leaseUntil, RETENTION_MS)),
    markSent: async (name, owner, { body, sentAt }) => {
      const reply = await run('sent', SENT, name, owner, body, sentAt, RETENTION_MS);
      if (reply === NOT_THE_OWNER) return false;
      // SENT returns a number and a string.
      const [replicas, replid] = reply as [number, string];
      const worth = replication.judge({ replicas, replid });
      if (worth === 'enough') return true;
      if (worth === 'wait') return onAReplica(redis, keyOf(name), [owner, body, sentAt, RETENTION_MS]);
      throw unavailable('sent, on a replica', new Error('the replicas of this Redis have only just gone'));
    },
    renew: async (name, owner, leaseUntil) => {
      await run('renew', RENEW, name, owner, leaseUntil);
    },
    answer: async (name, inputHash, { kind, status, text }) => {
      await run('answer', ANSWER, name, inputHash, kind, status, text, RETENTION_MS);
    },
    release: async (name, owner) => {
      await run('release', RELEASE, name, owner);
    },
    stop: async () => {
      clearInterval(looking);
      redis.disconnect();
    },
  };
}

/**
 * Waits until a replica has what SENT wrote. WAIT speaks of the writes of its own connection, and of the node at its other
 * end: so SENT runs once more in front of it, in case either has changed since.
 */
async function onAReplica(redis: RedisClient, key: string, sent: (string | number)[]): Promise<boolean> {
  const replies = await redis
    .pipeline()
    .eval(SENT, 1, key, ...sent)
    .wait(1, REPLICA_TIMEOUT_MS)
    .exec()
    .catch((cause: unknown) => {
      throw unavailable('sent, on a replica', cause);
    });
  const [[sentError, sentReply] = [], [waitError, acknowledged] = []] = replies ?? [];
  if (sentError === null && sentReply === NOT_THE_OWNER) return false;
  if (sentError === null && waitError === null && Number(acknowledged) > 0) return true;
  const cause =
    sentError ?? waitError ?? new Error(`no replica acknowledged within ${REPLICA_TIMEOUT_MS} ms`);
  throw unavailable('sent, on a replica', cause);
}

/**
 * ioredis notes on an error the command with all its arguments: here the text of a payment or of its answer, which no log
 * may show.
 */
function unavailable(step: string, cause: unknown): StoreUnavailableError {
  if (cause instanceof Error) Reflect.deleteProperty(cause, 'command');
  return new StoreUnavailableError(step, cause);
}

/** The client's id is the hash tag, so that a Cluster keeps a client's records together. */
function keyOf({ clientId, hash }: RecordName): string {
  return `pasarela:money:{${clientId}}:${hash}`;
}

function claimed(reply: unknown): Claimed {
  // CLAIM returns an array of strings, a state first.
  const [state, ...rest] = reply as [Claimed['state'], ...string[]];
  switch (state) {
    case 'sent':
      return { state, body: String(rest[0]), sentAt: Number(rest[1]) };
    case 'answered':
      return { state, answer: storedAnswer(rest) };
    default:
      return { state };
  }
}

function storedAnswer([kind, status, text]: string[]): StoredAnswer {
  // ANSWER is only ever given the fields of a StoredAnswer.
  return { kind: kind as StoredAnswer['kind'], status: Number(status), text: String(text) };
}

async function firstConnection(redis: RedisClient): Promise<void> {
  const gaveUp = AbortSignal.timeout(COMMAND_TIMEOUT_MS);
  while (redis.status !== 'ready' && !gaveUp.aborted) {
    // `error` would reject; it is logged where the connection is made, and is no reason to stop waiting.
    await once(redis, 'ready', { signal: gaveUp }).catch(() => undefined);
  }
}
