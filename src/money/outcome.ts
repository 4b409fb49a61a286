import { type Answered, type Attempt, type UpstreamAnswer, verdictOf } from '../common/attempt.ts';
import type { MoneyMutation } from './intent.ts';

/** Why an outcome is unknown. */
export type UnknownReason =
  /** No complete answer came, or one that does not tell what became of the payment: a 5xx, a page of a proxy, a 401 to a repeat. */
  | 'NO_ANSWER'
  /** The service says that a request with this key is still under way. */
  | 'STILL_PROCESSING'
  /** The service's answer is not the answer to this order. */
  | 'ANSWER_DOES_NOT_MATCH'
  /** The service has forgotten the key, or may have. */
  | 'TOO_LATE_TO_ASK';

/**
 * What may be done about an unknown outcome.
 *
 * - `repeat`: send the same bytes under the same upstream key, as long as the call has time.
 * - `repeat-briefly`: likewise, but a few times only: after a first 409, or an answer that is not the answer to the order, a repeat
 *   soon shows if there will be another.
 * - `read-original`: read the credit to be refunded.
 * - `report`: nothing.
 */
type Next = 'repeat' | 'repeat-briefly' | 'read-original' | 'report';

/**
 * The outcome of one request.
 *
 * - `done`, `refused`: settled by the upstream's answer; stored.
 * - `nothing-moved`: refused before anything happened. The key is free again, and the caller gets a top-level error.
 * - `unknown`: with `close`, nothing may be sent under the key after this call, and that is stored with the answer. `unread` is a complete answer
 *   that the gateway does not understand, which an operator has to see. One that breaks off is none: the attempt has `failed`.
 */
export type Outcome =
  | { readonly kind: 'done' | 'refused'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'nothing-moved' }
  | {
      readonly kind: 'unknown';
      readonly reason: UnknownReason;
      readonly next: Next;
      readonly close?: UpstreamAnswer;
      readonly unread?: Answered;
    };

/**
 * A 2xx answer compared with the order: it is the answer to it, it is a transaction that differs in the named fields, or it
 * cannot be read.
 */
export type Comparison =
  | { readonly kind: 'same' | 'unreadable' }
  | { readonly kind: 'differs'; readonly fields: readonly string[] };

/** How an answer is read. */
export interface AnswerReading {
  /** Compares a 2xx with this order. */
  compare(answer: UpstreamAnswer): Comparison;
  /** True if a 4xx comes from the service itself, and not from a proxy. */
  isServiceError(answer: UpstreamAnswer): boolean;
}

/**
 * The outcome table of a request that moves money. Pure. An answer counts by who gives it and by what it says, never by its
 * status alone: the proxies between here and the service answer without knowing what became of the request.
 *
 * @param first true if no earlier request under this key can have reached the upstream.
 */
export function outcomeOf(
  mutation: MoneyMutation,
  first: boolean,
  attempt: Attempt,
  reading: AnswerReading,
): Outcome {
  if (attempt.kind === 'failed') {
    return first && !attempt.error.dispatched ? { kind: 'nothing-moved' } : unknown(mutation, 'NO_ANSWER');
  }
  const { status, body } = attempt;
  const answer: UpstreamAnswer = { status, body, text: textOf(attempt) };
  const verdict = verdictOf(status);
  if (verdict === 'unclear') return status < 400 ? unread(mutation, attempt) : unknown(mutation, 'NO_ANSWER');
  if (verdict === 'accepted') return accepted(mutation, attempt, answer, reading);
  return denied(mutation, first, attempt, answer, reading);
}

/** The text to be stored. That of a long answer is not kept while it is read, and a payment without its answer could not be shown again. */
const textOf = ({ body, text }: Answered): string =>
  text === '' && body !== undefined ? JSON.stringify(body) : text;

function accepted(
  mutation: MoneyMutation,
  attempt: Answered,
  answer: UpstreamAnswer,
  reading: AnswerReading,
): Outcome {
  switch (reading.compare(answer).kind) {
    case 'same':
      return { kind: 'done', answer };
    case 'unreadable':
      return unread(mutation, attempt);
    case 'differs':
      return mismatched(mutation, answer);
  }
}

/** Returns the outcome of an order after a 2xx that is not the answer to it. */
export function mismatched(
  mutation: MoneyMutation,
  answer: UpstreamAnswer,
): Extract<Outcome, { kind: 'unknown' }> {
  const { next } = unknown(mutation, 'ANSWER_DOES_NOT_MATCH');
  const reason = 'ANSWER_DOES_NOT_MATCH';
  // The service repeats its first answer, so a repeat shows whether somebody on the way had mixed answers up.
  if (next === 'repeat') return { kind: 'unknown', reason, next: 'repeat-briefly' };
  return { kind: 'unknown', reason, next, close: answer };
}

function denied(
  mutation: MoneyMutation,
  first: boolean,
  attempt: Answered,
  answer: UpstreamAnswer,
  reading: AnswerReading,
): Outcome {
  const { status } = answer;
  const isService = attempt.synthesized === true || reading.isServiceError(answer);
  if (verdictOf(status) === 'turned-away') {
    if (!isService) return unread(mutation, attempt);
    if (first) return { kind: 'nothing-moved' };
    // A 401 or 403 would come again. After a 429, waiting helps.
    return status === 429
      ? unknown(mutation, 'NO_ANSWER')
      : { kind: 'unknown', reason: 'NO_ANSWER', next: 'report' };
  }
  if (isConflict(mutation, answer)) return conflict(first, answer);
  return isService ? { kind: 'refused', answer } : unread(mutation, attempt);
}

/** True for the 409 of money out: it settles or closes the payment as the answer to the first request under its key, and to no repeat. */
export const isConflict = (mutation: MoneyMutation, { status }: Pick<UpstreamAnswer, 'status'>): boolean =>
  status === 409 && mutation === 'createMoneyOut';

/**
 * The upstream's 409 of money out means "in progress" or "other body", and no documented field tells which
 * (docs/upstream-api.md, endpoint 11). A first one with a documented identifier is a refusal. After any other first one the key was
 * already in use at the upstream, although no record of it is left here. Repeating may then still bring the answer of a call
 * that is under way. But nobody knows how long the upstream remembers that call, so nothing may be sent later.
 *
 * On a repeat of our own bytes it is "in progress", or a first answer whose refusal was lost and comes again. The latter stays unknown too:
 * it is not documented whether the upstream looks at the key before it looks for a reason to refuse.
 */
function conflict(first: boolean, answer: UpstreamAnswer): Outcome {
  const reason = 'STILL_PROCESSING';
  if (!first) return { kind: 'unknown', reason, next: 'repeat' };
  if (answer.text.includes('external_transfer_not_allowed')) return { kind: 'refused', answer };
  return { kind: 'unknown', reason, next: 'repeat-briefly', close: answer };
}

const unread = (mutation: MoneyMutation, answer: Answered): Outcome => ({
  ...unknown(mutation, 'NO_ANSWER'),
  unread: answer,
});

function unknown(
  mutation: MoneyMutation,
  reason: UnknownReason,
): { readonly kind: 'unknown'; readonly reason: UnknownReason; readonly next: Next } {
  switch (mutation) {
    case 'createMoneyOut':
      return { kind: 'unknown', reason, next: 'repeat' };
    case 'refundTransaction':
      return { kind: 'unknown', reason, next: 'read-original' };
    case 'createInternalTransaction':
    case 'createPennyValidation':
      return { kind: 'unknown', reason, next: 'report' };
  }
}
