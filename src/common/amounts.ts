/** The service's form of amounts (docs/upstream-api.md, "Conventions"). */
const TWO_DECIMALS = /^-?(0|[1-9]\d*)\.\d{2}$/;
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;
const ZEROS = /^0*$/;
/** Longer than any amount of money. It bounds the text that a regular expression sees. */
const MAX_LENGTH = 64;
const DECIMALS = 2;
const UP_TO_TWO_DECIMALS = /^(-?\d+)(?:\.(\d{1,2}))?$/;

/**
 * Returns an amount of pesos with exactly two decimals: `1.5` becomes `1.50`. It only adds or removes zeros, so that nothing
 * is rounded.
 *
 * @returns undefined for anything else: a text that is no decimal number, one with more than two significant decimals, and a
 * JSON number, which has been a binary float. An endpoint that writes whole centavos needs a function of its own here.
 */
export function toAmount(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) return undefined;
  if (TWO_DECIMALS.test(value)) return value;
  const [, sign, whole, fraction = ''] = DECIMAL.exec(value) ?? [];
  if (whole === undefined || !ZEROS.test(fraction.slice(DECIMALS))) return undefined;
  return `${sign}${BigInt(whole)}.${fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0')}`;
}

/**
 * Returns the centavos of an amount of pesos with at most two decimals, undefined for anything else. It reads a text of any length: give
 * it what `toAmount` makes of a text that is not known to be an amount.
 */
export function toCents(amount: string): bigint | undefined {
  const [, pesos, cents = ''] = UP_TO_TWO_DECIMALS.exec(amount) ?? [];
  return pesos === undefined ? undefined : BigInt(`${pesos}${cents.padEnd(DECIMALS, '0')}`);
}

/** A JavaScript number keeps at least this many digits of a JSON number. */
const EXACT_DIGITS = 15;

/** The same for a message, in which an amount may also be a JSON number, if a JavaScript number holds all of its digits. */
export function toMessageAmount(value: unknown): string | undefined {
  if (typeof value !== 'number') return toAmount(value);
  const text = String(value);
  return text.replaceAll(/\D/g, '').length <= EXACT_DIGITS ? toAmount(text) : undefined;
}
