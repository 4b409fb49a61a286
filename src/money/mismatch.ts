import type { Logger } from '../common/logger.ts';
import type { MoneyMutation, RecordName } from './intent.ts';
import { paymentIdOf } from './payment-reads.ts';
import type { MoneyRecords } from './record.ts';

/** An answer that is not the answer to its order. */
export interface Mismatch {
  readonly mutation: MoneyMutation;
  readonly name: RecordName;
  /** The fields of the answer that differ from the order. */
  readonly fields: readonly string[];
}

/** Reports a mismatch to the operator, by a log line and a counter: somebody on the way has mixed answers up. */
export async function tellMismatch(
  { mutation, name, fields }: Mismatch,
  records: Pick<MoneyRecords, 'idKey'>,
  logger: Logger,
  count: ((mutation: MoneyMutation) => void) | undefined,
): Promise<void> {
  count?.(mutation);
  const paymentId = await paymentIdOf(records, name);
  const told = { mutation, clientId: name.clientId, paymentId, fields };
  logger.error(told, 'the answer to a payment is not the answer to its order; its outcome is unknown');
}
