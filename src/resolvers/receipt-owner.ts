import { setTimeout as wait } from 'node:timers/promises';
import type { StoredEvent } from '../events/log.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { isUuid } from '../upstream/path.ts';
import { OwnerUnknownError } from './errors.ts';
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
 * @returns a function that throws OwnerUnknownError when it cannot be found out: nothing is skipped in silence.
 */
export function createReceiptOwner(
  find: (clientId: string, transactionId: string) => Promise<string | null | undefined>,
): ReceiptOwner {
  const asking = new Map<string, Promise<string | null>>();

  async function ask(clientId: string, bodyId: string, receivedAt: string): Promise<string | null> {
    for (const lag of [...LAGS, undefined]) {
      const owner = await find(clientId, bodyId).catch((error: unknown) => {
        throw error instanceof UpstreamError ? new OwnerUnknownError(error) : error;
      });
      if (owner !== undefined) return owner;
      if (lag === undefined || Date.now() - Date.parse(receivedAt) > FRESH_MS) break;
      await wait(lag);
    }
    throw new OwnerUnknownError();
  }

  return async (clientId: string, stored: StoredEvent) => {
    const event = decodeEvent(stored);
    if (event.type !== 'CEP' || event.bodyId === null || !isUuid(event.bodyId)) throw new OwnerUnknownError();
    const key = `${clientId} ${event.bodyId.toLowerCase()}`;
    let answer = asking.get(key);
    if (answer === undefined) {
      answer = ask(clientId, event.bodyId, event.receivedAt).finally(() => asking.delete(key));
      asking.set(key, answer);
    }
    return answer;
  };
}
