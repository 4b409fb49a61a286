import { type Attempt, type UpstreamAnswer, verdictOf } from '../common/attempt.ts';
import type { MoneyMutation } from './intent.ts';

/** Where a request stands among those sent under its key. */
export interface Turn {
  /** True when no earlier request under this key can have reached the upstream. */
  readonly first: boolean;
  /** What became of the request before it, where the same call saw it. */
  readonly previous: Attempt | undefined;
}

/**
 * What is known afterwards.
 *
 * - `done`, `refused`: settled by the upstream's answer; stored.
 * - `nothing-moved`: refused before anything happened; the key is free again, and the caller gets a top-level error.
 * - `unknown`, and what may be done about it: `repeat` the same bytes under the same upstream key; `repeat-now-or-never`,
 *   likewise, but not after this call; `read-original`, the credit to be refunded; `report`, nothing.
 */
export type Outcome =
  | { readonly kind: 'done' | 'refused'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'nothing-moved' }
  | { readonly kind: 'unknown'; readonly next: 'repeat' | 'read-original' | 'report' }
  | { readonly kind: 'unknown'; readonly next: 'repeat-now-or-never'; readonly answer: UpstreamAnswer };

/**
 * The outcome table of a request that moves money. Pure.
 *
 * @param isTransaction whether a 2xx answer is a transaction that can be read.
 */
export function outcomeOf(
  mutation: MoneyMutation,
  turn: Turn,
  attempt: Attempt,
  isTransaction: (answer: UpstreamAnswer) => boolean,
): Outcome {
  if (attempt.kind === 'failed') {
    return turn.first && !attempt.error.dispatched ? { kind: 'nothing-moved' } : unknown(mutation);
  }
  const { status, body, text } = attempt;
  const answer: UpstreamAnswer = { status, body, text };
  switch (verdictOf(status)) {
    case 'accepted':
      return isTransaction(answer) ? { kind: 'done', answer } : unknown(mutation);
    case 'unclear':
      return unknown(mutation);
    case 'turned-away':
      if (turn.first) return { kind: 'nothing-moved' };
      // Asking again without the right to ask gives the same answer; waiting does help against a rate limit.
      return status === 429 ? unknown(mutation) : { kind: 'unknown', next: 'report' };
    case 'refused': {
      if (status === 409 && mutation === 'createMoneyOut') return conflict(turn, answer);
      const believed = turn.first || cameTwice(turn, status);
      return believed ? { kind: 'refused', answer } : unknown(mutation);
    }
  }
}

/**
 * The upstream's 409 of money out says "in progress" or "other body", and no documented field tells which (docs/upstream-api.md,
 * endpoint 11). On a repeat of our own bytes it can only be the former. On a first attempt the key was in use
 * upstream though no record of it is left here: repeating may still bring the answer of a call that is running, but
 * how long the upstream remembers that call is not ours to know, so that nothing may be sent later.
 */
function conflict(turn: Turn, answer: UpstreamAnswer): Outcome {
  if (!turn.first) return { kind: 'unknown', next: 'repeat' };
  if (answer.text.includes('external_transfer_not_allowed')) return { kind: 'refused', answer };
  return { kind: 'unknown', next: 'repeat-now-or-never', answer };
}

/**
 * The upstream repeats its first answer for 24 hours, so a refusal of the lost request comes as often as one asks. A 4xx
 * that some proxy gave to the repeat alone does not speak for the request that was lost before it, and does not stay.
 */
function cameTwice({ previous }: Turn, status: number): boolean {
  return previous?.kind === 'answered' && previous.status === status;
}

function unknown(mutation: MoneyMutation): Outcome {
  switch (mutation) {
    case 'createMoneyOut':
      return { kind: 'unknown', next: 'repeat' };
    case 'refundTransaction':
      return { kind: 'unknown', next: 'read-original' };
    case 'createInternalTransaction':
    case 'createPennyValidation':
      return { kind: 'unknown', next: 'report' };
  }
}
