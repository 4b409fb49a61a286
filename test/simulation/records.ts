import type { Mark } from '../../src/money/mark.ts';
import type { Keyspace } from './redis/keyspace.ts';

/** Whether a key is that of the record of a payment. */
export const isRecord = (key: string): boolean => /^pasarela:money:\{[^}]*\}:[\w-]{43}$/.test(key);

/** The keys of the records of payments. */
export const recordsIn = (keyspace: Keyspace): string[] => keyspace.keys().filter(isRecord);

/** How a payment was settled, by its record; undefined where it is not. */
export function settledIn(keyspace: Keyspace, key: string): string | undefined {
  // HMGET replies with a list of texts, null for what there is not.
  const [state, kind] = keyspace.run('HMGET', [key, 'state', 'kind']) as (string | null)[];
  return state === 'answered' && kind != null && kind !== 'unknown' ? kind : undefined;
}

/** The keys of records that name no owner: another name would be given the key of such a payment. */
export const ownerless = (keyspace: Keyspace): string[] =>
  recordsIn(keyspace).filter((key) => keyspace.run('HGET', [key, 'whose']) === null);

/** How many payments of a client are recorded as sent. */
export function countedIn(keyspace: Keyspace, clientId: string): Mark {
  const [epoch = 0, sent = 0] = ['epoch', 'sent'].map((field) =>
    Number(keyspace.run('HGET', [`pasarela:money:{${clientId}}:ledger`, field]) ?? 0),
  );
  return { epoch, sent };
}
