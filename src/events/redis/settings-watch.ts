import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type RedisWarning, redisWarnings } from './settings.ts';

/** How long the result of a look is given again without another look, in milliseconds. */
const FRESH_FOR_MS = 2_000;

/**
 * Looks at the settings of the Redis servers again and again, because an operator changes them while they run, and a failover
 * changes the server.
 */
export class SettingsWatch {
  readonly #redis: RedisClient;
  readonly #url: string;
  readonly #logger: Logger;
  /** The servers that have evicted keys. What is gone stays gone when one of them ends, or another takes its place. */
  readonly #evicting = new Set<string>();
  #found: readonly RedisWarning[] = [];
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** @param url what `redis` is connected to */
  constructor(redis: RedisClient, url: string, logger: Logger) {
    this.#redis = redis;
    this.#url = url;
    this.#logger = logger;
  }

  /**
   * How Redis may lose what it has taken: sentences for the operator. Asking for them begins another look in the background.
   */
  get risks(): readonly string[] {
    if (clock.monotonic() - this.#lookedAt >= FRESH_FOR_MS) void this.look();
    return this.#found.filter(({ isRisk }) => isRisk).map(({ text }) => text);
  }

  /** Looks, and logs what has changed since the last look. Never fails. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    this.#lookedAt = clock.monotonic();
    // A Redis that is away tells nothing of its settings.
    if (this.#redis.status !== 'ready') return;
    const found = await redisWarnings(this.#redis, this.#url, this.#evicting).catch(() => undefined);
    if (found === undefined) return;
    const known = new Set(this.#found.map(({ text }) => text));
    this.#found = found;
    for (const { text } of found) if (!known.has(text)) this.#logger.warn({}, text);
  }
}
