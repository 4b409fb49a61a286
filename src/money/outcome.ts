import { type Answered, type Attempt, type UpstreamAnswer, verdictOf } from '../common/attempt.ts';
import type { MoneyMutation } from './intent.ts';

/** Why an outcome is unknown. */
export type UnknownReason =
  /** The answer was lost, or something other than the service gave it. */
  | 'NO_ANSWER'
  /** The service says that a request with this key is still under way. */
  | 'STILL_PROCESSING'
  /** The service's answer is not the answer to this order. */
  | 'ANSWER_DOES_NOT_MATCH'
  /** The service has forgotten the key by now, or may have. */
  | 'TOO_LATE_TO_ASK';

/**
 * What may be done about an unknown outcome.
 *
 * - `repeat`: the same bytes under the same upstream key, as long as the call has time.
 * - `repeat-briefly`: likewise, a few times only: the same answer has been the service's own.
 * - `read-original`: the credit to be refunded.
 * - `report`: nothing.
 */
type Next = 'repeat' | 'repeat-briefly' | 'read-original' | 'report';

/**
 * What is known afterwards.
 *
 * - `done`, `refused`: settled by the upstream's answer; stored.
 * - `nothing-moved`: refused before anything happened; the key is free again, and the caller gets a top-level error.
 * - `unknown`: with `close`, nothing may be sent under the key after this call, and that is stored with the answer.
 */
export type Outcome =
  | { readonly kind: 'done' | 'refused'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'nothing-moved' }
  | {
      readonly kind: 'unknown';
      readonly reason: UnknownReason;
      readonly next: Next;
      readonly close?: UpstreamAnswer;
    };

/**
 * A 2xx answer beside the order: it answers it; it is a transaction that does not, in the fields that are named; or it cannot be
 * read.
 */
export type Comparison =
  | { readonly kind: 'same' | 'unreadable' }
  | { readonly kind: 'differs'; readonly fields: readonly string[] };

/** How an answer is read. */
export interface AnswerReading {
  /** Whether a 2xx answers this order. */
  compare(answer: UpstreamAnswer): Comparison;
  /** Whether a 4xx is the service's own word, and not that of somebody on the way. */
  isServiceError(answer: UpstreamAnswer): boolean;
}

/**
 * The outcome table of a request that moves money. Pure. What is told is believed by who says it and what it says, never by its
 * status alone: between here and the service stand others, who answer without knowing what became of the request.
 *
 * @param first true when no earlier request under this key can have reached the upstream.
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
  const { status, body, text } = attempt;
  const answer: UpstreamAnswer = { status, body, text };
  const verdict = verdictOf(status);
  if (verdict === 'unclear') return unknown(mutation, 'NO_ANSWER');
  if (verdict === 'accepted') return accepted(mutation, answer, reading);
  return denied(mutation, first, attempt, answer, reading);
}

function accepted(mutation: MoneyMutation, answer: UpstreamAnswer, reading: AnswerReading): Outcome {
  switch (reading.compare(answer).kind) {
    case 'same':
      return { kind: 'done', answer };
    case 'unreadable':
      return unknown(mutation, 'NO_ANSWER');
    case 'differs':
      return mismatched(mutation, answer);
  }
}

/** The outcome of an order after a 2xx that is not the answer to it. */
export function mismatched(mutation: MoneyMutation, answer: UpstreamAnswer): Outcome {
  const { next } = unknown(mutation, 'ANSWER_DOES_NOT_MATCH');
  const reason = 'ANSWER_DOES_NOT_MATCH';
  // The service repeats its first answer: a second time tells whether somebody on the way had mixed answers up.
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
    if (!isService) return unknown(mutation, 'NO_ANSWER');
    if (first) return { kind: 'nothing-moved' };
    // Asking again without the right to ask gives the same answer; waiting does help against a rate limit.
    return status === 429
      ? unknown(mutation, 'NO_ANSWER')
      : { kind: 'unknown', reason: 'NO_ANSWER', next: 'report' };
  }
  if (status === 409 && mutation === 'createMoneyOut') return conflict(first, answer);
  return isService ? { kind: 'refused', answer } : unknown(mutation, 'NO_ANSWER');
}

/**
 * The upstream's 409 of money out says "in progress" or "other body", and no documented field tells which (docs/upstream-api.md,
 * endpoint 11). On a repeat of our own bytes it can only be the former. On a first attempt the key was in use
 * upstream though no record of it is left here: repeating may still bring the answer of a call that is running, but
 * how long the upstream remembers that call is not ours to know, so that nothing may be sent later.
 */
function conflict(first: boolean, answer: UpstreamAnswer): Outcome {
  const reason = 'STILL_PROCESSING';
  if (!first) return { kind: 'unknown', reason, next: 'repeat' };
  if (answer.text.includes('external_transfer_not_allowed')) return { kind: 'refused', answer };
  return { kind: 'unknown', reason, next: 'repeat-briefly', close: answer };
}

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
