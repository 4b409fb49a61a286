import { Cluster, type ClusterOptions, type Redis } from 'ioredis';
import { keepsTime } from './in-time.ts';
import type { RedisNode } from './url.ts';

interface LastingClusterOptions {
  readonly enableOfflineQueue: boolean | undefined;
  readonly redisOptions: Omit<NonNullable<ClusterOptions['redisOptions']>, 'replyMapping'>;
}

/**
 * A client of a Cluster. It connects by those of its names that resolve: ioredis resolves all of them first, and connects by none where
 * one does not. Its `error` events say why a node could not be connected to, where ioredis says that none was, or nothing.
 */
export class LastingCluster extends Cluster {
  /** Why the last node could not be connected to. */
  #failure: Error | undefined;

  constructor(nodes: readonly RedisNode[], options: LastingClusterOptions) {
    super([...nodes], { ...options, dnsLookup: (host, done) => done(null, host) });
    const keep = (error: Error): void => {
      this.#failure = error;
    };
    this.on('+node', (node: Redis) => {
      node.on('error', keep);
      // Here and not for the whole Cluster, because what must be on replicas is written by the node itself.
      keepsTime(node);
      // ioredis asks by a connection of its own which server owns which slots, and drops its errors.
      const duplicate = node.duplicate.bind(node);
      node.duplicate = (override) => duplicate(override).on('error', keep);
      // ioredis sends this before a command whose slot is just moving, and handles no failure of it. The command then fails, too.
      const asking = node.asking.bind(node);
      node.asking = () => asking().catch(() => 'OK');
    });
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    const [error] = args;
    return event === 'error' && error instanceof Error && 'lastNodeError' in error
      ? this.#tell(error.lastNodeError ?? error)
      : super.emit(event, ...args);
  }

  override disconnect(reconnect = false): void {
    // ioredis has learnt who owns which slots, and finds the Cluster unusable all the same.
    if (reconnect && this.status === 'connect')
      this.#tell(new Error('the Cluster is down, or one of its nodes does not answer'));
    super.disconnect(reconnect);
  }

  /** Emits why the last node could not be connected to; where none failed so, this. */
  #tell(otherwise: unknown): boolean {
    const failure = this.#failure ?? otherwise;
    this.#failure = undefined;
    return super.emit('error', failure);
  }
}
