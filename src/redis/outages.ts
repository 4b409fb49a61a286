import type { Logger } from '../common/logger.ts';
import { saidBy } from '../common/openssl-error.ts';
import type { RedisClient } from './connection.ts';

/**
 * How many reasons are logged in one outage. An outage has few; a text that differs with each try, such as the time of the
 * next one, is none.
 */
const MOST_REASONS = 5;

/**
 * Logs a connection's errors once for each state, and not for each try: when it is away, when the reason changes, and when it
 * is back.
 *
 * @param away the log message while it is away.
 */
export function logOutages(redis: RedisClient, logger: Logger, away: string): void {
  const reasons = new Set<string>();
  redis.on('error', (error: unknown) => {
    // Only the message is logged: the client's error may hold a command with what is stored.
    const reason = error instanceof Error ? saidBy(error) : '';
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
