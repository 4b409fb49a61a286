import { expect, it } from 'vitest';
import { unknownWords } from '../../../src/resolvers/payments/unknown-outcome.ts';

it('who is told that no answer came is not told that the same answer comes again', () => {
  const told = { safeToRetry: true, sameAnswerAgain: true } as const;
  const again = 'The same answer comes again and again.';
  expect(unknownWords({ ...told, reason: 'STILL_PROCESSING' })).toContain(again);
  const words = unknownWords({ ...told, reason: 'NO_ANSWER' });
  expect(words).not.toContain(again);
  expect(words).toContain('No answer of the service has come. What comes in its place');
});
