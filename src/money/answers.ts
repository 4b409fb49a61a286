import type { UpstreamAnswer } from '../common/attempt.ts';
import type { Call } from './call.ts';
import { tellMismatch } from './mismatch.ts';
import { type AnswerReading, type Comparison, mismatched, type Outcome, type outcomeOf } from './outcome.ts';
import type { StoredAnswer } from './record.ts';

/** Reads answers for {@link outcomeOf}, and tells the operator of one that is not the answer to its order. */
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

/** What the reader of an answer chokes on cannot be read. */
export function readable<T>({ order, logger }: Call, read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (err) {
    logger.error({ err, mutation: order.mutation }, 'reading the answer to a money request threw');
    return otherwise;
  }
}

/** @returns undefined for what is no JSON */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Stores an outcome that is settled. A transaction that the record knows as another payment's answers no second one: somebody on the way
 * has mixed answers up.
 */
export async function stored(call: Call, outcome: Outcome): Promise<Outcome> {
  if (outcome.kind !== 'done' && outcome.kind !== 'refused') return outcome;
  const isOwn = await storeAnswer(call, outcome.kind, outcome.answer);
  return isOwn ? outcome : mismatched(call.order.mutation, outcome.answer);
}

/**
 * Stores what the upstream said. While the store is away, the caller is told all the same.
 *
 * @returns false where the transaction is known to be another payment's: nothing was stored.
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
  await persistence.persist('answer', async () => {
    isOwn = await records.answer(name, order.inputHash, answer, transactionId, code);
    if (!isOwn) tellOf(call, ['id']);
  });
  return isOwn;
}

const tellOf = ({ order, logger, onMismatch }: Call, fields: readonly string[]): void =>
  tellMismatch({ mutation: order.mutation, clientId: order.clientId, fields }, logger, onMismatch);
