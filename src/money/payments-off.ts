import { clock } from '../common/clock.ts';
import { type Hold, type MoneyRecords, PaymentsHeldError } from './record.ts';

/** The same records, for a process whose configuration holds payments: it answers what is known, and sends nothing. */
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
 * Whether nothing may be sent again either, as an operator has stopped payments. Where the record was put back, what it knows is sent
 * again as ever: that moves nothing twice.
 */
export const isStopped = (records: Pick<MoneyRecords, 'held'>): Promise<boolean> =>
  records.held().then(
    (hold) => hold !== undefined && hold.why !== 'put-back',
    () => false,
  );
