import type { UnknownReason } from '../../money/outcome.ts';
import type { Seen } from '../../money/settling/open-payment.ts';

const WHY: Readonly<Record<UnknownReason, string>> = {
  NO_ANSWER: 'No answer of the service has come that settles it.',
  STILL_PROCESSING: 'The service says that a request with this key is still under way.',
  ANSWER_DOES_NOT_MATCH: 'The answer that came is not the answer to this payment.',
  TOO_LATE_TO_ASK: 'The service remembers a key for a day only, so the payment is not sent again.',
};

/** What the gateway saw when it asked or looked last. Nothing here says that it goes on: that ends (docs/payments.md). */
const SEEN: Readonly<Record<Seen, string>> = {
  'no-answer': 'The gateway has tried to send it again, and no answer came that settles it.',
  stopped: 'The gateway has not sent it again, as payments were stopped.',
  'still-processing': 'It was still so when the gateway sent it again.',
  mismatch: 'The gateway has sent it again, and had such an answer.',
  nothing: 'The gateway has looked for it: so far no event names a transaction that is this payment.',
  unread: 'The gateway has begun to look for it, and has not read yet all that may be it.',
  alike: 'A movement like it has been found, and more than one payment, or movement, could be it.',
  early:
    'A movement like it has been found, which was made or named before the payment was sent: it is another one, or clocks are wrong.',
  undated:
    'A movement like it has been found, which has come back, and nothing shows when it was made: it may be an older one.',
  'too-many': 'There are more transactions, or payments, that may be it than the gateway compares.',
  'not-refunded': 'The credit did not read REFUNDED when it was read last.',
  'other-refund': 'The credit reads REFUNDED, and more than one refund could have returned it.',
  unreadable: 'The gateway could not look for it when it tried last, or could not read all that may be it.',
  'put-back':
    'What could be it has been found, but the record of payments was put back since it was sent, and may have forgotten whose it is.',
  'out-of-reach':
    'The log of events no longer holds all that came since it was sent, so that nothing in it is certain.',
};

/** What is told where the same has come again and again: from the service, or in its place. */
const AGAIN = 'The same answer comes again and again.';
const INSTEAD = 'What comes in its place, such as a page of a proxy, is the same each time.';

const isSeen = (word: string): word is Seen => Object.hasOwn(SEEN, word);

/** What people are told of a payment whose outcome is unknown. */
export function unknownWords({
  reason,
  safeToRetry,
  sameAnswerAgain = false,
  seen = null,
}: {
  readonly reason: UnknownReason;
  readonly safeToRetry: boolean;
  readonly sameAnswerAgain?: boolean;
  /** A word of the record. */
  readonly seen?: string | null | undefined;
}): string {
  const advice = safeToRetry
    ? 'As the same caller, send the same input with the same key again: it cannot happen twice. Do not pay it in another way: this one may still be made, and then both are paid.'
    : 'Do not pay it in another way, nor under another key, until the provider says that this one was not made, and will not be. What it says within a quarter of an hour after the last sending does not count.';
  const stuck = sameAnswerAgain ? ` ${reason === 'NO_ANSWER' ? INSTEAD : AGAIN}` : '';
  const found = seen !== null && isSeen(seen) ? ` ${SEEN[seen]}` : '';
  return `The money may or may not have moved. ${WHY[reason]}${stuck}${found} ${advice}`;
}
