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
 * Fails, before a script has done anything, while a Cluster moves the keys of the client to another node. A script finds keys that it does
 * not declare on its own node alone: it would take the others for gone, or end in the middle. In front of it: `base`.
 *
 * It asks for two keys that never exist. The node that the keys leave answers for none that it lacks, and the node to which they come for
 * no two of which it lacks one.
 */
export const UNMOVED = `redis.call('EXISTS', base .. ':', base .. '::')`;

/** The key of the names of customers' records that have this twin, by which a call for the whole client finds them. */
export const twinsKey = (clientId: string, twin: string): string => `${keysOf(clientId)}twin:${twin}`;

/** The key of the set of a client's open payments, ordered by when they are due to be looked at. */
export const dueKey = (clientId: string): string => `${keysOf(clientId)}due`;

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
