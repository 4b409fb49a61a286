import { setTimeout as wait } from 'node:timers/promises';
import type { UnattributedReason } from '../events/metrics.ts';
import type { ReceiptOwner } from '../operation/context.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { isUuid } from '../upstream/path.ts';
import { Patience } from '../upstream/patience.ts';
import type { OnUnattributed } from './unattributed.ts';

/** Waits for a reading that lags behind a receipt just arrived; an older one is read once. In milliseconds. */
const LAGS = [250, 500, 1_000, 2_000];
const LONGEST_LAG_MS = 2_000;
const FRESH_MS = 10_000;

/**
 * Reads the owner of a transaction's source, and remembers what it has found: null where it has none, undefined where the
 * upstream knows no such transaction.
 *
 * @param isSettled whether such a transaction is not about to appear.
 */
export type FindOwner = (
  clientId: string,
  transactionId: string,
  isSettled: boolean,
) => Promise<string | null | undefined>;

/**
 * Finds out whose receipt (CEP) an event is: the owner of the instrument that its money came from. The feed and all readers
 * ask here; what several of them read at the same time is read once.
 *
 * What cannot be found out within the time given is nobody's: one receipt must not keep all that come after it from
 * everybody. Each is counted and logged for the operator.
 *
 * @param onUnattributed called with each event whose owner could not be found out.
 */
export function createReceiptOwner(find: FindOwner, onUnattributed: OnUnattributed): ReceiptOwner {
  const readings = new Map<string, ReturnType<FindOwner>>();

  const findOnce: FindOwner = (clientId, transactionId, isSettled) => {
    const key = `${clientId} ${transactionId.toLowerCase()} ${isSettled}`;
    let reading = readings.get(key);
    if (reading === undefined) {
      reading = find(clientId, transactionId, isSettled).finally(() => readings.delete(key));
      readings.set(key, reading);
    }
    return reading;
  };

  return async (clientId, event, patience) => {
    const { bodyId } = event;
    const giveUp = (reason: UnattributedReason): null => {
      onUnattributed(clientId, event, reason);
      return null;
    };
    if (bodyId === null || !isUuid(bodyId)) return giveUp('unnamed');
    if (!patience.mayTry(Date.now())) return giveUp('unavailable');
    // The service may fail for this receipt alone, and answer for others that are asked about meanwhile.
    const own = new Patience();
    for (let attempt = 0; ; attempt += 1) {
      const isFresh = Date.now() - Date.parse(event.receivedAt) <= FRESH_MS && attempt < LAGS.length;
      try {
        const owner = await findOnce(clientId, bodyId, !isFresh);
        patience.succeeded();
        if (owner !== undefined) return owner;
        if (!isFresh) return giveUp('unknown');
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        // What was refused once is refused again; what failed may come.
        if (error.refusal !== undefined && error.refusal.httpStatus !== 429) return giveUp('refused');
        const now = Date.now();
        const isSpent = patience.failed(now);
        if (own.failed(now) || isSpent) return giveUp('unavailable');
      }
      await wait(LAGS[attempt] ?? LONGEST_LAG_MS);
    }
  };
}
