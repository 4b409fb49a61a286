import type { UpstreamAnswer } from '../common/attempt.ts';
import { begunBy } from './begun.ts';
import type { Call } from './call.ts';
import { tellMismatch } from './mismatch.ts';
import { type AnswerReading, type Comparison, mismatched, type Outcome, type outcomeOf } from './outcome.ts';
import type { StoredAnswer } from './record.ts';

/**
 * Returns how answers are read for {@link outcomeOf}. An answer that is not the answer to its order is logged and counted for
 * the operator.
 */
export function readingOf(call: Call): AnswerReading {
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
 * Stores a settled outcome. If the record has the transaction for another payment, somebody on the way has mixed answers up:
 * the outcome becomes a mismatch.
 */
export async function stored(call: Call, outcome: Outcome): Promise<Outcome> {
  if (outcome.kind !== 'done' && outcome.kind !== 'refused') return outcome;
  const isOwn = await storeAnswer(call, outcome.kind, outcome.answer);
  return isOwn ? outcome : mismatched(call.order.mutation, outcome.answer);
}

/**
 * Stores the answer of the upstream. While the store is away the caller is answered all the same.
 *
 * @returns false if the transaction is known to be another payment's: nothing was stored.
 */
export async function storeAnswer(
  call: Call,
  kind: StoredAnswer['kind'],
  { status, text, body }: UpstreamAnswer,
): Promise<boolean> {
  const { records, name, order, persistence } = call;
  const answer = { kind, status, text };
  const id = kind === 'done' ? Object(body)['id'] : undefined;
  const transactionId = typeof id === 'string' ? id : undefined;
  const code = kind === 'refused' ? readable(call, () => order.calls.codeOf({ status, text, body }), '') : '';
  let isOwn = true;
  await persistence.persist('answer', name, async () => {
    isOwn = await records.answer(name, order.inputHash, answer, transactionId, code, begunBy(order));
    if (!isOwn) tellOf(call, ['id']);
  });
  return isOwn;
}

function tellOf({ order, name, records, logger, onMismatch }: Call, fields: readonly string[]): void {
  void tellMismatch({ mutation: order.mutation, name, fields }, records, logger, onMismatch);
}
