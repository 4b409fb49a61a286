import type { Failed } from '../../common/attempt.ts';
import { EventsGapError, StoreUnavailableError } from '../../events/errors.ts';
import type { StoredEvent } from '../../events/log.ts';
import type { Context } from '../../operation/context.ts';
import { PaymentRecordError, PreconditionError } from '../errors.ts';
import { decodeEvent } from '../events/event.ts';
import { idName } from '../events/event-names.ts';
import { notSent } from './paying.ts';

/** Events read at a time. */
const BATCH = 200;

const UNREAD =
  'The event log cannot be read, which tells whether this credit was refused with 422. This call has sent nothing. Try again with the same key.';
/** Such a log goes on with the client's next event, and counts from then on as one that has forgotten those before. */
const LOST =
  'The event log has lost its events, which tell whether this credit was refused with 422. This call has sent nothing. The same key is taken again once the gateway has received the next webhook of this client. Where none comes, have the provider return the credit.';

/**
 * Why a credit is not refunded that the event log has as REJECTED. The service returns such a credit by itself once it has the 422
 * (docs/upstream-api.md, "Reply rules"). It does not say when the credit reads REFUNDED, nor whether it refuses a refund before that.
 *
 * @returns undefined where the log holds no such answer; it reaches as far back as its events do.
 */
export async function whyRejected(transactionId: string, context: Context): Promise<Failed | undefined> {
  try {
    if (!(await isRejected(transactionId, context))) return undefined;
  } catch (cause) {
    const isUnread = cause instanceof StoreUnavailableError || cause instanceof EventsGapError;
    // Where the caller has left, nobody hears of it: the key is given back.
    if (!isUnread && !context.budget.log.signal.aborted) throw cause;
    const isLost = cause instanceof EventsGapError && cause.gap.reason === 'lost';
    return notSent(new PaymentRecordError(isLost ? LOST : UNREAD, { cause }));
  }
  return notSent(
    new PreconditionError(
      'REFUND_NOT_ALLOWED',
      'This credit was refused (decision: REJECTED). The service returns it by itself once it has the 422. This call has sent nothing. If the credit has not gone back, have the provider return it.',
      { field: ['input', 'transactionId'] },
    ),
  );
}

async function isRejected(transactionId: string, { identity, reads, budget }: Context): Promise<boolean> {
  const named = transactionId.toLowerCase();
  const isRefusal = (stored: StoredEvent): boolean => {
    if (stored.decision !== 'REJECTED') return false;
    const event = decodeEvent(stored);
    return event?.type === 'MONEY_IN' && event.transactionId?.toLowerCase() === named;
  };
  const { clientId } = identity.caller;
  const search = { name: idName(transactionId) };
  let from: string | null = null;
  for (;;) {
    if (budget.log.isOver) throw new StoreUnavailableError('The log was not read in time.');
    // Until its index is complete, a search goes through the whole log: others are served between two batches.
    await budget.log.turn();
    const { events, hasMore } = await reads.events.readAfter(clientId, from, BATCH, search);
    if (events.some(isRefusal)) return true;
    from = events.at(-1)?.cursor ?? null;
    if (!hasMore || from === null) return false;
  }
}
