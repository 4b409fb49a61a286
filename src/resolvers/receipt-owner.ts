import { setTimeout as wait } from 'node:timers/promises';
import type { UnattributedReason } from '../events/metrics.ts';
import type { ReceiptEvent, ReceiptOwner } from '../operation/context.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { isUuid } from '../upstream/path.ts';
import { Patience } from './patience.ts';
import type { OnUnattributed } from './unattributed.ts';

/** Waits for a reading that lags behind a receipt just arrived; an older one is read once. In milliseconds. */
const LAGS = [250, 500, 1_000, 2_000];
const LONGEST_LAG_MS = 2_000;
const FRESH_MS = 10_000;

export interface ReceiptOwnerOptions {
  /**
   * Reads the owner of a transaction's source, and remembers what it has found: null where it has none, undefined where the
   * upstream knows no such transaction.
   *
   * @param isSettled whether such a transaction is not about to appear.
   */
  find(clientId: string, transactionId: string, isSettled: boolean): Promise<string | null | undefined>;
  /** Called with each event whose owner could not be found out. */
  readonly onUnattributed: OnUnattributed;
}

/**
 * Finds out whose receipt (CEP) an event is: the owner of the instrument that its money came from. It serves the feed and
 * all readers of the process: what several ask at the same time is asked of the REST service once.
 *
 * What cannot be found out within the time given is nobody's: one receipt must not keep all that come after it from
 * everybody. Each is counted and logged for the operator.
 */
export function createReceiptOwner({ find, onUnattributed }: ReceiptOwnerOptions): ReceiptOwner {
  const asking = new Map<string, Promise<string | null>>();
  /** With the service, whichever receipts it is asked about. */
  const withService = new Patience();

  async function ask(clientId: string, event: ReceiptEvent): Promise<string | null> {
    const { bodyId } = event;
    const giveUp = (reason: UnattributedReason): null => {
      onUnattributed(clientId, event, reason);
      return null;
    };
    if (bodyId === null || !isUuid(bodyId)) return giveUp('unnamed');
    if (!withService.mayTry(Date.now())) return giveUp('unavailable');
    /** The service may fail for this one alone, while it answers for others. */
    const withThisOne = new Patience();
    for (let attempt = 0; ; attempt += 1) {
      const isFresh = Date.now() - Date.parse(event.receivedAt) <= FRESH_MS && attempt < LAGS.length;
      try {
        const owner = await find(clientId, bodyId, !isFresh);
        withService.succeeded();
        if (owner !== undefined) return owner;
        if (!isFresh) return giveUp('unknown');
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        // What was refused once is refused again; what failed may come.
        if (error.refusal !== undefined && error.refusal.httpStatus !== 429) return giveUp('refused');
        const now = Date.now();
        const isSpent = withService.failed(now);
        if (withThisOne.failed(now) || isSpent) return giveUp('unavailable');
      }
      await wait(LAGS[attempt] ?? LONGEST_LAG_MS);
    }
  }

  return (clientId, event) => {
    const key = `${clientId} ${event.receivedAt} ${event.id}`;
    let answer = asking.get(key);
    if (answer === undefined) {
      answer = ask(clientId, event).finally(() => asking.delete(key));
      asking.set(key, answer);
    }
    return answer;
  };
}
