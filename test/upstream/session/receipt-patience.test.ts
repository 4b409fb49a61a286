import { expect, it } from 'vitest';
import { ReceiptPatience } from '../../../src/upstream/session/receipt-patience.ts';

const SECOND = 1_000;

it('is spent once something has failed for five seconds, and asks once a second from then on', () => {
  const patience = new ReceiptPatience();
  expect(patience.failed(0)).toBe(false);
  expect(patience.failed(5 * SECOND - 1)).toBe(false);
  expect(patience.mayTry(5 * SECOND - 1)).toBe(true);
  expect(patience.failed(5 * SECOND)).toBe(true);
  expect(patience.mayTry(6 * SECOND - 1)).toBe(false);
  expect(patience.mayTry(6 * SECOND)).toBe(true);
  // The one that may try has not failed yet.
  expect(patience.mayTry(6 * SECOND)).toBe(false);
  expect(patience.mayTry(7 * SECOND)).toBe(true);
  patience.succeeded();
  expect(patience.mayTry(7 * SECOND)).toBe(true);
});

it('begins anew where failures lie half a minute apart, though nothing has succeeded in between', () => {
  const patience = new ReceiptPatience();
  let now = 0;
  for (let failure = 0; failure < 3; failure += 1) {
    expect(patience.failed(now)).toBe(false);
    now += 30 * SECOND;
  }
  expect(patience.failed(now)).toBe(false);
  expect(patience.failed(now + 30 * SECOND - 1)).toBe(true);
});
