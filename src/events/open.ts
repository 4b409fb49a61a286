import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import type { EventLog } from './log.ts';
import { type EventMetrics, silentMetrics } from './metrics.ts';
import { Quarantine } from './quarantine.ts';
import { type EventNames, noNames } from './search.ts';
import { SpooledLog } from './spool/spooled-log.ts';
import { SqliteLog } from './sqlite/sqlite-log.ts';
import type { EventTopics } from './topics.ts';

export interface EventLogOptions {
  /**
   * Address of Redis, Sentinels or a Cluster, as `parseRedisUrl` reads it. Without it the log is the embedded one, of one
   * process.
   */
  readonly redisUrl?: string | undefined;
  /** Folder of the embedded log; with Redis, of the spool. */
  readonly dataDir: string;
  /** Events kept per client. */
  readonly retention: number;
  /** Bytes of stored events kept per client; any number where it is not given. The newest event is always kept. */
  readonly retentionBytes?: number | undefined;
  readonly logger: Logger;
  readonly metrics?: EventMetrics | undefined;
  /** Names the topics of events. Without it an event's only topic is its type. */
  readonly topics?: EventTopics | undefined;
  /** Names the texts by which events are found again. Without it none is found by a name. */
  readonly names?: EventNames | undefined;
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/**
 * Opens the event log. While Redis is away it opens too, and becomes available when Redis comes.
 *
 * @throws {Error} if the folder of the embedded log cannot be used, or the URL has no known form
 */
export async function openEventLog(options: EventLogOptions): Promise<EventLog> {
  const {
    redisUrl,
    dataDir,
    logger,
    metrics = silentMetrics,
    names = noNames,
    now = () => clock.now(),
  } = options;
  if (redisUrl === undefined) return new SqliteLog({ ...options, metrics, now });
  const { RedisLog } = await import('./redis/redis-log.ts');
  const log = new RedisLog({ ...options, redisUrl, metrics, now });
  await log.settled();
  const quarantine = new Quarantine({ dataDir, logger, metrics });
  return new SpooledLog({ log, dataDir, quarantine, logger, metrics, names });
}
