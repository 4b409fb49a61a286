import type { Redis } from 'ioredis';
import { clock } from '../common/clock.ts';
import type { RedisClient } from './connection.ts';

/** How long a connection that was made anew, and leads to no primary again, is left as it is: each time twice as long. In milliseconds. */
const AGAIN_AFTER_MS = 5_000;
const AGAIN_AFTER_AT_MOST_MS = 30_000;

/** Connections that led to no primary when they were looked at last: when they may be made anew, and how long they wait after that. */
const astray = new WeakMap<RedisClient, { at: number; waitMs: number }>();

/**
 * What a server says of its replication, where it is a primary. A connection to one Redis whose server is none is made anew, to the
 * one that has taken its place: a server that was demoted keeps its connections where nobody ends them, and goes on answering reads,
 * old ones once it no longer follows. Where the address leads to a replica again, that is done less and less often. A Cluster finds out
 * by itself who owns a slot.
 *
 * @param client whose connection to the server it is
 * @returns undefined where it is no primary. Rejects where it does not answer.
 */
export async function primaryInfo(server: Redis, client: RedisClient): Promise<string | undefined> {
  const info = await server.info('replication');
  if (/^role:master/m.test(info)) {
    astray.delete(client);
    return info;
  }
  if (client === server) connectAgain(server);
  return undefined;
}

function connectAgain(server: Redis): void {
  const now = clock.monotonic();
  const { at, waitMs } = astray.get(server) ?? { at: now, waitMs: AGAIN_AFTER_MS };
  if (now < at) return;
  astray.set(server, { at: now + waitMs, waitMs: Math.min(2 * waitMs, AGAIN_AFTER_AT_MOST_MS) });
  server.disconnect(true);
}
