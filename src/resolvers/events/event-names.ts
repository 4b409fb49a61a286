import type { EventNames } from '../../events/search.ts';
import { decodeEvent } from './event.ts';

/** Events that bear an id: a MONEY_IN its transaction's, a CEP that of its body. */
export const idName = (id: string): string => `id ${id.toLowerCase()}`;

/** Events with a tracking key, as it is written. */
export const trackingName = (trackingKey: string): string => `tracking ${trackingKey}`;

/** Credits to the instruments of an owner. */
export const ownerName = (ownerId: string): string => `owner ${ownerId.toLowerCase()}`;

/** Credits to a CLABE. */
export const clabeName = (clabe: string): string => `clabe ${clabe}`;

/** Those to a CLABE of one owner: a caller narrowed to a customer looks through no others. */
export const ownClabeName = (clabe: string, ownerId: string): string =>
  `clabe ${clabe} of ${ownerId.toLowerCase()}`;

/** What an event is found again by. */
export const eventNames: EventNames = (stored) => {
  const event = decodeEvent(stored);
  if (event === undefined || event.type === 'STATUS_UPDATE') return [];
  const { trackingKey } = event;
  const tracked = trackingKey === null ? [] : [trackingName(trackingKey)];
  if (event.type === 'CEP') return event.bodyId === null ? tracked : [idName(event.bodyId), ...tracked];
  const { transactionId, ownerId, beneficiary } = event;
  const clabe = beneficiary.account;
  return [
    ...(transactionId === null ? [] : [idName(transactionId)]),
    ...tracked,
    ...(ownerId === null ? [] : [ownerName(ownerId)]),
    ...(clabe === null ? [] : [clabeName(clabe)]),
    ...(clabe === null || ownerId === null ? [] : [ownClabeName(clabe, ownerId)]),
  ];
};
