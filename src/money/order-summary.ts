import { MONEY_MUTATIONS, type MoneyMutation } from './intent.ts';
import type { OrderSummary } from './record.ts';

/** In the place of an operation. */
export const OPERATION_LETTERS: Readonly<Record<MoneyMutation, string>> = {
  createMoneyOut: 'o',
  createInternalTransaction: 'i',
  createPennyValidation: 'p',
  refundTransaction: 'r',
};

/** Characters of an input hash that tell whose a description is. */
const INPUT_DIGITS = 8;

/**
 * What was asked for, as a store keeps it: a list, which takes less room than an object. Its second item is the operation, its third
 * the customer. It bears a part of the input's hash, by which a reader knows whether it belongs to the record: a version before,
 * which takes a free key over for another input, leaves the list of the first there.
 */
export const packSummary = (
  { operation, customerId, amount, source, destination, requestedBy }: OrderSummary,
  inputHash: string,
): readonly string[] => [
  inputHash.slice(0, INPUT_DIGITS),
  OPERATION_LETTERS[operation],
  customerId ?? '',
  amount ?? '',
  packed(source ?? ''),
  packed(destination ?? ''),
  requestedBy,
];

/**
 * @param text a JSON list that begins as {@link packSummary} has it
 * @param inputHash undefined where it need not be told for which input it was written
 * @returns null where there is none, and where it was written for another input.
 */
export function readSummary(text: unknown, inputHash: string | undefined): OrderSummary | null {
  if (typeof text !== 'string' || text === '') return null;
  // Only ever made of packSummary.
  const [input, letter, ...rest] = JSON.parse(text) as [string, string, ...string[]];
  const operation = MONEY_MUTATIONS.find((one) => OPERATION_LETTERS[one] === letter);
  if (operation === undefined || inputHash?.startsWith(input) === false) return null;
  const [customerId = null, amount = null, source = null, destination = null] = rest.map(unlessEmpty);
  return {
    operation,
    customerId,
    amount,
    source: source && unpacked(source),
    destination: destination && unpacked(destination),
    requestedBy: rest[4] ?? '',
  };
}

const unlessEmpty = (text: string): string | null => (text === '' ? null : text);

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;
/** Before a UUID in base64url: no id of the service holds it (docs/assumptions.md). */
const PACKED = '~';

/** An id in less room where it is a UUID, as nearly all are. */
export const packed = (id: string): string =>
  UUID.test(id) ? PACKED + Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url') : id;

export function unpacked(text: string): string {
  if (!text.startsWith(PACKED)) return text;
  const hex = Buffer.from(text.slice(PACKED.length), 'base64url').toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
