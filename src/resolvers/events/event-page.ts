import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { EventType } from '../../events/log.ts';
import { present } from '../../upstream/call/json.ts';
import { isId, isUuid } from '../../upstream/call/path.ts';
import type { TransactionLoader } from '../../upstream/transactions.ts';
import { type PageInfo, pageSize } from '../connection.ts';
import { BadInputError } from '../errors.ts';
import { argumentId } from '../ids.ts';
import type { Event } from './event.ts';
import { fits, type SearchArgs, searchOf } from './event-search.ts';
import { type Found, PageSearch, type SearchContext } from './page-search.ts';
import { createVisibility, type Viewer } from './visibility.ts';

export interface EventFilter {
  readonly types?: readonly EventType[] | null | undefined;
  readonly ownerId?: string | null | undefined;
}

/** How a page of events is asked for. */
export interface EventWindow {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

export interface EventPageArgs extends EventFilter, SearchArgs, EventWindow {}

export interface EventPage {
  readonly nodes: readonly Event[];
  readonly pageInfo: PageInfo;
}

/**
 * Makes the predicate of a filter, for events that the caller may see. Only MONEY_IN messages name an owner, so `ownerId`
 * lets nothing else through.
 *
 * @param mayAsk as for {@link createVisibility}
 * @throws BadInputError for a malformed id, or a list of no types.
 */
export function eventFilter(
  { types, ownerId }: EventFilter,
  context: Viewer,
  mayAsk?: () => boolean,
): (event: Event) => MaybePromise<boolean> {
  if (types?.length === 0)
    throw new BadInputError('Argument "types" must name a type, or be left out for all.');
  const wanted = types == null ? null : new Set(types);
  const owner = ownerId == null ? null : argumentId('ownerId', 'uuid', ownerId).toLowerCase();
  const isVisible = createVisibility(context, mayAsk);
  return (event) =>
    (wanted === null || wanted.has(event.type)) &&
    (owner === null || (event.type === 'MONEY_IN' && event.ownerId?.toLowerCase() === owner)) &&
    isVisible(event);
}

/** What of an operation's context a page needs. */
type Reader = Viewer & SearchContext;

/** What else a page needs: to know by which id a receipt's messages name a transaction. */
type Searcher = Reader & {
  readonly reads: { readonly session: { readonly transactions: Pick<TransactionLoader, 'get'> } };
};

/**
 * A page of the retained log: onwards from `after`, or back from `before`.
 *
 * @throws BadInputError for arguments that name nothing; UpstreamError where the service has to be asked for the validation of a
 * transaction, and fails.
 */
export async function eventPage(args: EventPageArgs, context: Searcher): Promise<EventPage> {
  const page = await pageOfLog(args, context);
  const { hasNextPage, hasPreviousPage } = page.pageInfo;
  const goesOn = isBackward(args) ? hasPreviousPage : hasNextPage;
  if (args.transactionId == null || page.nodes.length > 0 || goesOn) return page;
  const validationId = await validationOf(args.transactionId, args, context);
  return validationId === null ? page : pageOfLog({ ...args, transactionId: validationId }, context);
}

/**
 * Credits to a CLABE, newest first: onwards is back in the log.
 *
 * @throws as {@link eventPage}
 */
export async function creditsTo(clabe: string, window: EventWindow, context: Searcher): Promise<EventPage> {
  const { first, after, last, before } = window;
  const asked = { types: CREDITS, clabe };
  const isBack = last != null || before != null;
  if (isBack && (first != null || after != null)) throw bothWays();
  const page = isBack
    ? await pageOfLog({ ...asked, first: pageSize('last', last), after: before }, context)
    : await pageOfLog({ ...asked, last: pageSize('first', first), before: after }, context);
  const { hasNextPage, hasPreviousPage, startCursor, endCursor } = page.pageInfo;
  return {
    nodes: page.nodes.toReversed(),
    pageInfo: {
      hasNextPage: hasPreviousPage,
      hasPreviousPage: hasNextPage,
      startCursor: endCursor,
      endCursor: startCursor,
    },
  };
}

const CREDITS: readonly EventType[] = ['MONEY_IN'];

/** The id that messages of a receipt may bear instead of the transaction's; the service alone knows it. */
async function validationOf(
  transactionId: string,
  { types }: EventPageArgs,
  { reads: { session } }: Searcher,
): Promise<string | null> {
  if (!isUuid(transactionId) || types?.includes('CEP') === false) return null;
  const transaction = await session.transactions.get(transactionId);
  const validationId = present(transaction?.metadata?.dataCep?.validationId);
  return validationId !== null && isId(validationId) ? validationId : null;
}

const bothWays = (): BadInputError =>
  new BadInputError('Use "first" with "after", or "last" with "before": not both.');

const isBackward = ({ last, before }: EventPageArgs): boolean => last != null || before != null;

async function pageOfLog(args: EventPageArgs, context: Reader): Promise<EventPage> {
  const isBack = isBackward(args);
  if (isBack && (args.first != null || args.after != null)) {
    throw bothWays();
  }
  const isWanted = eventFilter(args, context, () => context.budget.log.mayAskOwner());
  const search = searchOf(args, context.identity.caller.customerId);
  const isFitting = fits(search ?? {}, args);
  const asked = {
    isBack,
    size: isBack ? pageSize('last', args.last) : pageSize('first', args.first),
    from: (isBack ? args.before : args.after) ?? null,
    search,
    isFiltered: search !== undefined || args.types != null || args.ownerId != null,
    matches: (event: Event) => isFitting(event) && isWanted(event),
  };
  const found = await new PageSearch(asked, context).run();
  return isBack ? backwardPage(found, asked.from) : forwardPage(found, asked.from);
}

/**
 * From when on every event is held, as RFC 3339; null where none is. Of a caller narrowed to a customer, when its own oldest credit
 * since then was received: the time of another event would tell how many events the client has.
 */
export async function reachesBackTo(context: Reader): Promise<string | null> {
  const { events } = context.reads;
  const { caller } = context.identity;
  const wholeSince = await events.wholeSince(caller.clientId);
  if (wholeSince === null) return null;
  const receivedFrom = new Date(wholeSince).toISOString();
  if (caller.customerId === undefined) return receivedFrom;
  const { nodes } = await pageOfLog({ types: ['MONEY_IN'], receivedFrom, first: 1 }, context);
  return nodes[0]?.receivedAt ?? null;
}

const forwardPage = ({ events, goesOn, end }: Found, after: string | null): EventPage => ({
  nodes: events,
  pageInfo: {
    hasNextPage: goesOn,
    hasPreviousPage: after !== null,
    startCursor: events[0]?.cursor ?? null,
    endCursor: end,
  },
});

/** The page shows the oldest first. */
const backwardPage = ({ events, goesOn, end }: Found, before: string | null): EventPage => ({
  nodes: events.toReversed(),
  pageInfo: {
    hasNextPage: before !== null,
    hasPreviousPage: goesOn,
    startCursor: end,
    endCursor: events[0]?.cursor ?? null,
  },
});
