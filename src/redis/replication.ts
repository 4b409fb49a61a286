import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from './connection.ts';

/**
 * How long a primary that had replicas must have been without one before it is believed that it is just alone, in
 * milliseconds. Sentinels and Clusters need less than that to tell one that they have replaced (Sentinel: a failover, and
 * eight seconds until it makes a replica of the old primary).
 */
export const ALONE_FOR_MS = 30_000;

/** More histories than any group of servers goes through in a while. */
const MOST_HISTORIES = 64;

/** What a primary says of its copies. */
export interface Primary {
  /** Names the history of its data; a replica that is promoted begins another. */
  readonly replid: string;
  /** Replicas that are in step. One that is still copying does not count. */
  readonly replicas: number;
}

/**
 * What a write on a primary is worth: `wait` until a replica has it; it is `enough`; or it is `too-soon` to tell.
 *
 * A primary that was cut off, or stood still, while a replica took its place does not know it yet: it sees that its
 * replicas are gone, and takes writes that will be thrown away. It looks just like one whose replicas have died.
 */
export class Replication {
  readonly #now: () => number;
  readonly #aloneSince = new Map<string, number>();
  #hadReplicas = false;

  /** @param now in milliseconds, by a clock that only goes forward */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  judge({ replid, replicas }: Primary): 'wait' | 'enough' | 'too-soon' {
    if (replicas > 0) {
      this.#hadReplicas = true;
      this.#aloneSince.delete(replid);
      return 'wait';
    }
    if (!this.#hadReplicas) return 'enough';
    const since = this.#aloneSince.get(replid);
    if (since !== undefined) return this.#now() - since >= ALONE_FOR_MS ? 'enough' : 'too-soon';
    if (this.#aloneSince.size >= MOST_HISTORIES) this.#aloneSince.clear();
    this.#aloneSince.set(replid, this.#now());
    return 'too-soon';
  }
}

/** Asks every primary for its copies. Rejects when one does not answer. */
export async function primariesOf(redis: RedisClient): Promise<readonly Primary[]> {
  const servers: readonly Redis[] = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return Promise.all(servers.map(async (server) => primaryIn(await server.info('replication'))));
}

/** Reads the text of INFO replication. */
export function primaryIn(info: string): Primary {
  return {
    replid: /^master_replid:(\w+)/m.exec(info)?.[1] ?? '',
    replicas: info.match(/^slave\d+:.*state=online/gm)?.length ?? 0,
  };
}
