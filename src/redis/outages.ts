import type { Logger } from '../common/logger.ts';
import type { RedisClient } from './connection.ts';

/** An outage has few reasons; what differs with each try, such as the time of the next one, is none. */
const MOST_REASONS = 5;

/**
 * Logs a connection's errors once for each state, and not for each try: when it is away, when that has another reason, and
 * when it is back.
 *
 * @param away what is so while it is away.
 */
export function logOutages(redis: RedisClient, logger: Logger, away: string): void {
  const reasons = new Set<string>();
  redis.on('error', (error: unknown) => {
    // The client's error may carry a command, and that what is stored.
    const reason = error instanceof Error ? error.message : '';
    if (reasons.has(reason) || reasons.size >= MOST_REASONS) return;
    reasons.add(reason);
    logger.warn({ reason }, away);
  });
  redis.on('ready', () => {
    if (reasons.size === 0) return;
    reasons.clear();
    logger.info({}, `No longer: ${away}`);
  });
}
