import { clock } from '../common/clock.ts';
import { type Hold, type MoneyRecords, PaymentsHeldError } from './record.ts';

/** Returns the same records for a process whose configuration stops payments. It answers what is known, and sends nothing. */
export function withPaymentsOff(records: MoneyRecords): MoneyRecords {
  const off: Hold = { why: 'off', since: clock.now(), missing: 0 };
  return {
    ...records,
    markSent: () => Promise.reject(new PaymentsHeldError('off')),
    held: async () => {
      const hold = await records.held();
      return hold?.why === 'put-back' ? hold : off;
    },
  };
}

/**
 * Resolves with true if nothing may be sent again, because an operator has stopped payments. After a record was put back,
 * payments that it knows are sent again as ever: that moves nothing twice.
 *
 * @param otherwise what it resolves with where the record cannot say
 */
export const isStopped = (records: Pick<MoneyRecords, 'held'>, otherwise: boolean): Promise<boolean> =>
  records.held().then(
    (hold) => hold !== undefined && hold.why !== 'put-back',
    () => otherwise,
  );
