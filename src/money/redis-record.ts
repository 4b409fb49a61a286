import { once } from 'node:events';
import type { Logger } from '../common/logger.ts';
import { connectRedis, type RedisClient } from '../redis/connection.ts';
import { DurableWrites, durableScript } from '../redis/durable-write.ts';
import { runScript, type Script, script, withoutCommand } from '../redis/script.ts';

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
/** How long `sent` waits for the replicas, in ms. */
const REPLICA_TIMEOUT_MS = 1_000;
/** How often it is looked which primaries have which replicas, in ms. */
const LOOK_EVERY_MS = 10_000;

/** What time it is by this Redis, in ms since the epoch: one clock for all processes. */
const NOW = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * KEYS: record. ARGV: owner, input hash, lease, retention; both in ms.
 * Returns a state of `Claimed` and the fields that belong to it.
 */
const CLAIM = script(`${NOW}
  local state, owner, lease, input = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'lease', 'input'))
  local free = owner == ARGV[1] or (lease and tonumber(lease) <= now)
  local untilThen = string.format('%.0f', now + ARGV[3])
  if not state or (state == 'claimed' and free) then
    redis.call('HSET', KEYS[1], 'state', 'claimed', 'owner', ARGV[1], 'input', ARGV[2], 'lease', untilThen)
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    return {'claimed'}
  end
  if input ~= ARGV[2] then return {'other-input'} end
  if state == 'answered' then
    return {'answered', unpack(redis.call('HMGET', KEYS[1], 'kind', 'status', 'text'))}
  end
  if state == 'claimed' or not free then return {'busy'} end
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'lease', untilThen)
  local body, sentAt = unpack(redis.call('HMGET', KEYS[1], 'body', 'sentAt'))
  return {'sent', body, sentAt, string.format('%.0f', now - sentAt)}`);

/** KEYS: record. ARGV: owner, body, retention. Returns 1, or 0 when the record is not the owner's. */
const SENT = durableScript(`${NOW}
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner ~= ARGV[1] or state == 'answered' then return 0 end
  redis.call('HSET', KEYS[1], 'state', 'sent', 'body', ARGV[2], 'sentAt', string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 1`);

/** KEYS: record. ARGV: owner, lease in ms. */
const RENEW = script(`${NOW}
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then
    redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + ARGV[2]))
  end`);

/** KEYS: record. ARGV: input hash, kind, status, text, retention. */
const ANSWER = script(`
  local state, input, kind = unpack(redis.call('HMGET', KEYS[1], 'state', 'input', 'kind'))
  if (state == 'answered' and kind ~= 'unknown') or (state and input ~= ARGV[1]) then return end
  redis.call('HSET', KEYS[1], 'state', 'answered', 'input', ARGV[1], 'kind', ARGV[2], 'status', ARGV[3], 'text', ARGV[4])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])`);

/** KEYS: record. ARGV: owner. */
const RELEASE = script(`
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then redis.call('DEL', KEYS[1]) end`);

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

  const writes = new DurableWrites(url, REPLICA_TIMEOUT_MS);
  // Without an answer what was known last stands.
  const look = (): Promise<void> => writes.look(redis).catch(() => {});
  const looking = setInterval(look, LOOK_EVERY_MS).unref();
  await look();

  const run = async (step: string, what: Script, name: RecordName, ...args: (string | number)[]) => {
    try {
      return await runScript(redis, what, [keyOf(name)], args);
    } catch (cause) {
      throw unavailable(step, cause);
    }
  };

  return {
    claim: async (name, { owner, inputHash, leaseMs }) =>
      claimed(await run('claim', CLAIM, name, owner, inputHash, leaseMs, RETENTION_MS)),
    markSent: async (name, owner, body) => {
      try {
        return (await writes.write(redis, SENT, [keyOf(name)], [owner, body, RETENTION_MS])) === 1;
      } catch (cause) {
        throw unavailable('sent', cause);
      }
    },
    renew: async (name, owner, leaseMs) => {
      await run('renew', RENEW, name, owner, leaseMs);
    },
    answer: async (name, inputHash, { kind, status, text }) => {
      await run('answer', ANSWER, name, inputHash, kind, status, text, RETENTION_MS);
    },
    release: async (name, owner) => {
      await run('release', RELEASE, name, owner);
    },
    isAvailable: () =>
      writes.look(redis).then(
        () => writes.isDurable,
        () => false,
      ),
    stop: async () => {
      clearInterval(looking);
      redis.disconnect();
    },
  };
}

function unavailable(step: string, cause: unknown): StoreUnavailableError {
  return new StoreUnavailableError(step, withoutCommand(cause));
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
      return { state, body: String(rest[0]), sentAt: Number(rest[1]), ageMs: Number(rest[2]) };
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
