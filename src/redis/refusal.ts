import { Cluster, Command, type Redis } from 'ioredis';
import type { RedisClient } from './connection.ts';

/** A key that never exists. */
const KEY = 'pasarela:probe';
/** Errors that redirect to another node. They are no refusal, and are followed. */
const ELSEWHERE = /^(MOVED|ASK|TRYAGAIN) /;

/**
 * Resolves with why a primary refuses writes, in Redis' own words, such as `NOREPLICAS Not enough good replicas to write.`;
 * undefined if it takes them. No section of INFO tells that. So it is asked to write a key only if the key exists: Redis
 * refuses a writing command before it looks at the key, and otherwise changes nothing.
 *
 * @throws the error of the connection if there is no answer
 */
export async function refusalOf(redis: RedisClient, server: Redis): Promise<string | undefined> {
  const key = keyOn(redis, server);
  if (key === undefined) return undefined;
  try {
    await server.set(key, '', 'XX');
    return undefined;
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ReplyError') throw error;
    return ELSEWHERE.test(error.message) ? undefined : error.message;
  }
}

/** What a user lacks the right to, or another program's key stands in the way of, is refused in words that begin so. */
const LASTING = /^(NOPERM|ERR|WRONGTYPE) /;
const PLACE = / script: \w+, on @user_script.*$/s;

/**
 * Returns the words in which Redis has refused a command that it would refuse again; undefined for every other error, as those
 * that {@link refusalOf} finds, and those of a failover.
 */
export const lastingRefusal = ({ message }: Error): string | undefined =>
  LASTING.test(message) ? message.replace(PLACE, '').replace(/\.$/, '') : undefined;

/** Returns a key of a slot that the server owns; undefined for a node of a Cluster that owns none. */
function keyOn(redis: RedisClient, server: Redis): string | undefined {
  if (!(redis instanceof Cluster)) return KEY;
  const own = `${server.options.host}:${server.options.port}`;
  if (!redis.slots.some(([address]) => address === own)) return undefined;
  for (let number = 0; ; number += 1) {
    const key = `${KEY}:${number}`;
    if (redis.slots[new Command('get', [key]).getSlot()]?.[0] === own) return key;
  }
}
