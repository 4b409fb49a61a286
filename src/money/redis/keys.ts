import { createHash } from 'node:crypto';
import type { RecordName } from '../intent.ts';

/**
 * The set of clients that have paid. It is in a slot of its own, so it is written beside their records and not in one step
 * with them.
 */
export const CLIENTS = 'pasarela:money:clients';

/** The prefix of a client's keys; its id is their hash tag, so that a Cluster keeps them together. */
export const keysOf = (clientId: string): string => `pasarela:money:{${clientId}}:`;

export const keyOf = ({ clientId, hash }: RecordName): string => keysOf(clientId) + hash;

/**
 * How many parts the index by transactions of one day has. With thousands of payments a day, each part stays small enough for
 * the compact form of a Redis hash.
 */
const PARTS = 32;

/** Returns the part of a day's index that holds a transaction. It follows the day in the key. */
export function partOf(transactionId: string): string {
  const [first = 0] = createHash('sha1').update(transactionId.toLowerCase()).digest();
  return String(first % PARTS);
}
