import type { Attempt, UpstreamAnswer } from '../common/attempt.ts';
import { begunBy } from './begun.ts';
import type { Call } from './call.ts';
import { tellMismatch } from './mismatch.ts';
import {
  type AnswerReading,
  type Comparison,
  isConflict,
  mismatched,
  type Outcome,
  outcomeOf,
} from './outcome.ts';
import type { StoredAnswer } from './record.ts';

/**
 * Returns how answers are read for {@link outcomeOf}. An answer that is not the answer to its order is logged and counted for
 * the operator.
 */
function readingOf(call: Call): AnswerReading {
  const { order } = call;
  return {
    isServiceError: (answer) => readable(call, () => order.calls.isServiceError(answer), false),
    compare(answer) {
      const unreadable: Comparison = { kind: 'unreadable' };
      const found = readable(call, () => order.calls.compare(answer), unreadable);
      if (found.kind === 'differs') tellOf(call, found.fields);
      return found;
    },
  };
}

/** Reads an answer. If the reader throws, logs that and returns `otherwise`. */
export function readable<T>({ order, logger }: Call, read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (err) {
    logger.error({ err, mutation: order.mutation }, 'reading the answer to a money request threw');
    return otherwise;
  }
}

/** Returns the value of a text of JSON; undefined for any other text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the outcome of a request, once what settles or closes the payment is stored. If the record has the transaction for another
 * payment, somebody on the way has mixed answers up: the outcome becomes a mismatch.
 *
 * @param first as in {@link outcomeOf}, as far as this call knows. While it waited to send, its lease may have ended, and whoever took the
 *   payment over may have sent it before. The record says so, and a 409 is then read as that of a repeat.
 */
export async function storedOutcome(call: Call, first: boolean, happened: Attempt): Promise<Outcome> {
  const { mutation } = call.order;
  const outcome = outcomeOf(mutation, first, happened, readingOf(call));
  if (outcome.kind === 'nothing-moved') return outcome;
  if (outcome.kind === 'unknown') {
    const isOpen = outcome.close === undefined || (await storeAnswer(call, 'unknown', outcome.close));
    return isOpen ? outcome : outcomeOf(mutation, false, happened, readingOf(call));
  }
  if (await storeAnswer(call, outcome.kind, outcome.answer)) return outcome;
  if (isConflict(mutation, outcome.answer)) return outcomeOf(mutation, false, happened, readingOf(call));
  const mixedUp = mismatched(mutation, outcome.answer);
  if (mixedUp.close !== undefined) await storeAnswer(call, 'unknown', mixedUp.close);
  return mixedUp;
}

/**
 * Stores the answer of the upstream. While the store is away the caller is answered all the same, but for a refusal that counts only while
 * nobody has taken the payment over: whoever has goes on sending it.
 *
 * @returns false if the outcome is another one: the transaction is known to be another payment's, or the answer is not known to be that to
 *   a first request, as it would have to be.
 */
async function storeAnswer(
  call: Call,
  kind: StoredAnswer['kind'],
  { status, text, body }: UpstreamAnswer,
): Promise<boolean> {
  const { records, name, order, persistence } = call;
  const onlyOf = isConflict(order.mutation, { status }) ? call.owner : undefined;
  const answer = { kind, status, text, onlyOf };
  const id = kind === 'done' ? Object(body)['id'] : undefined;
  const transactionId = typeof id === 'string' ? id : undefined;
  const code = kind === 'refused' ? readable(call, () => order.calls.codeOf({ status, text, body }), '') : '';
  let isOwn = true;
  const isDone = await persistence.persist('answer', name, async () => {
    isOwn = await records.answer(name, order.inputHash, answer, transactionId, code, begunBy(order));
    if (!isOwn && onlyOf === undefined) tellOf(call, ['id']);
  });
  return isOwn && (isDone || kind !== 'refused' || onlyOf === undefined);
}

function tellOf({ order, name, records, logger, onMismatch }: Call, fields: readonly string[]): void {
  void tellMismatch({ mutation: order.mutation, name, fields }, records, logger, onMismatch);
}
