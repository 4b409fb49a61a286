import type { Mark } from '../../src/money/mark.ts';
import type { Keyspace } from './redis/keyspace.ts';

/** Whether a key belongs to the record of payments. */
export const isOfPayments = (key: string): boolean => key.startsWith('pasarela:money');

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

/** Which of these keys have a record that names no owner. */
export const ownerless = (keyspace: Keyspace, keys: readonly string[]): string[] =>
  keys.filter((key) => {
    const [state, whose] = keyspace.run('HMGET', [key, 'state', 'whose']) as (string | null)[];
    return state !== null && whose === null;
  });

/** When a payment was last recorded as sent, by its text, in ms since the epoch; undefined where its record does not say. */
export function recordedSentAt(keyspace: Keyspace, text: string): number | undefined {
  for (const key of recordsIn(keyspace)) {
    const [body, sentAt] = keyspace.run('HMGET', [key, 'body', 'sentAt']) as (string | null)[];
    if (body === text && sentAt != null) return Number(sentAt);
  }
  return undefined;
}

const ledgerOf = (clientId: string): string => `pasarela:money:{${clientId}}:ledger`;

/** Whether a key is that of a ledger, which counts what is recorded as sent. */
export const isLedger = (key: string): boolean => /^pasarela:money:\{[^}]*\}:ledger$/.test(key);

/** Whether payments are held by a ledger, as the record was found to be put back. */
export const isHeldBy = (keyspace: Keyspace, ledger: string): boolean =>
  keyspace.run('HGET', [ledger, 'held']) !== null;

/** How many payments of a client are recorded as sent. */
export function countedIn(keyspace: Keyspace, clientId: string): Mark {
  const [epoch = 0, sent = 0] = ['epoch', 'sent'].map((field) =>
    Number(keyspace.run('HGET', [ledgerOf(clientId), field]) ?? 0),
  );
  return { epoch, sent };
}

/** Whether the payments of a client are held, as its record was found to be put back. */
export const isHeldIn = (keyspace: Keyspace, clientId: string): boolean =>
  isHeldBy(keyspace, ledgerOf(clientId));
