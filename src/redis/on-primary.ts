import type { Redis } from 'ioredis';
import { clock } from '../common/clock.ts';
import type { RedisClient } from './connection.ts';

/**
 * How long a new connection that leads to no primary either is left as it is, in milliseconds. The time doubles with each
 * such connection.
 */
const AGAIN_AFTER_MS = 5_000;
const AGAIN_AFTER_AT_MOST_MS = 30_000;

/** Connections that led to no primary at the last look: when they may be made again, and how long they wait after that. */
const astray = new WeakMap<RedisClient, { at: number; waitMs: number }>();

/**
 * Returns what a server says of its replication, if it is a primary. If it is none, makes the connection again, to the server
 * that has taken its place: a demoted server keeps its connections, and goes on answering reads with old data once it no
 * longer follows. If the address leads to a replica again, that is done ever less often. A Cluster finds out by itself which
 * server owns a slot.
 *
 * @param client whose connection to the server it is
 * @returns undefined if it is no primary. Rejects if it does not answer.
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
