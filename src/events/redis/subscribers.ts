import type { Cluster, Redis } from 'ioredis';
import type { RedisClient } from '../../redis/connection.ts';
import type { RedisNode } from '../../redis/url.ts';
import { list, word } from './reply.ts';

/** What happens on the connections that channels are subscribed on. */
export interface SubscriberEvents {
  message(channel: string, text: string): void;
  /** A connection is up: what could not be subscribed may be now. */
  ready(): void;
  /** Channels that were subscribed on this connection may be no longer. */
  lost(connection: RedisClient): void;
}

/** The connections of this process that channels are subscribed on. */
export interface Subscribers {
  readonly connections: readonly RedisClient[];
  /** Whether subscribing could succeed now. */
  readonly isReady: boolean;
  /** Resolves with the connection that carries the channel from now on. Subscribing twice does no harm. */
  subscribe(channel: string): Promise<RedisClient>;
  /** Never fails: where a connection is gone, so are its subscriptions. */
  unsubscribe(channel: string, connection: RedisClient): void;
  /** Called now and then: ends connections that carried nothing the last time either. */
  prune(used: ReadonlySet<RedisClient>): void;
  stop(): void;
}

/** All channels on one connection, where every message passes through one server. */
export function subscribeOn(connection: RedisClient, events: SubscriberEvents): Subscribers {
  connection
    .on('message', events.message)
    .on('ready', events.ready)
    .on('close', () => events.lost(connection));
  return {
    connections: [connection],
    get isReady() {
      return connection.status === 'ready';
    },
    async subscribe(channel) {
      await connection.subscribe(channel);
      return connection;
    },
    unsubscribe(channel) {
      connection.unsubscribe(channel).catch(() => {});
    },
    prune() {},
    stop: () => connection.disconnect(),
  };
}

/** The slots of one primary. */
interface Shard extends RedisNode {
  readonly first: number;
  readonly last: number;
}

/**
 * Each channel on a connection to the primary that owns its slot, as sharded Pub/Sub wants it.
 *
 * ioredis would do that itself (`shardedSubscribers`), but may stop for good when the whole Cluster is away at an unlucky
 * moment: it waits for a connection that it has ended itself.
 */
export class ShardSubscribers implements Subscribers {
  readonly isReady = true;
  readonly #cluster: Cluster;
  readonly #connect: (node: RedisNode) => Redis;
  readonly #events: SubscriberEvents;
  readonly #connections = new Map<string, Redis>();
  readonly #idle = new WeakSet<RedisClient>();
  /** Running now; channels that are subscribed at once share the answer. */
  #asked: Promise<readonly Shard[]> | undefined;

  /** @param cluster is asked who owns what */
  constructor(cluster: Cluster, connect: (node: RedisNode) => Redis, events: SubscriberEvents) {
    this.#cluster = cluster;
    this.#connect = connect;
    this.#events = events;
  }

  get connections(): readonly RedisClient[] {
    return [...this.#connections.values()];
  }

  async subscribe(channel: string): Promise<RedisClient> {
    const [slot, shards] = await Promise.all([this.#cluster.cluster('KEYSLOT', channel), this.#shards()]);
    const owner = shards.find(({ first, last }) => first <= slot && slot <= last);
    if (owner === undefined) throw new Error(`no node of the Cluster owns slot ${slot}`);
    const connection = this.#connection(owner);
    this.#idle.delete(connection);
    await connection.ssubscribe(channel);
    return connection;
  }

  unsubscribe(channel: string, connection: RedisClient): void {
    connection.sunsubscribe(channel).catch(() => {});
  }

  prune(used: ReadonlySet<RedisClient>): void {
    for (const [address, connection] of this.#connections) {
      if (used.has(connection)) continue;
      // One that is being subscribed on at this moment carries nothing yet.
      if (!this.#idle.has(connection)) {
        this.#idle.add(connection);
        continue;
      }
      this.#connections.delete(address);
      connection.disconnect();
    }
  }

  stop(): void {
    for (const connection of this.#connections.values()) connection.disconnect();
  }

  #connection({ host, port }: RedisNode): Redis {
    const address = `${host}:${port}`;
    const known = this.#connections.get(address);
    if (known !== undefined) return known;
    const connection = this.#connect({ host, port });
    const lost = (): void => this.#events.lost(connection);
    connection
      .on('smessage', this.#events.message)
      .on('ready', this.#events.ready)
      .on('close', lost)
      // The server has ended subscriptions, as it does when a slot goes to another node.
      .on('moved', lost);
    this.#connections.set(address, connection);
    return connection;
  }

  #shards(): Promise<readonly Shard[]> {
    this.#asked ??= this.#cluster
      .cluster('SLOTS')
      .then((reply) => list(reply).map(shard))
      .finally(() => {
        this.#asked = undefined;
      });
    return this.#asked;
  }
}

/** Reads a row of CLUSTER SLOTS: the first slot, the last, the primary, then its replicas. */
function shard(row: unknown): Shard {
  const [first, last, primary] = list(row);
  const [host, port] = list(primary);
  return { first: Number(first), last: Number(last), host: word(host), port: Number(port) };
}
