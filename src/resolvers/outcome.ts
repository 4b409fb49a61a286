import { verdictOf } from '../common/attempt.ts';
import { isDocumentedError } from '../upstream/call/documented-error.ts';
import { errorOfAnswer, UpstreamError } from '../upstream/call/errors.ts';
import type { Attempt } from '../upstream/call/http.ts';
import { OutcomeUnknown } from './errors.ts';
import { type RefusalRules, refusalError } from './service-refusal.ts';

export interface SendOnce extends RefusalRules {
  /**
   * What the caller is told where the answer was lost. `data`: the union's `OutcomeUnknown`. `error`: a top-level error, as the request may be
   * sent again without harm; its union has no `OutcomeUnknown`.
   */
  readonly unclear: 'data' | 'error';
}

/**
 * The success of a request that was sent once and moves no money.
 *
 * @param read what the body of a 2xx says; undefined, or an UpstreamError, when it cannot be read.
 * @throws UserError of the union, for a refusal.
 * @throws OutcomeUnknown when the request left and no clear answer came.
 * @throws UpstreamError when nothing can have happened, or where the union has no place for it.
 */
export function successOf<T>(attempt: Attempt, read: (body: unknown) => T | undefined, rules: SendOnce): T {
  if (attempt.kind === 'failed') {
    if (!attempt.error.dispatched) throw attempt.error;
    throw unclear(attempt.error, rules);
  }
  const { status, body } = attempt;
  switch (verdictOf(status)) {
    case 'accepted':
      return acceptedOf(body, read, rules);
    case 'turned-away':
      // Somebody on the way may turn away the answer, and not know what became of the request.
      if (attempt.synthesized === true || isDocumentedError(attempt)) throw errorOfAnswer(attempt);
      throw unclear(errorOfAnswer(attempt), rules);
    case 'refused':
      throw refusalError(attempt, rules);
    case 'unclear':
      throw unclear(errorOfAnswer(attempt), rules);
  }
}

/** What the body of a 2xx says. One that cannot be read may be the answer to a change that was made. */
function acceptedOf<T>(body: unknown, read: (body: unknown) => T | undefined, rules: SendOnce): T {
  let value: T | undefined;
  try {
    value = read(body);
  } catch (error) {
    throw error instanceof UpstreamError ? unclear(error, rules) : error;
  }
  if (value !== undefined) return value;
  throw unclear(new UpstreamError('UPSTREAM_INVALID', "The service's answer cannot be read."), rules);
}

const unclear = (error: UpstreamError, rules: SendOnce): Error =>
  rules.unclear === 'error'
    ? error
    : new OutcomeUnknown(
        `It may or may not have happened. ${error.message} Look before sending it again: the gateway does not keep it from happening twice.`,
        { reason: 'NO_ANSWER', safeToRetry: false },
      );
