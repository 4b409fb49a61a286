import { expect, it } from 'vitest';
import { identified } from '../../../src/upstream/call/json.ts';

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
