import type { Mark } from '../../src/money/mark.ts';
import type { Keyspace } from './redis/keyspace.ts';

/** The keys of the records of payments. */
export const recordsIn = (keyspace: Keyspace): string[] =>
  keyspace.keys().filter((key) => /^pasarela:money:\{[^}]*\}:[\w-]{43}$/.test(key));

/** How many payments of a client are recorded as sent. */
export function countedIn(keyspace: Keyspace, clientId: string): Mark {
  const [epoch = 0, sent = 0] = ['epoch', 'sent'].map((field) =>
    Number(keyspace.run('HGET', [`pasarela:money:{${clientId}}:ledger`, field]) ?? 0),
  );
  return { epoch, sent };
}
