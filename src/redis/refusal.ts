import { Cluster, Command, type Redis } from 'ioredis';
import type { RedisClient } from './connection.ts';

/** A key that never exists. */
const KEY = 'pasarela:probe';
/** A slot belongs to another node, or is on its way: that is no refusal, and is followed. */
const ELSEWHERE = /^(MOVED|ASK|TRYAGAIN) /;

/**
 * Why a primary takes no writes, in Redis' own words, such as `NOREPLICAS Not enough good replicas to write.`; undefined where it
 * takes them. No section of INFO tells that. It is asked to write a key only if that exists: Redis refuses a command that writes
 * before it looks at the key, and changes nothing otherwise.
 *
 * @throws what the connection fails with, where there is no answer
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

/** A key of a slot that the server owns; undefined for a node of a Cluster that owns none. */
function keyOn(redis: RedisClient, server: Redis): string | undefined {
  if (!(redis instanceof Cluster)) return KEY;
  const own = `${server.options.host}:${server.options.port}`;
  if (!redis.slots.some(([address]) => address === own)) return undefined;
  for (let number = 0; ; number += 1) {
    const key = `${KEY}:${number}`;
    if (redis.slots[new Command('get', [key]).getSlot()]?.[0] === own) return key;
  }
}
