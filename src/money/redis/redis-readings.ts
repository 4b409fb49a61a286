import type { RedisClient } from '../../redis/connection.ts';
import { durableScript } from '../../redis/durable-script.ts';
import type { DurableWrites } from '../../redis/durable-write.ts';
import { runScript, script } from '../../redis/script.ts';
import type { TakenReadings } from '../reconciling/reading-store.ts';
import { keysOf } from './keys.ts';
import { NOW } from './time.ts';

/** How long readings are kept after they were taken or kept last, in ms. A client whose balances nobody compares leaves none. */
const READINGS_MS = 30 * 24 * 60 * 60 * 1000;

/** KEYS: the readings of a client. ARGV: owner, lease in ms. Returns a list of what is kept, or nothing. */
const TAKE = script(`${NOW}
  local due, text = unpack(redis.call('HMGET', KEYS[1], 'due', 'text'))
  if due and tonumber(due) > now then return end
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'due', string.format('%.0f', now + ARGV[2]))
  redis.call('PEXPIRE', KEYS[1], ${READINGS_MS})
  if not text then return {} end
  return {text}`);

/** KEYS: likewise. ARGV: owner, when they are due in ms, then what is kept from now on, where that changes. Returns 1 where they were the owner's. */
const KEEP = durableScript(`${NOW}
  if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
  redis.call('HSET', KEYS[1], 'due', string.format('%.0f', now + ARGV[2]))
  if ARGV[3] then redis.call('HSET', KEYS[1], 'text', ARGV[3]) end
  redis.call('PEXPIRE', KEYS[1], ${READINGS_MS})
  return 1`);

/** The readings of balances beside the records of `openRedisRecords`. */
export class RedisReadings {
  readonly #redis: RedisClient;
  readonly #writes: DurableWrites;

  constructor(redis: RedisClient, writes: DurableWrites) {
    this.#redis = redis;
    this.#writes = writes;
  }

  async take(clientId: string, owner: string, leaseMs: number): Promise<TakenReadings | undefined> {
    const reply = await runScript(this.#redis, TAKE, [readingsOf(clientId)], [owner, leaseMs]);
    if (!Array.isArray(reply)) return undefined;
    const [text]: unknown[] = reply;
    return { text: typeof text === 'string' ? text : undefined };
  }

  async keep(clientId: string, owner: string, text: string | undefined, dueMs: number): Promise<boolean> {
    const args = [owner, Math.round(dueMs), ...(text === undefined ? [] : [text])];
    return (await this.#writes.write(this.#redis, KEEP, [readingsOf(clientId)], args)) === 1;
  }
}

const readingsOf = (clientId: string): string => `${keysOf(clientId)}readings`;
