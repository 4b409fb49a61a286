import { Lru } from '../common/lru.ts';
import type { MoneyRecords } from './record.ts';

/** Of so many clients the key is kept, 32 bytes each. */
const MOST = 10_000;

/**
 * Returns `idKey` for lines of the log: while the store cannot be read, it resolves with the key that the store has said last. In an outage
 * the lines are then found by the payment's id. Another key may hold once the store is back without its data, so an answer to a caller needs
 * the store's own word.
 */
export function createLogIds(records: Pick<MoneyRecords, 'idKey'>): Pick<MoneyRecords, 'idKey'> {
  const known = new Lru<Buffer>(MOST);
  return {
    async idKey(clientId) {
      try {
        const key = await records.idKey(clientId);
        known.set(clientId, key);
        return key;
      } catch (error) {
        const key = known.get(clientId);
        if (key === undefined) throw error;
        return key;
      }
    },
  };
}
