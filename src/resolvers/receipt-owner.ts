import { setTimeout as wait } from 'node:timers/promises';
import type { StoredEvent } from '../events/log.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { isUuid } from '../upstream/path.ts';
import { decodeEvent } from './event.ts';
import type { ReceiptOwner } from './topics.ts';

/** Waits for a reading that lags behind a receipt just arrived; an older one is read once. In milliseconds. */
const LAGS = [250, 500, 1_000, 2_000];
const FRESH_MS = 10_000;

/**
 * Finds out whose receipt (CEP) an event is: the owner of the instrument that its money came from. What several ask for at
 * the same time is asked for once.
 *
 * @param find reads the owner of a transaction's source: null where it has none, undefined where the upstream knows no such
 * transaction. It remembers what it has found.
 * @returns a function that gives undefined where it cannot be found out.
 */
export function createReceiptOwner(
  find: (clientId: string, transactionId: string) => Promise<string | null | undefined>,
): ReceiptOwner {
  const asking = new Map<string, Promise<string | null | undefined>>();

  async function ask(clientId: string, bodyId: string, receivedAt: string) {
    for (const lag of [...LAGS, undefined]) {
      const owner = await find(clientId, bodyId);
      const isLate = Date.now() - Date.parse(receivedAt) > FRESH_MS;
      if (owner !== undefined || lag === undefined || isLate) return owner;
      await wait(lag);
    }
    return undefined;
  }

  return async (clientId: string, stored: StoredEvent) => {
    const event = decodeEvent(stored);
    if (event.type !== 'CEP' || event.bodyId === null || !isUuid(event.bodyId)) return undefined;
    const key = `${clientId} ${event.bodyId.toLowerCase()}`;
    let answer = asking.get(key);
    if (answer === undefined) {
      answer = ask(clientId, event.bodyId, event.receivedAt)
        .catch((error: unknown) => {
          if (error instanceof UpstreamError) return undefined;
          throw error;
        })
        .finally(() => asking.delete(key));
      asking.set(key, answer);
    }
    return answer;
  };
}
