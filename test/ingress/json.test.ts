import fc from 'fast-check';
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

it('tells any two numbers apart that differ, and no others, however they are written and whatever is around them', () => {
  const digits = (most: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${most}}$`));
  const number = fc
    .record({
      sign: fc.constantFrom('', '-'),
      whole: fc.oneof(
        digits(20).map((text) => text.replace(/^0+(?=.)/, '')),
        fc.stringMatching(/^[1-9][0-9]{13,19}$/),
      ),
      fraction: fc.option(digits(20), { nil: '' }),
      exponent: fc.option(fc.integer({ min: -25, max: 25 }), { nil: 0, freq: 2 }),
    })
    .map(({ sign, whole, fraction, exponent }) => ({
      text: `${sign}${whole}${fraction && `.${fraction}`}${exponent === 0 ? '' : `e${exponent}`}`,
      // In units of 1e-50.
      value:
        BigInt(`${whole}${fraction}`) * 10n ** BigInt(50 + exponent - fraction.length) * (sign ? -1n : 1n),
    }));
  const around = fc.constantFrom(
    ['{"n":', '}'],
    ['[1, ', ']'],
    ['[[', ' ]]'],
    ['', ''],
    ['{"a":[0,\n', ',2]}'],
  );
  const digestIn = ([before = '', after = '']: readonly string[], text: string) =>
    contentsDigest(parseExactly(before + text + after));
  fc.assert(
    fc.property(number, number, fc.integer({ min: -2, max: 2 }), around, (one, other, step, [...place]) => {
      expect(digestIn(place, one.text) === digestIn(place, other.text)).toBe(one.value === other.value);
      // A neighbour in the last place, as ids in a row are.
      const last = BigInt(one.text.replace(/[^0-9].*$/s, '') || '0');
      const neighbour = String(last + BigInt(step) < 0n ? 0n : last + BigInt(step));
      expect(digestIn(place, String(last)) === digestIn(place, neighbour)).toBe(String(last) === neighbour);
    }),
    { numRuns: 2_000 },
  );
});

it('tells the longest numbers of a delivery apart', () => {
  const digits = '9'.repeat(64 * 1024);
  const numbers = [digits, `0.${digits}`, `1e${digits}`, `1e-${digits}`, `${digits.slice(1)}8`];
  expect(new Set(numbers.map(digest)).size).toBe(numbers.length);
});
