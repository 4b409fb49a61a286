import { Cluster } from 'ioredis';
import type { RedisClient } from '../redis.ts';
import { bare, StoreUnavailableError } from './errors.ts';
import type { EventLogger } from './log.ts';
import type { EventMetrics } from './metrics.ts';
import { channelClient, redisKeys } from './redis-keys.ts';
import { channelEntry } from './redis-source.ts';
import type { Listener } from './source.ts';

/** Channels subscribed to at once after a reconnect. */
const BATCH = 200;

/** What a Cluster's client tells when its connections for subscriptions have changed. */
const CLUSTER_CHANGES = ['+subscriber', '-subscriber', 'subscribersReady'] as const;

/**
 * The one subscribe connection of the process (in a Cluster, one to each primary that has a channel to listen on). ioredis
 * would subscribe anew without telling when that is done; here each listener doubts once its channel is known to be
 * subscribed again.
 */
export class RedisChannels {
  readonly #redis: RedisClient;
  readonly #logger: EventLogger;
  readonly #metrics: EventMetrics;
  readonly #listeners = new Map<string, Listener>();
  #resubscribing = false;
  #changed = false;

  constructor(redis: RedisClient, logger: EventLogger, metrics: EventMetrics) {
    this.#redis = redis;
    this.#logger = logger;
    this.#metrics = metrics;
    const sharded = redis instanceof Cluster;
    redis.on(sharded ? 'smessage' : 'message', (channel: string, message: string) =>
      this.#receive(channel, message),
    );
    for (const event of sharded ? ['ready', ...CLUSTER_CHANGES] : ['ready']) {
      redis.on(event, () => void this.#resubscribe());
    }
  }

  /** Throws `StoreUnavailableError`. */
  async attach(clientId: string, listener: Listener): Promise<void> {
    this.#listeners.set(clientId, listener);
    try {
      await this.#subscribe([clientId]);
    } catch (cause) {
      if (this.#listeners.get(clientId) === listener) this.#listeners.delete(clientId);
      throw new StoreUnavailableError('The event log cannot be followed now.', { cause: bare(cause) });
    }
  }

  detach(clientId: string): void {
    if (!this.#listeners.delete(clientId)) return;
    // Where that fails the connection is gone, and the subscription with it.
    const { channel } = redisKeys(clientId);
    const gone =
      this.#redis instanceof Cluster ? this.#redis.sunsubscribe(channel) : this.#redis.unsubscribe(channel);
    gone.catch(() => {});
  }

  /** Every listener compares with the log; a connection that no longer answers is made anew. */
  check(): void {
    // In a Cluster to subscribe again is also what asks each connection whether it lives. A question that gets no answer
    // ends the connection, by its timeout.
    if (this.#redis instanceof Cluster) return void this.#resubscribe();
    this.#redis.ping().catch(() => {});
    for (const listener of this.#listeners.values()) listener.doubt();
  }

  #receive(channel: string, message: string): void {
    const clientId = channelClient(channel);
    const listener = clientId === undefined ? undefined : this.#listeners.get(clientId);
    if (clientId === undefined || listener === undefined) return;
    try {
      listener.receive(channelEntry(clientId, message));
    } catch {
      this.#metrics.poison();
      this.#logger.error({ clientId }, 'a message on an event channel cannot be read');
      listener.doubt();
    }
  }

  async #resubscribe(): Promise<void> {
    this.#changed = true;
    if (this.#resubscribing) return;
    this.#resubscribing = true;
    try {
      while (this.#changed) {
        this.#changed = false;
        const clientIds = [...this.#listeners.keys()];
        for (let start = 0; start < clientIds.length; start += BATCH) {
          const batch = clientIds.slice(start, start + BATCH);
          await this.#subscribe(batch);
          for (const clientId of batch) this.#listeners.get(clientId)?.doubt();
        }
      }
    } catch (error) {
      this.#logger.warn({ error: String(error) }, 'event channels could not be subscribed again');
      // The next connection tries anew. A Cluster's client makes its own way, and tells.
      if (!(this.#redis instanceof Cluster)) this.#redis.disconnect(true);
    } finally {
      this.#resubscribing = false;
    }
  }

  async #subscribe(clientIds: readonly string[]): Promise<void> {
    const channels = clientIds.map((clientId) => redisKeys(clientId).channel);
    const redis = this.#redis;
    // Each channel of a Cluster has its own slot.
    if (redis instanceof Cluster) await Promise.all(channels.map((channel) => redis.ssubscribe(channel)));
    else await redis.subscribe(...channels);
  }
}
