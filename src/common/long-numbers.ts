/**
 * Matches numbers in a JSON text that a JavaScript number may not hold: with an exponent, or with more than the 15 digits that it always
 * holds.
 */
export const LONG_NUMBER = /(?:^|[:,[\s])-?(?:[\d.]{16}|\d[\d.]*[eE])/;

/** Whether a value of JSON is a number beyond 2^53, of which JavaScript may have lost digits. */
export const isRounded = (value: unknown): boolean =>
  typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;

// TypeScript does not know it yet.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };

/** Parses JSON as `JSON.parse` does. A number beyond 2^53 becomes a value that `JSON.stringify` writes with all of its digits. */
export const parseAsWritten = (text: string): unknown =>
  // A reviver, which is called for each value, takes eight times as long.
  LONG_NUMBER.test(text) ? JSON.parse(text, asWritten) : JSON.parse(text);

function asWritten(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return source !== undefined && isRounded(value) ? rawJSON(source) : value;
}
