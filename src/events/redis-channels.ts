import type { RedisClient } from '../redis.ts';
import { bare, StoreUnavailableError } from './errors.ts';
import type { EventLogger } from './log.ts';
import type { EventMetrics } from './metrics.ts';
import { channelClient, redisKeys } from './redis-keys.ts';
import { channelEntry } from './redis-source.ts';
import type { Listener } from './source.ts';

/** Channels subscribed to in one command after a reconnect. */
const BATCH = 200;

/**
 * The one subscribe connection of the process. ioredis would subscribe anew without telling when that is done; here each
 * listener doubts once its channel is known to be subscribed again.
 */
export class RedisChannels {
  readonly #redis: RedisClient;
  readonly #logger: EventLogger;
  readonly #metrics: EventMetrics;
  readonly #listeners = new Map<string, Listener>();

  constructor(redis: RedisClient, logger: EventLogger, metrics: EventMetrics) {
    this.#redis = redis;
    this.#logger = logger;
    this.#metrics = metrics;
    redis.on('message', (channel: string, message: string) => this.#receive(channel, message));
    redis.on('ready', () => void this.#resubscribe());
  }

  /** Throws `StoreUnavailableError`. */
  async attach(clientId: string, listener: Listener): Promise<void> {
    this.#listeners.set(clientId, listener);
    try {
      await this.#redis.subscribe(redisKeys(clientId).channel);
    } catch (cause) {
      if (this.#listeners.get(clientId) === listener) this.#listeners.delete(clientId);
      throw new StoreUnavailableError('The event log cannot be followed now.', { cause: bare(cause) });
    }
  }

  detach(clientId: string): void {
    if (!this.#listeners.delete(clientId)) return;
    // Where that fails the connection is gone, and the subscription with it.
    this.#redis.unsubscribe(redisKeys(clientId).channel).catch(() => {});
  }

  /** Every listener compares with the log; a connection that no longer answers is made anew. */
  check(): void {
    // A ping that gets no answer ends the connection by its timeout.
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
    const clientIds = [...this.#listeners.keys()];
    try {
      for (let start = 0; start < clientIds.length; start += BATCH) {
        const batch = clientIds.slice(start, start + BATCH);
        await this.#redis.subscribe(...batch.map((clientId) => redisKeys(clientId).channel));
        for (const clientId of batch) this.#listeners.get(clientId)?.doubt();
      }
    } catch (error) {
      this.#logger.warn({ error: String(error) }, 'event channels could not be subscribed again');
      // The next connection tries anew.
      this.#redis.disconnect(true);
    }
  }
}
