import { createHash } from 'node:crypto';
import type { RecordName } from '../intent.ts';

/** The clients that have paid. In a slot of its own, so that it is written beside their records and not with them. */
export const CLIENTS = 'pasarela:money:clients';

/** The prefix of a client's keys; its id is their hash tag, so that a Cluster keeps them together. */
export const keysOf = (clientId: string): string => `pasarela:money:{${clientId}}:`;

export const keyOf = ({ clientId, hash }: RecordName): string => keysOf(clientId) + hash;

/** Parts of the index by transactions of one day: enough for thousands of payments a day to lie close together in Redis. */
const PARTS = 32;

/** Names the part of a day's index that a transaction is in: what follows the day in its key. */
export function partOf(transactionId: string): string {
  const [first = 0] = createHash('sha1').update(transactionId.toLowerCase()).digest();
  return String(first % PARTS);
}
