import { join } from 'node:path';
import { z } from 'zod';
import { EVENT_TYPES } from '../../events/log.ts';
import { CommandError, remark } from '../command.ts';
import { CursorFile } from '../cursor-file.ts';
import { type GraphClient, GraphError, HEAD, query, queryShown, tellUnread } from '../graph.ts';
import { isFinal } from '../graph-options.ts';
import { subscribe } from '../graph-stream.ts';
import { Attempts, rest } from './attempts.ts';
import { type Delivery, deliver, deliverAgain } from './deliver.ts';

/** Events read from the gateway at a time. */
const PAGE = 100;
/** How long to wait for an event before the log is read without one, in milliseconds. */
const LOOK_EVERY_MS = 4_000;

/** In place of a cursor: the place before the oldest event that the log has. No cursor has this form. */
const OLDEST = 'oldest';

interface Forwarding extends Delivery {
  readonly graph: GraphClient;
  readonly types: readonly string[] | null;
  /** The cursor to begin after if none was saved, or {@link OLDEST}; null to begin with events to come. */
  readonly from: string | null;
  /** The file in which the cursor is saved. */
  readonly stateFile: string;
  /** Files with the cursors of receivers that the command was not given. One may be of this receiver, at a former address. */
  readonly formerFiles: readonly string[];
}

/** Returns the path of the file with the cursor of one receiver. */
export const stateFileOf = (folder: string, receiverId: string): string =>
  join(folder, `forward-${receiverId}.cursor`);

/** Returns the path of the file with the events that one receiver has not taken. */
export const lettersFileOf = (folder: string, receiverId: string): string =>
  join(folder, `forward-${receiverId}.sqlite`);

const PARTY = '{ account name rfc }';
const DOCUMENT = `query ($types: [EventType!], $after: Cursor, $first: Int) {
  events(types: $types, after: $after, first: $first) {
    nodes {
      __typename id type cursor receivedAt
      ... on MoneyInEvent {
        messageDate transactionId subCategory rawSubCategory amount { amount currency } beneficiary ${PARTY} payer ${PARTY}
        payerInstitution trackingKey paymentConcept numericReference transactionDate registeredAt ownerId decision refundReason
      }
      ... on CepEvent {
        messageDate bodyId status rawStatus trackingKey externalReference paymentConcept beneficiary ${PARTY} processedAt
      }
      ... on StatusUpdateEvent { payload }
    }
    pageInfo { hasNextPage endCursor }
  }
}`;
const NEWS = 'subscription ($types: [EventType!]) { events(types: $types) { id } }';

/** All that is sent here. */
export const FORWARD_DOCUMENTS: readonly string[] = [HEAD, DOCUMENT, NEWS];

const Page = z.object({
  events: z.object({
    nodes: z.array(
      z.looseObject({ id: z.string(), cursor: z.string(), type: z.string(), receivedAt: z.string() }),
    ),
    pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
  }),
});
type PageOfEvents = z.output<typeof Page>['events'];
const Head = z.object({ eventCursor: z.string() });

/**
 * Delivers each event to a receiver, in order and at least once: the cursor is saved once the receiver has taken the event,
 * or once it was put aside. Ends when the signal is aborted.
 *
 * @throws CommandError if events are missing, or if the gateway refuses for good
 */
export async function forward(forwarding: Forwarding, signal: AbortSignal): Promise<void> {
  const state = new CursorFile(forwarding.stateFile);
  try {
    await forwardFrom(state, forwarding, signal);
  } finally {
    await state.close();
    await forwarding.receiver.close();
  }
}

async function forwardFrom(state: CursorFile, forwarding: Forwarding, signal: AbortSignal): Promise<void> {
  const { graph, receiver } = forwarding;
  const start = state.cursor ?? forwarding.from ?? (await head(forwarding, signal));
  if (start === undefined) return;
  // Saved at once: events that arrive from now on must be forwarded even if this process is killed before the first of them.
  if (state.cursor === undefined && forwarding.from === null) {
    state.save(start);
    tellNew(forwarding);
  }
  // The oldest event may have become another since an earlier command held this one.
  const held = state.cursor === OLDEST ? forwarding.letters.tried()?.event.cursor : undefined;
  let cursor = start;
  const news = new Bell();
  let hasBegun = false;
  void listen(forwarding, news, signal);
  remark(
    `Forwarding events of ${graph.url} ${cursor === OLDEST ? 'from the oldest on' : `after ${cursor}`} to ${receiver.shownAs} (${receiver.id}). Ctrl-C ends it.`,
  );
  for (const attempts = attemptsOf(forwarding, signal); !signal.aborted; ) {
    const heard = news.next();
    // Before the gateway is asked, which may be away.
    await deliverAgain(forwarding, signal);
    let page: PageOfEvents;
    let end: string | undefined;
    try {
      ({ page, end } = await pageAfter(cursor, held, forwarding));
    } catch (error) {
      if (!(error instanceof CommandError) || stays(error, graph)) throw error;
      await attempts.failed(error.message);
      continue;
    }
    attempts.succeeded();
    // Not before the gateway has taken it: a wrong one needs no file to be deleted.
    if (state.cursor === undefined) state.save(start);
    if (!hasBegun && page.nodes[0] !== undefined) {
      forwarding.letters.leaveBehind(page.nodes[0].cursor);
      hasBegun = true;
    }
    for (const event of page.nodes) {
      refuseUnknown(event);
      if (!(await deliver(forwarding, event, signal))) return;
      cursor = event.cursor;
      state.save(cursor);
    }
    const goesOn = page.nodes.length > 0 || page.pageInfo.hasNextPage;
    const reached = goesOn ? page.pageInfo.endCursor : end;
    if (reached != null && reached !== cursor) {
      cursor = reached;
      state.save(cursor);
    }
    if (goesOn) continue;
    await Promise.race([heard, rest(LOOK_EVERY_MS, signal)]);
  }
}

/**
 * Reads a page, and where the log ended before it was read, if that is needed.
 *
 * @param held the cursor of the event that an earlier command has begun with, at the oldest
 * @throws GraphError with EVENTS_GAP if the log lacks what follows the cursor, or the held event
 */
async function pageAfter(
  cursor: string,
  held: string | undefined,
  { graph, types }: Forwarding,
): Promise<{ readonly page: PageOfEvents; readonly end: string | undefined }> {
  const isOldest = cursor === OLDEST;
  if (isOldest && held !== undefined) await queryShown(graph, DOCUMENT, { types, after: held, first: 1 });
  // If only events of other types have come, the cursor after them must be saved, as that of an empty page is that goes on,
  // because the log may be trimmed meanwhile. For a log that was empty from its beginning there is no other.
  const end = types !== null || isOldest ? Head.parse(await query(graph, HEAD, {})).eventCursor : undefined;
  const { data, unread } = await queryShown(graph, DOCUMENT, {
    types,
    after: isOldest ? null : cursor,
    first: PAGE,
  });
  const page = Page.parse(data).events;
  tellUnread(unread, page.nodes);
  return { page, end };
}

/**
 * @throws CommandError for an event of a type that the gateway knows and this version does not: it would be posted without its
 * fields, and its place be saved.
 */
function refuseUnknown({ id, type }: { readonly id: string; readonly type: string }): void {
  if (EVENT_TYPES.some((known) => known === type)) return;
  throw new CommandError(
    `${id} is of the type ${type}, whose fields this version does not know. Start the command in the version of the gateway, or with --types of ${EVENT_TYPES.join(', ')}: it goes on at this event.`,
  );
}

/** A new address of a receiver is a new receiver, which begins with what comes: what its former one had not taken is left out. */
function tellNew({ receiver: { shownAs, id }, stateFile, formerFiles }: Forwarding): void {
  if (formerFiles.length === 0) return;
  remark(
    `${shownAs} (${id}) is new, and gets what comes from now on. If it had another address before: end this command, move the file of that address (${formerFiles.join(', ')}) to ${stateFile}, and its .sqlite file likewise.`,
  );
}

/** Attempts to ask the gateway. What `status` shows follows them. */
const attemptsOf = ({ letters }: Forwarding, signal: AbortSignal): Attempts =>
  new Attempts(signal, (problem) => {
    if (problem === undefined) letters.answered();
    else letters.tell(problem, false);
  });

/** Returns the end of the log, once the gateway can be asked; undefined if the signal was aborted before. */
async function head(forwarding: Forwarding, signal: AbortSignal): Promise<string | undefined> {
  const { graph } = forwarding;
  for (const attempts = attemptsOf(forwarding, signal); !signal.aborted; ) {
    try {
      return Head.parse(await query(graph, HEAD, {})).eventCursor;
    } catch (error) {
      if (!(error instanceof CommandError) || stays(error, graph)) throw error;
      await attempts.failed(error.message);
    }
  }
  return undefined;
}

const stays = (error: CommandError, graph: GraphClient): boolean =>
  error instanceof GraphError && isFinal(graph, error.code);

/** Rings at each event. Errors are ignored here: reading the log reports them, and happens without an event too. */
async function listen({ graph, types }: Forwarding, news: Bell, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const step of subscribe(graph, NEWS, { types }, () => news.ring())) {
        if ('data' in step) news.ring();
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
    await rest(LOOK_EVERY_MS, signal);
  }
}

/** Wakes those who wait if something has happened since they began to wait. */
class Bell {
  #heard = Promise.withResolvers<void>();

  ring(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers();
  }

  next(): Promise<void> {
    return this.#heard.promise;
  }
}
