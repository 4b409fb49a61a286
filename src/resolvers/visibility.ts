import { setTimeout as wait } from 'node:timers/promises';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { UnattributedReason } from '../events/metrics.ts';
import type { Context } from '../operation/context.ts';
import { customerScope } from '../upstream/customer-scope.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { isUuid } from '../upstream/path.ts';
import type { CepEvent, Event } from './event.ts';
import { Patience } from './patience.ts';

/** Waits for a reading that lags behind a receipt just arrived; an older one is read once. In milliseconds. */
const LAGS = [250, 500, 1_000, 2_000];
const LONGEST_LAG_MS = 2_000;
const FRESH_MS = 10_000;

/** What of an operation's context the filter needs. */
export type Viewer = Pick<Context, 'session' | 'renewSession' | 'signal' | 'onUnattributed'> & {
  readonly caller: Pick<Context['caller'], 'clientId' | 'customerId'>;
};

/**
 * Makes the filter of what a caller may see, of events replayed or live: narrowed to a customer, it sees credits to that
 * customer, and receipts of what it has paid. Everything else of the log does not exist for it.
 *
 * Whose a receipt is, the upstream tells. What cannot be told to be the caller's within the time given is not the
 * caller's: one receipt must not keep all that come after it from everybody. Each is counted and logged for the operator.
 */
export function createVisibility(context: Viewer): (event: Event) => MaybePromise<boolean> {
  const view = customerScope(context.caller.customerId);
  if (view.wholeClient) return () => true;
  const patience = new Patience();
  return (event) => {
    if (event.type === 'MONEY_IN') return view.owner(event.ownerId);
    return event.type === 'CEP' && isOwnReceipt(event, context, patience);
  };
}

async function isOwnReceipt(event: CepEvent, context: Viewer, patience: Patience): Promise<boolean> {
  const { bodyId } = event;
  const giveUp = (reason: UnattributedReason): false => {
    context.onUnattributed(context.caller.clientId, event, reason);
    return false;
  };
  if (bodyId === null || !isUuid(bodyId)) return giveUp('unnamed');
  if (!patience.mayTry(Date.now())) return giveUp('unavailable');
  // An operation that has been open for long has no time of its own left for this.
  context.renewSession();
  for (let attempt = 0; ; attempt += 1) {
    const isFresh = Date.now() - Date.parse(event.receivedAt) <= FRESH_MS && attempt < LAGS.length;
    try {
      const isOwn = await context.session.isOwnSource(bodyId, !isFresh);
      patience.succeeded();
      if (isOwn !== undefined) return isOwn;
      if (!isFresh) return giveUp('unknown');
    } catch (error) {
      if (!(error instanceof UpstreamError) || context.signal.aborted) throw error;
      // What was refused once is refused again; what failed may come.
      if (error.refusal !== undefined && error.refusal.httpStatus !== 429) return giveUp('refused');
      if (patience.failed(Date.now())) return giveUp('unavailable');
      context.renewSession();
    }
    await wait(LAGS[attempt] ?? LONGEST_LAG_MS, undefined, { signal: context.signal });
  }
}
