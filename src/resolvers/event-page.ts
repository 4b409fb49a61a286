import type { MaybePromise } from '../common/maybe-promise.ts';
import type { EventSearch, EventType } from '../events/log.ts';
import type { EventReads } from '../events/sealed-reads.ts';
import { present } from '../upstream/json.ts';
import { isId, isUuid } from '../upstream/path.ts';
import type { TransactionLoader } from '../upstream/transactions.ts';
import { type PageInfo, pageSize } from './connection.ts';
import { BadInputError } from './errors.ts';
import { decodeEvent, type Event } from './event.ts';
import { fits, type SearchArgs, searchOf } from './event-search.ts';
import { argumentId } from './ids.ts';
import { createVisibility, type Viewer } from './visibility.ts';

/** Entries read from the log at a time, and at most for one page: a filter that rarely matches must not read it all. */
const BATCH = 200;
const MAX_SCANNED = 5_000;

export interface EventFilter {
  readonly types?: readonly EventType[] | null | undefined;
  readonly ownerId?: string | null | undefined;
}

export interface EventPageArgs extends EventFilter, SearchArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

export interface EventPage {
  readonly nodes: readonly Event[];
  readonly pageInfo: PageInfo;
}

/**
 * Makes the predicate of a filter, for events that the caller may see. Only MONEY_IN messages name an owner, so `ownerId`
 * lets nothing else through.
 *
 * @throws BadInputError for a malformed id, or a list of no types.
 */
export function eventFilter(
  { types, ownerId }: EventFilter,
  context: Viewer,
): (event: Event) => MaybePromise<boolean> {
  if (types?.length === 0)
    throw new BadInputError('Argument "types" must name a type, or be left out for all.');
  const wanted = types == null ? null : new Set(types);
  const owner = ownerId == null ? null : argumentId('ownerId', 'uuid', ownerId).toLowerCase();
  const isVisible = createVisibility(context);
  return (event) =>
    (wanted === null || wanted.has(event.type)) &&
    (owner === null || (event.type === 'MONEY_IN' && event.ownerId?.toLowerCase() === owner)) &&
    isVisible(event);
}

/** What of an operation's context a page needs. */
type Reader = Viewer & { readonly events: EventReads };

/** What else a page needs to know by which id a receipt's messages name a transaction. */
type Searcher = Reader & { readonly session: { readonly transactions: Pick<TransactionLoader, 'get'> } };

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

/** The id that messages of a receipt may bear instead of the transaction's; the service alone knows it. */
async function validationOf(
  transactionId: string,
  { types }: EventPageArgs,
  { session }: Searcher,
): Promise<string | null> {
  if (!isUuid(transactionId) || types?.includes('CEP') === false) return null;
  const transaction = await session.transactions.get(transactionId);
  const validationId = present(transaction?.metadata?.dataCep?.validationId);
  return validationId !== null && isId(validationId) ? validationId : null;
}

const isBackward = ({ last, before }: EventPageArgs): boolean => last != null || before != null;

async function pageOfLog(args: EventPageArgs, context: Reader): Promise<EventPage> {
  const backward = isBackward(args);
  if (backward && (args.first != null || args.after != null)) {
    throw new BadInputError('Use "first" with "after", or "last" with "before": not both.');
  }
  const isWanted = eventFilter(args, context);
  const search = searchOf(args, context.caller.customerId);
  const isFitting = fits(search ?? {}, args);
  const matches: Matches = (event) => isFitting(event) && isWanted(event);
  return backward
    ? readBack(pageSize('last', args.last), args.before ?? null, matches, search, context)
    : readOn(pageSize('first', args.first), args.after ?? null, matches, search, context);
}

/**
 * When the oldest retained event was received, as RFC 3339; null where none is. Of a caller narrowed to a customer, when its own
 * oldest credit was: the time of another event would tell how many events the client has.
 */
export async function reachesBackTo(context: Reader): Promise<string | null> {
  const { events, caller } = context;
  if (caller.customerId !== undefined) {
    const { nodes } = await pageOfLog({ types: ['MONEY_IN'], first: 1 }, context);
    return nodes[0]?.receivedAt ?? null;
  }
  const { events: oldest } = await events.readAfter(caller.clientId, null, 1);
  return oldest[0]?.receivedAt ?? null;
}

type Matches = (event: Event) => MaybePromise<boolean>;

async function readOn(
  size: number,
  after: string | null,
  matches: Matches,
  search: EventSearch | undefined,
  context: Reader,
): Promise<EventPage> {
  const { events, caller } = context;
  const nodes: Event[] = [];
  let position = after;
  for (let scanned = 0; ; ) {
    const page = await events.readAfter(caller.clientId, position, BATCH, search);
    for (const stored of page.events) {
      const event = decodeEvent(stored);
      if (await matches(event)) {
        if (nodes.length === size) return forwardPage(nodes, after, nodes.at(-1)?.cursor ?? null, true);
        nodes.push(event);
      }
      position = stored.cursor;
    }
    scanned += page.events.length;
    if (!page.hasMore) return forwardPage(nodes, after, nodes.at(-1)?.cursor ?? null, false);
    // What has been looked through need not be again: the page ends where reading ended.
    if (scanned >= MAX_SCANNED)
      return forwardPage(nodes, after, await reached(nodes, position, context), true);
  }
}

/** Where reading ended: an event of the page, or one that the caller may not see and must not recognise. */
async function reached(
  nodes: readonly Event[],
  position: string | null,
  { events, caller }: Reader,
): Promise<string | null> {
  if (position === null || position === nodes.at(-1)?.cursor) return position;
  return (await events.hidePlace?.(caller.clientId, position)) ?? position;
}

const forwardPage = (
  nodes: readonly Event[],
  after: string | null,
  endCursor: string | null,
  hasNextPage: boolean,
): EventPage => ({
  nodes,
  pageInfo: {
    hasNextPage,
    hasPreviousPage: after !== null,
    startCursor: nodes[0]?.cursor ?? null,
    endCursor,
  },
});

async function readBack(
  size: number,
  before: string | null,
  matches: Matches,
  search: EventSearch | undefined,
  context: Reader,
): Promise<EventPage> {
  const { events, caller } = context;
  const nodes: Event[] = [];
  let position = before;
  for (let scanned = 0; ; ) {
    const page = await events.readBefore(caller.clientId, position, BATCH, search);
    for (const stored of page.events.toReversed()) {
      const event = decodeEvent(stored);
      if (await matches(event)) {
        if (nodes.length === size) return backwardPage(nodes, before, nodes.at(-1)?.cursor ?? null, true);
        nodes.push(event);
      }
      position = stored.cursor;
    }
    scanned += page.events.length;
    if (!page.hasMore) return backwardPage(nodes, before, nodes.at(-1)?.cursor ?? null, false);
    if (scanned >= MAX_SCANNED)
      return backwardPage(nodes, before, await reached(nodes, position, context), true);
  }
}

/** @param newestFirst as they were come upon; the page shows the oldest first. */
const backwardPage = (
  newestFirst: readonly Event[],
  before: string | null,
  startCursor: string | null,
  hasPreviousPage: boolean,
): EventPage => ({
  nodes: newestFirst.toReversed(),
  pageInfo: {
    hasNextPage: before !== null,
    hasPreviousPage,
    startCursor,
    endCursor: newestFirst[0]?.cursor ?? null,
  },
});
