import type { EventSearch, EventType } from '../../events/log.ts';
import { BadInputError } from '../errors.ts';
import { argumentId } from '../ids.ts';
import { spanOf } from '../instants.ts';
import type { Event } from './event.ts';
import { clabeName, idName, ownClabeName, ownerName, trackingName } from './event-names.ts';

/** What events are looked for by, beside their type and owner. Times are RFC 3339. */
export interface SearchArgs {
  readonly types?: readonly EventType[] | null | undefined;
  readonly ownerId?: string | null | undefined;
  readonly receivedFrom?: string | null | undefined;
  readonly receivedTo?: string | null | undefined;
  readonly transactionId?: string | null | undefined;
  readonly trackingKey?: string | null | undefined;
  readonly clabe?: string | null | undefined;
}

/**
 * What the log's index is asked for; undefined where it has to be read from one end to the other.
 *
 * @param customerId the customer that the caller is narrowed to, if any: the credits that it may see are its own.
 * @throws BadInputError for arguments that name nothing.
 */
export function searchOf(args: SearchArgs, customerId: string | undefined): EventSearch | undefined {
  const { from, to } = spanOf(['receivedFrom', 'receivedTo'], args.receivedFrom, args.receivedTo);
  const name = nameOf(args, customerId);
  if (from === undefined && to === undefined && name === undefined) return undefined;
  return { receivedFrom: from, receivedTo: to, name };
}

/** One name is enough to look up: the one that the fewest events have. */
function nameOf(
  { types, ownerId, transactionId, trackingKey, clabe }: SearchArgs,
  customerId: string | undefined,
): string | undefined {
  if (trackingKey === '') throw new BadInputError('Argument "trackingKey" must not be empty.');
  if (transactionId != null) return idName(argumentId('transactionId', 'id', transactionId));
  if (trackingKey != null) return trackingName(trackingKey);
  if (clabe != null) return customerId === undefined ? clabeName(clabe) : ownClabeName(clabe, customerId);
  if (customerId === undefined) return ownerId == null ? undefined : ownerName(ownerId);
  // What a narrowed caller cannot see is not looked through: no event has the name of nobody.
  if (ownerId != null) return ownerName(ownerId.toLowerCase() === customerId.toLowerCase() ? customerId : '');
  if (types == null || types.includes('CEP')) return undefined;
  return ownerName(types.includes('MONEY_IN') ? customerId : '');
}

/** Whether an event fits the times, the transaction, the tracking key and the CLABE that are looked for. */
export function fits(
  { receivedFrom, receivedTo }: EventSearch,
  { transactionId, trackingKey, clabe }: SearchArgs,
): (event: Event) => boolean {
  const id = transactionId?.toLowerCase();
  return (event) => {
    if (receivedFrom !== undefined || receivedTo !== undefined) {
      const receivedAt = Date.parse(event.receivedAt);
      if (!(receivedAt >= (receivedFrom ?? Number.NEGATIVE_INFINITY))) return false;
      if (!(receivedAt < (receivedTo ?? Number.POSITIVE_INFINITY))) return false;
    }
    if (clabe != null && (event.type !== 'MONEY_IN' || event.beneficiary.account !== clabe)) return false;
    if (id === undefined && trackingKey == null) return true;
    if (event.type === 'STATUS_UPDATE') return false;
    const named = event.type === 'MONEY_IN' ? event.transactionId : event.bodyId;
    return (
      (id === undefined || named?.toLowerCase() === id) &&
      (trackingKey == null || event.trackingKey === trackingKey)
    );
  };
}
