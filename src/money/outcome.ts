import type { MoneyMutation } from './intent.ts';

/** An answer of the upstream that came whole. */
export interface UpstreamAnswer {
  readonly status: number;
  /** The parsed JSON; undefined when the text is none. */
  readonly body: unknown;
  readonly text: string;
}

/**
 * What became of one request.
 *
 * `not-dispatched` is claimed only for what cannot have left: no connection, breaker open, deadline spent before. Anything
 * after the first byte may have left is `lost`: reset, timeout, truncated answer.
 */
export type Exchange =
  | ({ readonly kind: 'response' } & UpstreamAnswer)
  | { readonly kind: 'not-dispatched'; readonly reason: string; readonly cause?: unknown }
  | { readonly kind: 'lost'; readonly reason: string; readonly cause?: unknown };

/** Where a request stands among those sent under its key. */
export interface Attempt {
  /** True when no earlier request under this key can have reached the upstream. */
  readonly first: boolean;
  /** What became of the request before it, where the same call saw it. */
  readonly previous: Exchange | undefined;
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

/** Refusals by an outer layer, before the service took the request up. */
const BEFORE_ANYTHING_HAPPENED = new Set([401, 403, 429]);
/** Statuses of a server or proxy that gave up on a request which it may have passed on. */
const GAVE_UP = new Set([408, 425]);

/**
 * The outcome table of a request that moves money. Pure.
 *
 * @param isTransaction whether a 2xx answer is a transaction that can be read.
 */
export function outcomeOf(
  mutation: MoneyMutation,
  attempt: Attempt,
  happened: Exchange,
  isTransaction: (answer: UpstreamAnswer) => boolean,
): Outcome {
  if (happened.kind === 'not-dispatched')
    return attempt.first ? { kind: 'nothing-moved' } : unknown(mutation);
  if (happened.kind === 'lost') return unknown(mutation);
  const { status, body, text } = happened;
  const answer: UpstreamAnswer = { status, body, text };
  if (status >= 200 && status < 300) {
    return isTransaction(answer) ? { kind: 'done', answer } : unknown(mutation);
  }
  if (status < 400 || status >= 500 || GAVE_UP.has(status)) return unknown(mutation);
  if (BEFORE_ANYTHING_HAPPENED.has(status)) {
    if (attempt.first) return { kind: 'nothing-moved' };
    // Asking again without the right to ask gives the same answer; waiting does help against a rate limit.
    return status === 429 ? unknown(mutation) : { kind: 'unknown', next: 'report' };
  }
  if (status === 409 && mutation === 'createMoneyOut') return conflict(attempt, answer);
  const believed = attempt.first || cameTwice(attempt, status);
  return believed ? { kind: 'refused', answer } : unknown(mutation);
}

/**
 * The upstream's 409 of money out says "in progress" or "other body", and no documented field tells which (docs/upstream-api.md,
 * endpoint 11). On a repeat of our own bytes it can only be the former. On a first attempt the key was in use
 * upstream though no record of it is left here: repeating may still bring the answer of a call that is running, but
 * how long the upstream remembers that call is not ours to know, so that nothing may be sent later.
 */
function conflict(attempt: Attempt, answer: UpstreamAnswer): Outcome {
  if (!attempt.first) return { kind: 'unknown', next: 'repeat' };
  if (answer.text.includes('external_transfer_not_allowed')) return { kind: 'refused', answer };
  return { kind: 'unknown', next: 'repeat-now-or-never', answer };
}

/**
 * The upstream repeats its first answer for 24 hours, so a refusal of the lost request comes as often as one asks. A 4xx
 * that some proxy gave to the repeat alone does not speak for the request that was lost before it, and does not stay.
 */
function cameTwice({ previous }: Attempt, status: number): boolean {
  return previous?.kind === 'response' && previous.status === status;
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
