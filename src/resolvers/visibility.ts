import { setTimeout as wait } from 'node:timers/promises';
import type { Context } from '../operation/context.ts';
import { customerScope } from '../upstream/customer-scope.ts';
import { UpstreamError } from '../upstream/errors.ts';
import type { MaybePromise } from '../upstream/list-loader.ts';
import { isUuid } from '../upstream/path.ts';
import { OwnerUnknownError } from './errors.ts';
import type { CepEvent, Event } from './event.ts';

/** Waits for a reading that lags behind a receipt just arrived; an older one is read once. */
const LAGS = [250, 500, 1_000, 2_000];
const FRESH_MS = 10_000;

/** What of an operation's context the filter needs. */
export type Viewer = Pick<Context, 'session' | 'renewSession' | 'signal'> & {
  readonly caller: Pick<Context['caller'], 'customerId'>;
};

/**
 * Whether the caller may see an event, replayed or live: of one narrowed to a customer, credits to it, and receipts of
 * what it has paid (docs/authentication.md). Everything else of the log does not exist for it.
 *
 * @throws OwnerUnknownError when it cannot be found out whose receipt it is: nothing is skipped in silence.
 */
export function isVisible(event: Event, context: Viewer): MaybePromise<boolean> {
  const view = customerScope(context.caller.customerId);
  if (view.wholeClient) return true;
  if (event.type === 'MONEY_IN') return view.owner(event.ownerId);
  return event.type === 'CEP' && isOwnReceipt(event, context);
}

async function isOwnReceipt({ bodyId, receivedAt }: CepEvent, context: Viewer): Promise<boolean> {
  if (bodyId === null || !isUuid(bodyId)) throw new OwnerUnknownError();
  // An operation that has been open for long has no time of its own left for this.
  context.renewSession();
  for (const lag of [...LAGS, undefined]) {
    const isOwn = await context.session.isOwnSource(bodyId).catch((error: unknown) => {
      throw error instanceof UpstreamError ? new OwnerUnknownError(error) : error;
    });
    if (isOwn !== undefined) return isOwn;
    if (lag === undefined || Date.now() - Date.parse(receivedAt) > FRESH_MS) break;
    await wait(lag, undefined, { signal: context.signal });
  }
  throw new OwnerUnknownError();
}
