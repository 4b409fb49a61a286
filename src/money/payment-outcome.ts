import type { MoneyResult } from './call.ts';
import { PaymentsHeldError, RecordsUnavailableError } from './record.ts';

/**
 * How a call ended, for the log and the counters.
 *
 * - `replayed`: an earlier call had settled its payment.
 * - `refused`: the service has refused.
 * - `not_sent`: nothing moved, for a reason outside the record: the gateway refused, the service turned the request away, the time was over, or the caller had left.
 * - `conflict`: the key is another payment's, or another call holds it.
 * - `held`, `store_unavailable`: nothing was sent, because the record does not allow it.
 */
export const PAYMENT_OUTCOMES = [
  ...(['done', 'refused', 'unknown', 'replayed', 'not_sent', 'conflict'] as const),
  ...(['held', 'store_unavailable', 'failed'] as const),
];
export type PaymentOutcome = (typeof PAYMENT_OUTCOMES)[number];

export function outcomeName(result: MoneyResult): PaymentOutcome {
  switch (result.kind) {
    case 'done':
    case 'refused':
      return result.replayed ? 'replayed' : result.kind;
    case 'unknown':
    case 'conflict':
      return result.kind;
    case 'nothing-moved':
    case 'refund-not-allowed':
      return 'not_sent';
  }
}

/** Returns the outcome of a call that threw. */
export function failureName(error: unknown): PaymentOutcome {
  if (error instanceof PaymentsHeldError) return 'held';
  return error instanceof RecordsUnavailableError ? 'store_unavailable' : 'failed';
}
