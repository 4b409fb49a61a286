import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { Budget } from '../../operation/budget.ts';
import { requesterOfReceipts } from '../../operation/caller-keys.ts';
import type { Identity } from '../../operation/identity.ts';
import type { Services } from '../../operation/services.ts';
import { customerScope } from '../../upstream/customer-scope.ts';
import { ReceiptPatience } from '../../upstream/session/receipt-patience.ts';
import type { Event } from './event.ts';

/** What of an operation's context the filter needs. */
export interface Viewer {
  readonly identity: {
    readonly caller: Pick<Identity['caller'], 'clientId' | 'customerId' | 'amongClients'>;
  };
  readonly budget: Pick<Budget, 'signal'>;
  readonly services: Pick<Services, 'receiptOwner'>;
}

/**
 * Makes the filter of what a caller may see, of events replayed or live: narrowed to a customer, it sees credits to that
 * customer, and receipts of what it has paid. Everything else of the log does not exist for it. Whose a receipt is, the
 * upstream tells; one that cannot be told to be the caller's is not.
 *
 * @param mayAsk whether the upstream may be asked once more. Without it, it may: a stream is read at its reader's pace.
 */
export function createVisibility(
  context: Viewer,
  mayAsk?: () => boolean,
): (event: Event) => MaybePromise<boolean> {
  const { caller } = context.identity;
  const { clientId, customerId } = caller;
  const view = customerScope(customerId);
  if (view.wholeClient) return () => true;
  const reader = { patience: new ReceiptPatience(), requester: requesterOfReceipts(caller), mayAsk };
  return (event) => {
    if (event.type === 'MONEY_IN') return view.owner(event.ownerId);
    if (event.type !== 'CEP') return false;
    // Nobody waits for the rest of a page whose reader has gone.
    context.budget.signal.throwIfAborted();
    return context.services.receiptOwner(clientId, event, reader).then((owner) => view.owner(owner));
  };
}
