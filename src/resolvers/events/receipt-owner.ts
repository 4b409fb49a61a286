import { clock } from '../../common/clock.ts';
import { Lru } from '../../common/lru.ts';
import type { Party } from '../../common/party.ts';
import type { UnattributedReason } from '../../events/metrics.ts';
import type { ReceiptOwner, ReceiptReader } from '../../operation/services.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import { isUuid } from '../../upstream/call/path.ts';
import { SharedWork } from '../../upstream/call/shared-work.ts';
import { ReceiptPatience } from '../../upstream/session/receipt-patience.ts';
import { LogReadingError } from '../errors.ts';
import type { OnUnattributed } from './unattributed.ts';

/** Waits for a reading that lags behind a receipt just arrived; an older one is read once. In milliseconds. */
const LAGS = [250, 500, 1_000, 2_000];
const LONGEST_LAG_MS = 2_000;
const FRESH_MS = 10_000;

/**
 * Reads the owner of a transaction's source, and remembers what it has found: null where it has none, undefined where the
 * upstream knows no such transaction.
 *
 * @param party all who wait for it
 * @param isSettled whether such a transaction is not about to appear.
 */
export type FindOwner = (
  party: Party,
  clientId: string,
  transactionId: string,
  isSettled: boolean,
) => Promise<string | null | undefined>;

/** What is known of the owners of transactions, and how more is found out. */
export interface SourceOwnerReads {
  /** What `find` gives without a call; undefined where it has to ask. */
  known(
    clientId: string,
    transactionId: string,
    isSettled: boolean,
  ): { readonly owner: string | null | undefined } | undefined;
  readonly find: FindOwner;
}

/** How long a receipt of which the service refused to tell is not asked for again, in milliseconds, and how many such are kept. */
const REFUSED_FOR_MS = 60_000;
const MOST_REFUSED = 10_000;
const LATE = 'The time to find out whose a receipt is was over.';

/**
 * Finds out whose receipt (CEP) an event is: the owner of the instrument that its money came from. The feed and all readers
 * ask here; what several of them read at the same time is read once.
 *
 * What cannot be found out within the time given is nobody's: one receipt must not keep all that come after it from
 * everybody. Each is counted and logged for the operator.
 *
 * @param timeoutMs how long one reading may take, with the turn that it waits for
 * @param onUnattributed called with each event whose owner could not be found out.
 */
export function createReceiptOwner(
  { known, find }: SourceOwnerReads,
  timeoutMs: number,
  onUnattributed: OnUnattributed,
): ReceiptOwner {
  const refused = new Lru<true>(MOST_REFUSED, { ttl: REFUSED_FOR_MS });
  const findOnce = findingOnce({ known, find }, timeoutMs);

  return async (clientId, event, reader) => {
    const { patience } = reader;
    const { bodyId } = event;
    const giveUp = (reason: UnattributedReason): null => {
      onUnattributed(clientId, event, reason);
      return null;
    };
    if (bodyId === null || !isUuid(bodyId)) return giveUp('unnamed');
    const ageMs = (): number => clock.now() - Date.parse(event.receivedAt);
    const isSettled = ageMs() > FRESH_MS;
    const found = known(clientId, bodyId, isSettled);
    if (found?.owner !== undefined) return found.owner;
    const key = `${clientId} ${bodyId.toLowerCase()}`;
    if (refused.has(key)) return giveUp('refused');
    if (!patience.mayTry(clock.now())) return giveUp('unavailable');
    // The service may fail for this receipt alone, and answer for others that are asked about meanwhile.
    const own = new ReceiptPatience();
    for (let attempt = 0; ; attempt += 1) {
      const isFresh = ageMs() <= FRESH_MS && attempt < LAGS.length;
      try {
        // The last look is no other than those before it: what an older receipt has found meanwhile would answer it.
        const owner = await findOnce(clientId, bodyId, isSettled, reader);
        patience.succeeded();
        if (owner !== undefined) return owner;
        if (!isFresh) return giveUp('unknown');
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        // What was refused once is refused again; what failed may come.
        if (error.refusal !== undefined && error.refusal.httpStatus !== 429) {
          refused.set(key, true);
          return giveUp('refused');
        }
        const now = clock.now();
        const isSpent = patience.failed(now);
        if (own.failed(now) || isSpent) return giveUp('unavailable');
      }
      await clock.sleep(LAGS[attempt] ?? LONGEST_LAG_MS);
    }
  };
}

type FindOnce = (
  clientId: string,
  transactionId: string,
  isSettled: boolean,
  reader: ReceiptReader,
) => ReturnType<FindOwner>;

/** Readings of owners: a reading that is under way is shared by all who ask for the same transaction. */
function findingOnce({ known, find }: SourceOwnerReads, timeoutMs: number): FindOnce {
  const readings = new Map<string, SharedWork<Awaited<ReturnType<FindOwner>>>>();

  return (clientId, transactionId, isSettled, { requester, mayAsk = () => true }) => {
    const key = `${clientId} ${transactionId.toLowerCase()} ${isSettled}`;
    const asker = {
      requester,
      urgency: 'operations',
      deadline: clock.now() + timeoutMs,
      leaver: undefined,
    } as const;
    const underWay = readings.get(key);
    // What all others have given up ends without an answer.
    if (underWay !== undefined && !underWay.isGone) return underWay.wait(asker, LATE);
    if (known(clientId, transactionId, isSettled) === undefined && !mayAsk()) {
      throw new LogReadingError('it has the service asked whose too many receipts are');
    }
    const reading = new SharedWork<Awaited<ReturnType<FindOwner>>>();
    readings.set(key, reading);
    const found = reading.wait(asker, LATE);
    reading.begin((party) =>
      find(party, clientId, transactionId, isSettled).finally(() => {
        if (readings.get(key) === reading) readings.delete(key);
      }),
    );
    return found;
  };
}
