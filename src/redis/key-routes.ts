import { Cluster, Command, type Redis } from 'ioredis';
import { clock } from '../common/clock.ts';
import type { RedisClient } from './connection.ts';

/** The least pause between two questions which server owns which slots, in milliseconds. */
const REFRESH_AFTER_MS = 250;

/** The server to which a write goes. */
export interface KeyRoute {
  readonly server: Redis;
  /** True if the slot is moving to this server, which then needs `ASKING` before the command. */
  readonly asking: boolean;
}

/** The server to write to next. `reply` is the result, if the write was made already because its slot is just moving. */
export interface Followed {
  readonly route: KeyRoute;
  readonly reply: unknown;
}

/** Finds the server for a key, in a Cluster also while slots move. */
export class KeyRoutes {
  readonly #refreshes = new WeakMap<Cluster, { readonly at: number; readonly done: Promise<void> }>();

  /** @throws {Error} if no server is known to own the key's slot */
  async route(redis: RedisClient, key: string): Promise<KeyRoute> {
    if (!(redis instanceof Cluster)) return { server: redis, asking: false };
    const server = nodeOf(redis, key);
    if (server !== undefined) return { server, asking: false };
    await this.#refresh(redis);
    const found = nodeOf(redis, key);
    if (found === undefined) throw new Error('no node of the Cluster is known to own the slot');
    return { server: found, asking: false };
  }

  /**
   * Returns where to write after an error. Throws the error if the slot has not moved.
   *
   * @param run writes through the client, which follows a slot that is just moving
   */
  async followed(
    redis: RedisClient,
    from: Redis,
    key: string,
    error: unknown,
    run: () => Promise<unknown>,
  ): Promise<Followed> {
    if (!(redis instanceof Cluster)) throw error;
    const [kind, , address] = error instanceof Error ? error.message.split(' ') : [];
    const named = () => redis.nodes().find((node) => addressOf(node) === address);
    if (kind === 'ASK') {
      // ioredis follows the redirection of a single command, and knows the node from then on.
      const reply = await run();
      const server = named();
      if (server === undefined) throw error;
      return { reply, route: { server, asking: true } };
    }
    if (kind === 'MOVED') {
      await refreshed(redis);
      // The node that was asked may not know of the move yet.
      const server = named() ?? nodeOf(redis, key);
      if (server === undefined) throw error;
      return { reply: undefined, route: { server, asking: false } };
    }
    // After any error the slot may have another owner. ioredis learns of that only from single commands.
    await this.#refresh(redis);
    const server = nodeOf(redis, key);
    if (server === undefined || server === from) throw error;
    return { reply: undefined, route: { server, asking: false } };
  }

  /** Resolves with true if the client is connected to an owner of every slot; always true for one Redis. */
  async coversAllSlots(redis: RedisClient): Promise<boolean> {
    if (!(redis instanceof Cluster)) return true;
    if (hasAllOwners(redis)) return true;
    // A replica may have taken over, which ioredis does not notice by itself.
    await this.#refresh(redis);
    return hasAllOwners(redis);
  }

  /** Asks the Cluster which server owns which slots, unless that was done just now. */
  #refresh(cluster: Cluster): Promise<void> {
    const last = this.#refreshes.get(cluster);
    if (last !== undefined && clock.monotonic() - last.at < REFRESH_AFTER_MS) return last.done;
    const done = refreshed(cluster);
    this.#refreshes.set(cluster, { at: clock.monotonic(), done });
    return done;
  }
}

function hasAllOwners(cluster: Cluster): boolean {
  const connected = new Set(cluster.nodes().map(addressOf));
  return cluster.slots.every(([address]) => address !== undefined && connected.has(address));
}

/** Returns the node that owns a key's slot, as far as the client knows. */
function nodeOf(cluster: Cluster, key: string): Redis | undefined {
  const [address] = cluster.slots[new Command('get', [key]).getSlot()] ?? [];
  return cluster.nodes().find((node) => addressOf(node) === address);
}

function addressOf({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}

/**
 * Resolves once the client has asked, whatever the answer. Where no node that it knows is there, it connects anew, by the names in
 * `REDIS_URL`: ioredis does so only once it has lost every connection, and to replicas it has none that it could lose.
 */
function refreshed(cluster: Cluster): Promise<void> {
  return new Promise((resolve) => {
    cluster.refreshSlotsCache((error) => {
      const isLost = cluster.nodes().every(({ status }) => status !== 'ready');
      if (error != null && cluster.status === 'ready' && isLost) cluster.disconnect(true);
      resolve();
    });
  });
}
