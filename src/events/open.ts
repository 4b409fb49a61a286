import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import type { EventLog } from './log.ts';
import { type EventMetrics, silentMetrics } from './metrics.ts';
import { Quarantine } from './quarantine.ts';
import type { EventNames } from './search.ts';
import { SpooledLog } from './spool/spooled-log.ts';
import { SqliteLog } from './sqlite/sqlite-log.ts';
import type { EventTopics } from './topics.ts';

export interface EventLogOptions {
  /** Redis, Sentinels or a Cluster, as `parseRedisUrl` reads it; without it the embedded log of one process. */
  readonly redisUrl?: string | undefined;
  /** Folder of the embedded log; with Redis, of the spool. */
  readonly dataDir: string;
  /** Events kept per client. */
  readonly retention: number;
  /** Bytes of stored events kept per client; any number where it is not given. The newest event is always kept. */
  readonly retentionBytes?: number | undefined;
  readonly logger: Logger;
  readonly metrics?: EventMetrics | undefined;
  /** Whom events concern; without it, those who wait for their type. */
  readonly topics?: EventTopics | undefined;
  /** What events are found again by; without it, nothing. */
  readonly names?: EventNames | undefined;
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/**
 * Opens the event log. It opens also while Redis is away, and becomes available when Redis comes.
 *
 * @throws {Error} when the folder of the embedded log cannot be used, or the URL has no known form
 */
export async function openEventLog(options: EventLogOptions): Promise<EventLog> {
  const { redisUrl, dataDir, logger, metrics = silentMetrics, now = () => clock.now() } = options;
  if (redisUrl === undefined) return new SqliteLog({ ...options, metrics, now });
  const { RedisLog } = await import('./redis/redis-log.ts');
  const log = new RedisLog({ ...options, redisUrl, metrics, now });
  await log.settled();
  const quarantine = new Quarantine({ dataDir, logger, metrics });
  return new SpooledLog({ log, dataDir, quarantine, logger, metrics });
}
