import { expect, it } from 'vitest';
import { paymentOf } from '../../../src/resolvers/payments/payment-state.ts';
import { unknownWords } from '../../../src/resolvers/payments/unknown-outcome.ts';

it('who is told that no answer came is not told that the same answer comes again', () => {
  const told = { safeToRetry: true, sameAnswerAgain: true } as const;
  const again = 'The same answer comes again and again.';
  expect(unknownWords({ ...told, reason: 'STILL_PROCESSING' })).toContain(again);
  const words = unknownWords({ ...told, reason: 'NO_ANSWER' });
  expect(words).not.toContain(again);
  expect(words).toContain('No answer of the service has come that settles it. What comes in its place');
});

it.each([
  ['mismatch', 'ANSWER_DOES_NOT_MATCH'],
  ['still-processing', 'STILL_PROCESSING'],
  ['no-answer', 'NO_ANSWER'],
  ['stopped', 'NO_ANSWER'],
])('of money out at which the gateway has seen %s last, the reason is %s', (seen, code) => {
  const order = {
    operation: 'createMoneyOut',
    customerId: null,
    amount: '1.00',
    requestedBy: 'alma',
  } as const;
  const record = {
    ...({ id: 'id', hash: 'hash', keyOwner: null, state: 'sent', isHeld: false, createdAt: 0 } as const),
    ...{
      sent: { sentAt: 0, ageMs: 0 },
      body: '{}',
      settledAt: null,
      attempts: 2,
      answer: null,
      original: null,
    },
    ...{ asked: { ...order, source: 'one', destination: 'other' }, seen },
  };
  const { code: told, message, safeToRetry } = paymentOf(record, 1_000);
  expect({ told, safeToRetry }).toEqual({ told: code, safeToRetry: true });
  expect(message).not.toContain('by itself');
});

it('who is told that payments were stopped is not told that the payment was sent again', () => {
  const words = unknownWords({ reason: 'NO_ANSWER', safeToRetry: true, seen: 'stopped' });
  expect(words).toContain('has not sent it again, as payments were stopped');
});

it('nobody is told that no event names a payment that has not been looked for to the end', () => {
  for (const seen of ['unread', 'too-many', 'early', 'undated', 'unreadable', 'out-of-reach']) {
    expect(unknownWords({ reason: 'NO_ANSWER', safeToRetry: false, seen })).not.toContain('no event names');
  }
});
