import type { Cluster, Redis } from 'ioredis';
import type { RedisClient } from '../../redis/connection.ts';
import type { RedisNode } from '../../redis/url.ts';
import { list, word } from './reply.ts';

/** What happens on the connections that channels are subscribed on. */
export interface SubscriberEvents {
  message(channel: string, text: string): void;
  /** A connection is up: a subscription that failed may succeed now. */
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
  /** Never fails: the subscriptions of a connection end with it. */
  unsubscribe(channel: string, connection: RedisClient): void;
  /** Called now and then. Ends connections that carried no channel at this call nor at the one before. */
  prune(used: ReadonlySet<RedisClient>): void;
  stop(): void;
}

/** Subscribes all channels on one connection. For servers through which every message passes. */
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
 * Subscribes each channel on a connection to the primary that owns its slot, as sharded Pub/Sub requires.
 *
 * ioredis has that too (`shardedSubscribers`), but may stop for good if the whole Cluster is away at an unlucky moment: it
 * then waits for a connection that it has ended itself.
 */
export class ShardSubscribers implements Subscribers {
  readonly isReady = true;
  readonly #cluster: Cluster;
  readonly #connect: (node: RedisNode) => Redis;
  readonly #events: SubscriberEvents;
  readonly #connections = new Map<string, Redis>();
  readonly #idle = new WeakSet<RedisClient>();
  /** The question under way. Channels that are subscribed at the same time share its answer. */
  #asked: Promise<readonly Shard[]> | undefined;

  /** @param cluster tells which server owns which slot */
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
      // A connection on which the first channel is just being subscribed carries none yet.
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
      // The server ends subscriptions when a slot moves to another node.
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
