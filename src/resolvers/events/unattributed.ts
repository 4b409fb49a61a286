import type { Logger } from '../../common/logger.ts';
import { Lru } from '../../common/lru.ts';
import type { UnattributedReason } from '../../events/metrics.ts';

/** Told of an event whose owner could not be found out. */
export type OnUnattributed = (
  clientId: string,
  event: { readonly id: string; readonly receivedAt: string },
  reason: UnattributedReason,
) => void;

/** Events that have been reported, kept in memory: each is read by many, and again and again. */
const REMEMBERED = 10_000;

/**
 * Tells the operator of events that nobody narrowed to a customer is shown, because it could not be found out whose they
 * are. Each is counted and logged once in the life of the process.
 *
 * @param count counts one by its reason.
 */
export function createUnattributed(
  logger: Logger,
  count: (reason: UnattributedReason) => void,
): OnUnattributed {
  const reported = new Lru<true>(REMEMBERED);
  return (clientId, { id, receivedAt }, reason) => {
    const key = `${clientId} ${receivedAt} ${id}`;
    if (reported.has(key)) return;
    reported.set(key, true);
    count(reason);
    logger.warn(
      { clientId, id, receivedAt, reason },
      'It could not be found out whose receipt an event is: callers narrowed to a customer are not shown it.',
    );
  };
}
