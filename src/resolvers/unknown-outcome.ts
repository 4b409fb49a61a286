import type { UnknownReason } from '../money/outcome.ts';

const WHY: Readonly<Record<UnknownReason, string>> = {
  NO_ANSWER: 'No answer of the service has come.',
  STILL_PROCESSING: 'The service says that a request with this key is still under way.',
  ANSWER_DOES_NOT_MATCH: 'The answer that came is not the answer to this payment.',
  TOO_LATE_TO_ASK: 'The service remembers a key for a day only, so it is not asked again.',
};

/** What people are told of a payment whose outcome is unknown. */
export function unknownWords({
  reason,
  safeToRetry,
  sameAnswerAgain = false,
}: {
  readonly reason: UnknownReason;
  readonly safeToRetry: boolean;
  readonly sameAnswerAgain?: boolean;
}): string {
  const advice = safeToRetry
    ? 'Send the same input with the same key again: it cannot happen twice.'
    : 'Look at the account before paying again under another key.';
  const stuck = sameAnswerAgain ? ' The same answer comes again and again.' : '';
  return `The money may or may not have moved. ${WHY[reason]}${stuck} ${advice}`;
}
