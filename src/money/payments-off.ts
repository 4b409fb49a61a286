import { clock } from '../common/clock.ts';
import { type Hold, type MoneyRecords, PaymentsHeldError } from './record.ts';

/** Returns the same records for a process whose configuration stops payments. It answers what is known, and sends nothing. */
export function withPaymentsOff(records: MoneyRecords): MoneyRecords {
  const off: Hold = { why: 'off', since: clock.now(), missing: 0, copied: undefined };
  return {
    ...records,
    markSent: () => Promise.reject(new PaymentsHeldError('off')),
    // What the configuration says holds also where the store cannot be asked.
    held: async () => [off, ...(await records.held().catch(() => []))],
  };
}

/**
 * Resolves with true if nothing may be sent again, because an operator has stopped payments. That a record was put back does
 * not stop payments that it knows: to send them again moves nothing twice.
 *
 * @param otherwise what it resolves with where the record cannot say
 */
export const isStopped = (records: Pick<MoneyRecords, 'held'>, otherwise: boolean): Promise<boolean> =>
  records.held().then(
    (holds) => holds.some(({ why }) => why !== 'put-back'),
    () => otherwise,
  );
