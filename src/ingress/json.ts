import { LONG_NUMBER } from '../common/long-numbers.ts';

/**
 * A number of a delivery that a JavaScript number cannot hold: `9007199254740993`, `0.1000000000000000000001`, `1e400`. Its text is
 * the same for equal numbers, however they were written, and differs for any two that differ.
 */
export class ExactNumber {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** How deep arrays and objects of a delivery may nest (RFC 8259, section 9, leaves the limit to the reader). */
const MAX_DEPTH = 128;

/**
 * Parses JSON as `JSON.parse` does, except for numbers that would change: two message ids beyond 2^53 must not become one.
 *
 * @returns the value, with such numbers as {@link ExactNumber}
 * @throws {SyntaxError} for a text that is not JSON
 * @throws {RangeError} for a value that nests too deeply
 */
export function parseExactly(text: string): unknown {
  // A reviver, which is called for each value, takes eight times as long.
  const value: unknown = LONG_NUMBER.test(text) ? JSON.parse(text, exactly) : JSON.parse(text);
  limitDepth(value, 1);
  return value;
}

function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined || source === String(value)) return value;
  const exact = plain(source);
  return exact === plain(String(value)) ? value : new ExactNumber(exact);
}

function limitDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH) throw new RangeError(`wanted at most ${MAX_DEPTH} levels`);
  for (const member of Object.values(value)) limitDepth(member, depth + 1);
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** Whole numbers with up to this many digits keep their form. */
const MOST_DIGITS = 64;

/** Returns one form for all texts of a number: its digits if it is whole and not too long, else digits and exponent. */
function plain(source: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(source) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = withoutTrailingZeros(digits);
  if (significant === '') return whole === '' ? source : '0';
  const zeros = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  const isShort = zeros >= 0n && BigInt(significant.length) + zeros <= BigInt(MOST_DIGITS);
  return sign + significant + (isShort ? '0'.repeat(Number(zeros)) : `e${zeros}`);
}

function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
