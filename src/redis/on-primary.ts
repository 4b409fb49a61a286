import type { Redis } from 'ioredis';
import type { RedisClient } from './connection.ts';

/**
 * What a server says of its replication, where it is a primary. A connection to one Redis whose server is none is made anew, to the
 * one that has taken its place: a server that was demoted keeps its connections where nobody ends them, and goes on answering reads,
 * old ones once it no longer follows. A Cluster finds out by itself who owns a slot.
 *
 * @param client whose connection to the server it is
 * @returns undefined where it is no primary. Rejects where it does not answer.
 */
export async function primaryInfo(server: Redis, client: RedisClient): Promise<string | undefined> {
  const info = await server.info('replication');
  if (/^role:master/m.test(info)) return info;
  if (client === server) server.disconnect(true);
  return undefined;
}
