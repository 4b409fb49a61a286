/** As the service writes amounts (docs/upstream-api.md, "Conventions"). */
const TWO_DECIMALS = /^-?(0|[1-9]\d*)\.\d{2}$/;
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;
const ZEROS = /^0*$/;
/** Longer than any amount of money; keeps what is looked at short. */
const MAX_LENGTH = 64;
const DECIMALS = 2;

/**
 * An amount of pesos with exactly two decimals: `1.5` becomes `1.50`. Only zeros are added or taken away, so that nothing is
 * rounded.
 *
 * @returns undefined for what is no such amount: a text that is no decimal number, one that has more than two decimals that
 * count, and a JSON number, which has been a binary float.
 */
export function toAmount(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) return undefined;
  if (TWO_DECIMALS.test(value)) return value;
  const [, sign, whole, fraction = ''] = DECIMAL.exec(value) ?? [];
  if (whole === undefined || !ZEROS.test(fraction.slice(DECIMALS))) return undefined;
  return `${sign}${BigInt(whole)}.${fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0')}`;
}

/** A JavaScript number has at least so many digits of the JSON number that it was read from. */
const EXACT_DIGITS = 15;

/** The same for a message, in which an amount may also stand as a JSON number: one whose digits a JavaScript number holds. */
export function toMessageAmount(value: unknown): string | undefined {
  if (typeof value !== 'number') return toAmount(value);
  const text = String(value);
  return text.replaceAll(/\D/g, '').length <= EXACT_DIGITS ? toAmount(text) : undefined;
}
