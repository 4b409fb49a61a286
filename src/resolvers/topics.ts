import type { EventType, StoredEvent } from '../events/log.ts';
import type { EventTopics } from '../events/topics.ts';
import { decodeEvent } from './event.ts';

/** Events of one type, whomever they concern. */
export const typeTopic = (type: EventType): string => type;

/** Events of one type that concern an owner: credits to it, receipts of what it has paid. */
export const ownerTopic = (type: EventType, ownerId: string): string =>
  `${type} owner ${ownerId.toLowerCase()}`;

/** Events of one type that name a transaction or, by the same field, something of it. */
export const idTopic = (type: EventType, id: string): string => `${type} id ${id.toLowerCase()}`;

/** Receipts that name a tracking key. */
export const trackingTopic = (trackingKey: string): string => `CEP tracking ${trackingKey}`;

/** Receipts of which it cannot be found out whose they are: whoever waits for some owner's decides for itself. */
export const OWNER_UNKNOWN = 'CEP owner unknown';

/** Finds the owner of what a receipt is about: null where it is nobody's, undefined where it cannot be found out. */
export type ReceiptOwner = (clientId: string, event: StoredEvent) => Promise<string | null | undefined>;

/** Of a STATUS_UPDATE nothing but its type: what it names is not documented. Whoever follows a payment by it adds topics here. */
function topicsOf(stored: StoredEvent): readonly string[] {
  const event = decodeEvent(stored);
  const topics = [typeTopic(event.type)];
  if (event.type === 'MONEY_IN') {
    if (event.ownerId !== null) topics.push(ownerTopic(event.type, event.ownerId));
    topics.push(idTopic(event.type, event.transactionId));
  } else if (event.type === 'CEP') {
    if (event.bodyId !== null) topics.push(idTopic(event.type, event.bodyId));
    if (event.trackingKey !== null) topics.push(trackingTopic(event.trackingKey));
  }
  return topics;
}

/**
 * Whom events concern. From the event alone follow its type, the owner and the transaction of a credit, the body's id and
 * the tracking key of a receipt. Whose receipt it is, has to be asked for.
 */
export const createEventTopics = (ownerOf: ReceiptOwner): EventTopics => ({
  of: topicsOf,
  askedFor: (clientId, event) =>
    event.type === 'CEP' ? ownerOf(clientId, event).then(topicsOfOwner) : undefined,
});

function topicsOfOwner(owner: string | null | undefined): readonly string[] {
  if (owner === undefined) return [OWNER_UNKNOWN];
  return owner === null ? [] : [ownerTopic('CEP', owner)];
}
