import type { MaybePromise } from '../../common/maybe-promise.ts';
import { MappedStream, type PushStream } from '../../common/push-stream.ts';
import { EVENT_TYPES, type EventType } from '../../events/log.ts';
import type { Context } from '../../operation/context.ts';
import { argumentId } from '../ids.ts';
import { decodeEvent, type Event, type MoneyInEvent } from './event.ts';
import { type EventFilter, eventFilter } from './event-page.ts';
import { type CepUpdate, Receipt } from './receipt.ts';
import { ReceiptSource, TransactionSource } from './status-source.ts';
import { StatusWatch } from './status-watch.ts';
import { clabeTopic, ownerTopic, typeTopic } from './topics.ts';
import { TransactionStates, type TransactionUpdate } from './transaction-states.ts';

/** Credits that a stream is asked for. */
interface CreditFilter extends Pick<EventFilter, 'ownerId'>, After {
  readonly clabe?: string | null | undefined;
}

interface After {
  readonly after?: string | null | undefined;
}

/** The events that a stream waits for, as the feed knows them. */
interface WantedEvents {
  readonly topics?: readonly string[] | undefined;
  readonly needsLookup?: boolean | undefined;
}

/**
 * Follows the caller's log. Each event is resolved with a session of its own: what was read before it is older. The topics
 * spare the stream what does not concern it; what it shows, `matches` decides.
 */
async function followLog<T extends Event>(
  after: string | null | undefined,
  context: Context,
  waiting: WantedEvents,
  select: (event: Event) => T | undefined,
  matches: (event: Event) => MaybePromise<boolean>,
): Promise<PushStream<T>> {
  // A client that comes back over SSE repeats its first request, and says in a header how far it got since.
  const from = context.startsNow ? undefined : (context.lastEventId ?? after ?? undefined);
  const source = await context.reads.events.follow(context.identity.caller.clientId, {
    after: from,
    ...waiting,
  });
  return new MappedStream(source, (stored) => {
    const event = decodeEvent(stored);
    const selected = event && select(event);
    if (selected === undefined) return undefined;
    const shown = (is: boolean): T | undefined => {
      if (is) context.reads.renew();
      return is ? selected : undefined;
    };
    const matching = matches(selected);
    return typeof matching === 'boolean' ? shown(matching) : matching.then(shown);
  });
}

/** What a customer may have: credits to it, and receipts of what it has paid. Whose a receipt is has to be asked for. */
const IS_OF_CUSTOMERS: Readonly<Record<EventType, boolean>> = {
  MONEY_IN: true,
  CEP: true,
  STATUS_UPDATE: false,
};
const OF_CUSTOMERS = EVENT_TYPES.filter((type) => IS_OF_CUSTOMERS[type]);

/** Every event of the caller's client, or of the given types. */
export function followEvents(
  args: Pick<EventFilter, 'types'> & After,
  context: Context,
): Promise<PushStream<Event>> {
  const matches = eventFilter(args, context);
  const { customerId } = context.identity.caller;
  const types = args.types ?? undefined;
  if (customerId === undefined) {
    const topics = types?.map(typeTopic);
    return followLog(args.after, context, { topics }, (event) => event, matches);
  }
  const own = (types ?? OF_CUSTOMERS).filter((type) => OF_CUSTOMERS.includes(type));
  const topics = own.map((type) => ownerTopic(type, customerId));
  return followLog(
    args.after,
    context,
    { topics, needsLookup: own.includes('CEP') },
    (event) => event,
    matches,
  );
}

/** Credits as they arrive, of one owner, to one CLABE, or of all. */
export function followMoneyIn(args: CreditFilter, context: Context): Promise<PushStream<MoneyInEvent>> {
  const matches = eventFilter(args, context);
  const topics = [creditTopic(args, context.identity.caller.customerId)];
  const { clabe } = args;
  return followLog(
    args.after,
    context,
    { topics },
    (event) =>
      event.type === 'MONEY_IN' && (clabe == null || event.beneficiary.account === clabe) ? event : undefined,
    matches,
  );
}

/** The topic that brings the fewest events that a stream does not show. A narrowed caller waits for none of other owners' CLABEs. */
function creditTopic({ ownerId, clabe }: CreditFilter, customerId: string | undefined): string {
  if (clabe != null && customerId === undefined) return clabeTopic(clabe);
  const owner = ownerId ?? customerId;
  return owner === undefined ? typeTopic('MONEY_IN') : ownerTopic('MONEY_IN', owner);
}

/**
 * The receipt of one penny validation.
 *
 * @throws BadInputError for an id that is no UUID, at once; for the rest see `StatusWatch`.
 */
export function followCep(id: string, context: Context): PushStream<CepUpdate> {
  const transactionId = argumentId('transactionId', 'uuid', id);
  const source = new ReceiptSource(transactionId, context);
  return new StatusWatch(source, new Receipt(transactionId), context.services.polls);
}

/**
 * The states of one transaction.
 *
 * @throws BadInputError for an id that is no UUID, at once; for the rest see `StatusWatch`.
 */
export function followTransaction(id: string, context: Context): PushStream<TransactionUpdate> {
  const transactionId = argumentId('transactionId', 'uuid', id);
  const source = new TransactionSource(transactionId, context);
  return new StatusWatch(source, new TransactionStates(transactionId), context.services.polls);
}
