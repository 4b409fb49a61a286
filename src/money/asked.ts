import type { Asked } from './record.ts';

/** Characters of an input hash that tell whose a description is. */
const INPUT_DIGITS = 8;

/**
 * What was asked for, as a store keeps it: a list in JSON, for the room that it takes. Its second is the operation, its third the
 * customer. A version before that takes a free key over for another input leaves it as it is, so that it bears a part of the hash
 * of its own.
 */
export const writtenAsked = (
  { operation, customerId, amount, source, destination, requestedBy }: Asked,
  inputHash: string,
): string =>
  JSON.stringify([
    inputHash.slice(0, INPUT_DIGITS),
    operation,
    customerId ?? '',
    amount ?? '',
    source ?? '',
    destination ?? '',
    requestedBy,
  ]);

/** @returns null where there is none, and where it was written for another input. */
export function readAsked(text: unknown, inputHash: string): Asked | null {
  if (typeof text !== 'string' || text === '') return null;
  // Only ever made by writtenAsked.
  const [input, operation, ...rest] = JSON.parse(text) as [string, Asked['operation'], ...string[]];
  if (!inputHash.startsWith(input)) return null;
  const [customerId = null, amount = null, source = null, destination = null] = rest.map(unlessEmpty);
  return { operation, customerId, amount, source, destination, requestedBy: rest[4] ?? '' };
}

const unlessEmpty = (text: string): string | null => (text === '' ? null : text);
