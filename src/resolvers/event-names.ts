import type { EventNames } from '../events/search.ts';
import { decodeEvent } from './event.ts';

/** Events that bear an id: a MONEY_IN its transaction's, a CEP that of its body. */
export const idName = (id: string): string => `id ${id.toLowerCase()}`;

/** Events with a tracking key, as it is written. */
export const trackingName = (trackingKey: string): string => `tracking ${trackingKey}`;

/** Credits to the instruments of an owner. */
export const ownerName = (ownerId: string): string => `owner ${ownerId.toLowerCase()}`;

/** What an event is found again by. */
export const eventNames: EventNames = (stored) => {
  const event = decodeEvent(stored);
  if (event.type === 'STATUS_UPDATE') return [];
  const id = event.type === 'MONEY_IN' ? event.transactionId : event.bodyId;
  return [
    ...(id === null ? [] : [idName(id)]),
    ...(event.trackingKey === null ? [] : [trackingName(event.trackingKey)]),
    ...(event.type === 'MONEY_IN' && event.ownerId !== null ? [ownerName(event.ownerId)] : []),
  ];
};
