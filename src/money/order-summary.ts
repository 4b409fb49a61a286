import { MONEY_MUTATIONS, type MoneyMutation } from './intent.ts';
import type { OrderSummary } from './record.ts';

/** The letters that stand for operations in stored texts. */
export const OPERATION_LETTERS: Readonly<Record<MoneyMutation, string>> = {
  createMoneyOut: 'o',
  createInternalTransaction: 'i',
  createPennyValidation: 'p',
  refundTransaction: 'r',
};

/** Characters of the input hash that a summary holds. */
const INPUT_DIGITS = 8;

/**
 * Returns the order in the form in which a store keeps it: a list, which takes less room than an object. Its second item is
 * the operation, its third the customer. Its first item is a part of the input's hash, which shows whether the list belongs
 * to the record: an earlier version that takes over a free key for another input leaves the list of the first input there.
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
 * @param text a JSON list that begins as {@link packSummary} writes it
 * @param inputHash undefined if the list may be of any input
 * @returns null if there is no list, or if it was written for another input.
 */
export function readSummary(text: unknown, inputHash: string | undefined): OrderSummary | null {
  if (typeof text !== 'string' || text === '') return null;
  // Only packSummary writes it.
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
/** Stands before a UUID in base64url. No id of the service contains it (docs/assumptions.md). */
const PACKED = '~';

/** Returns an id in a shorter form if it is a UUID, as nearly all are. */
export const packed = (id: string): string =>
  UUID.test(id) ? PACKED + Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url') : id;

export function unpacked(text: string): string {
  if (!text.startsWith(PACKED)) return text;
  const hex = Buffer.from(text.slice(PACKED.length), 'base64url').toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
