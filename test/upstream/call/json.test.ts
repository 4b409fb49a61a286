import { expect, it } from 'vitest';
import { identified, present } from '../../../src/upstream/call/json.ts';

it.each([
  ['none', {}],
  ['null', { id: null }],
  ['an empty text', { id: '' }],
  ['a number', { id: 7 }],
])('a noun whose id is %s is no noun', (_what, value) => {
  expect(() => identified(value, 'an account')).toThrow('The service sent an account without an id.');
});

it('a noun with an id keeps all that the service sent, in whatever form', () => {
  const value = { id: 'a-1', balance: { amount: 7 } };
  expect(identified(value, 'an account')).toBe(value);
});

it('a text has no half of a character, and is as it came otherwise', () => {
  const halves = ['a \ud83d', '\udc4d b', '\ud83d\ud83d\udc4d'];
  expect(halves.map(present)).toEqual(['a \ufffd', '\ufffd b', '\ufffd👍']);
  for (const text of ['👍', 'Ñandú', '\u0000', '\ufffd']) expect(present(text)).toBe(text);
});

it('a number is shown by its digits, and one that JavaScript has rounded is none', () => {
  expect([7, 9_007_199_254_740_991].map(present)).toEqual(['7', '9007199254740991']);
  // Another CLABE would be shown for the first.
  for (const text of ['646180110400000007', '-9007199254740993', '1e400']) {
    expect(present(JSON.parse(text))).toBeNull();
  }
});
