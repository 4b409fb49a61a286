import type { Logger } from '../common/logger.ts';
import type { MoneyMutation } from './intent.ts';

/** An answer that is not the answer to its order. */
export interface Mismatch {
  readonly mutation: MoneyMutation;
  readonly clientId: string;
  /** The fields of the answer that differ from the order. */
  readonly fields: readonly string[];
}

/** Reports a mismatch to the operator, by a log line and a counter: somebody on the way has mixed answers up. */
export function tellMismatch(
  mismatch: Mismatch,
  logger: Logger,
  count: ((mutation: MoneyMutation) => void) | undefined,
): void {
  logger.error(mismatch, 'the answer to a payment is not the answer to its order; its outcome is unknown');
  count?.(mismatch.mutation);
}
