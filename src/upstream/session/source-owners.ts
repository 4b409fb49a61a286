import { Lru } from '../../common/lru.ts';
import { present } from '../call/json.ts';
import { isId } from '../call/path.ts';
import type { Rest } from '../call/rest.ts';
import { instrumentOwner } from '../customer-scope.ts';
import { readInstrument } from '../instruments.ts';
import { readTransaction, type Transaction } from '../transactions.ts';

/** Owners kept in memory: an owner, once known, never changes. */
const REMEMBERED = 20_000;
/** How long a transaction that the upstream does not know, or whose instrument it does not know, is not asked for again, in milliseconds. */
const UNKNOWN_FOR_MS = 60_000;

/** Finds the owner of the instrument from which the money of a transaction came. */
export interface SourceOwners {
  /** Returns the answer of `find` if that needs no call, else undefined. */
  known(
    clientId: string,
    transactionId: string,
    isSettled: boolean,
  ): { readonly owner: string | null | undefined } | undefined;
  /**
   * Returns the owner's id; null if the transaction names no source, or its instrument no owner or two; undefined if the service
   * knows no such transaction, or no such instrument.
   *
   * @param isSettled true if a transaction that is unknown now is not about to appear: such questions then have it asked for
   * once in a minute. One that may be about to appear is asked for each time.
   */
  find(rest: Rest, transactionId: string, isSettled: boolean): Promise<string | null | undefined>;
}

/** Reads each transaction once, for all callers of the process, and remembers what it found. */
export function createSourceOwners(): SourceOwners {
  const known = new Lru<{ readonly owner: string | null | undefined }>(REMEMBERED);
  const keyOf = (clientId: string, transactionId: string) => `${clientId} ${transactionId}`.toLowerCase();
  const knownOf: SourceOwners['known'] = (clientId, transactionId, isSettled) => {
    const found = known.get(keyOf(clientId, transactionId));
    // A transaction that was asked for too soon may be there by the time of its next message.
    return isSettled || found?.owner !== undefined ? found : undefined;
  };
  return {
    known: knownOf,
    async find(rest, transactionId, isSettled) {
      const key = keyOf(rest.clientId, transactionId);
      const found = knownOf(rest.clientId, transactionId, isSettled);
      if (found !== undefined) return found.owner;
      const transaction = await readTransaction(rest, transactionId);
      const owner = transaction === null ? undefined : await ownerOfSource(rest, transaction);
      if (owner !== undefined) known.set(key, { owner });
      else if (isSettled) known.set(key, { owner }, { ttl: UNKNOWN_FOR_MS });
      return owner;
    },
  };
}

/** Undefined where the service does not know the instrument: a 404 may be somebody's on the way, and what is known is never asked again. */
async function ownerOfSource(
  rest: Rest,
  { sourceInstrument: source }: Transaction,
): Promise<string | null | undefined> {
  if (source == null) return null;
  const named = present(source.ownerId);
  if (named !== null) return named;
  if (!isId(source.id)) return null;
  const instrument = await readInstrument(rest, source.id);
  return instrument === null ? undefined : instrumentOwner(instrument);
}
