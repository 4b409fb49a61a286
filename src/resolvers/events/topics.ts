import type { EventType, StoredEvent } from '../../events/log.ts';
import type { EventTopics } from '../../events/topics.ts';
import { requesterOfReceipts } from '../../operation/caller-keys.ts';
import type { ReceiptOwner } from '../../operation/services.ts';
import { ReceiptPatience } from '../../upstream/session/receipt-patience.ts';
import { decodeEvent } from './event.ts';
import { namedIds } from './named-ids.ts';

/** Events of one type, whomever they concern. */
export const typeTopic = (type: EventType): string => type;

/** Events of one type that concern an owner: credits to it, receipts of what it has paid. */
export const ownerTopic = (type: EventType, ownerId: string): string =>
  `${type} owner ${ownerId.toLowerCase()}`;

/** Credits to a CLABE. */
export const clabeTopic = (clabe: string): string => `MONEY_IN clabe ${clabe}`;

/** Events of one type that name a transaction or, by the same field, something of it. */
export const idTopic = (type: EventType, id: string): string => `${type} id ${id.toLowerCase()}`;

/** Receipts that name a tracking key. */
export const trackingTopic = (trackingKey: string): string => `CEP tracking ${trackingKey}`;

function namedBy(stored: StoredEvent): readonly string[] {
  const event = decodeEvent(stored);
  if (event === undefined) return [];
  const topics = [typeTopic(event.type)];
  if (event.type === 'MONEY_IN') {
    if (event.ownerId !== null) topics.push(ownerTopic(event.type, event.ownerId));
    if (event.transactionId !== null) topics.push(idTopic(event.type, event.transactionId));
    if (event.beneficiary.account !== null) topics.push(clabeTopic(event.beneficiary.account));
  } else if (event.type === 'CEP') {
    if (event.bodyId !== null) topics.push(idTopic(event.type, event.bodyId));
    if (event.trackingKey !== null) topics.push(trackingTopic(event.trackingKey));
  } else {
    for (const id of namedIds(event.payload)) topics.push(idTopic(event.type, id));
  }
  return topics;
}

const topics = new WeakMap<StoredEvent, readonly string[]>();

/** An event has its topics asked for by each feed and each reader of history: they are found once. */
function topicsOf(stored: StoredEvent): readonly string[] {
  let known = topics.get(stored);
  if (known === undefined) {
    known = namedBy(stored);
    topics.set(stored, known);
  }
  return known;
}

/**
 * Whom events concern. From the event alone follow its type, the owner, the transaction and the CLABE of a credit, the body's id and
 * the tracking key of a receipt, and every id that a status update names. Whose receipt it is, has to be asked for.
 */
export const createEventTopics = (ownerOf: ReceiptOwner): EventTopics => ({
  of: topicsOf,
  asker(clientId) {
    const reader = { patience: new ReceiptPatience(), requester: requesterOfReceipts({ clientId }) };
    return (stored) => {
      const event = decodeEvent(stored);
      return event?.type === 'CEP'
        ? ownerOf(clientId, event, reader).then((owner) => (owner === null ? [] : [ownerTopic('CEP', owner)]))
        : undefined;
    };
  },
});
