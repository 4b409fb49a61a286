import { expect, it } from 'vitest';
import { contentsDigest } from '../../src/ingress/canonical-digest.ts';
import { parseExactly } from '../../src/ingress/json.ts';

const digest = (text: string): string => contentsDigest(parseExactly(`{"n":[${text}]}`));

it.each([
  ['1', '1.0', '10e-1', '1E0'],
  ['0', '-0', '0.00', '0e7'],
  ['100.10', '100.1', '1.001e2'],
  ['9007199254740993', '9007199254740993.0', '9007199254740993e0', '90071992547409930e-1'],
  ['1e400', '10E399', '1.0e+400'],
  ['0.1000000000000000000001', '1000000000000000000001e-22'],
])('takes the texts of one number for one: %s', (...texts) => {
  expect(new Set(texts.map(digest)).size).toBe(1);
});

it.each([
  ['9007199254740992', '9007199254740993', '-9007199254740993'],
  ['0.1', '0.1000000000000000000001'],
  ['1e400', '2e400', '-1e400', 'null', '1e401'],
  ['1e-400', '2e-400', '0'],
  ['9007199254740993', '"9007199254740993"'],
])('tells numbers apart that JavaScript takes for one: %s', (...texts) => {
  expect(new Set(texts.map(digest)).size).toBe(texts.length);
});

it('parses everything else as JSON.parse does', () => {
  const text = '{"a":[1,-0.5,1e3,true,null,"9007199254740993"],"__proto__":{"x":1},"toString":{"b":""}}';
  expect(parseExactly(text)).toEqual(JSON.parse(text));
  expect(Object.hasOwn(Object(parseExactly(text)), '__proto__')).toBe(true);
});

it('tells the longest numbers of a delivery apart', () => {
  const digits = '9'.repeat(64 * 1024);
  const numbers = [digits, `0.${digits}`, `1e${digits}`, `1e-${digits}`, `${digits.slice(1)}8`];
  expect(new Set(numbers.map(digest)).size).toBe(numbers.length);
});
