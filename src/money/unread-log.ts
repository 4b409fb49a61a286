import type { Answered } from '../common/attempt.ts';
import type { Logger } from '../common/logger.ts';
import { createCountedLines } from '../common/rare-lines.ts';
import type { MoneyMutation, RecordName } from './intent.ts';
import { paymentIdOf } from './payment-reads.ts';
import type { MoneyRecords } from './record.ts';

/** Told of each answer to a payment that the gateway does not understand (outcome.ts, `unread`). */
export type UnreadLog = (
  payment: { readonly mutation: MoneyMutation; readonly name: RecordName },
  answer: Answered,
) => void;

/**
 * Makes the function that logs such answers, so that an operator sees when the service, or somebody on the way, begins to answer otherwise.
 * It writes one line a minute for each client, mutation, status and media type. `answers` of a line counts them since the last one. No line
 * holds a part of the answer's text, as that may name people.
 */
export function createUnreadLog(records: Pick<MoneyRecords, 'idKey'>, logger: Logger): UnreadLog {
  const count = createCountedLines();
  return ({ mutation, name }, { status, contentType, bytes }) => {
    const { clientId } = name;
    count(`${clientId} ${mutation} ${status} ${contentType}`, (answers) => {
      void paymentIdOf(records, name).then((paymentId) => {
        const told = { mutation, clientId, paymentId, status, contentType, bytes, answers };
        logger.warn(
          told,
          'the answer to a payment has no form that the gateway knows; its outcome is unknown',
        );
      });
    });
  };
}
