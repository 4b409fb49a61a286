import { expect, it } from 'vitest';
import { toAmount, toCents } from '../../src/common/amounts.ts';

it.each([
  ['1250.00', 125_000n],
  ['1.5', 150n],
  ['0007', 700n],
  ['-5.01', -501n],
  ['-0.50', -50n],
  // More digits than a number keeps.
  ['90071992547409.93', 9_007_199_254_740_993n],
])('%s pesos are %s centavos', (amount, cents) => {
  expect(toCents(amount)).toBe(cents);
});

it.each(['', '-', '.5', '1.', '1.500', '1,000.00', '+1.00', '1e3', '0x1f', ' 1.00', 'abc'])(
  'a text that is no amount with at most two decimals, as %j, has no centavos',
  (text) => {
    expect(toCents(text)).toBeUndefined();
  },
);

it.each(['1.5', '1.500', '-0.5', '007', '9'.repeat(64)])('what toAmount makes of %s has centavos', (text) => {
  expect(toCents(toAmount(text) ?? '')).toBeTypeOf('bigint');
});
