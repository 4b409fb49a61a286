import { toAmount } from '../../common/amounts.ts';
import { parsed } from '../../money/answers.ts';
import { MONEY_MUTATIONS } from '../../money/intent.ts';
import type { OrderSummary, PaymentRecord } from '../../money/record.ts';
import type { OpenPayment } from '../../money/settling/open-records.ts';
import { isObject, type JsonObject, type Optional, present } from '../../upstream/call/json.ts';
import { toRfc3339 } from '../../upstream/call/timestamps.ts';
import type { Transaction } from '../../upstream/transactions.ts';
import { saysNotPaid } from './status-words.ts';

/** What a request to pay said, as far as a transaction shows it again. */
export interface Order extends Pick<OrderSummary, 'operation' | 'source' | 'destination' | 'amount'> {
  /** Undefined where it was left to the service. */
  readonly description: string | undefined;
  readonly reference: string | undefined;
}

/** @param body of the request, as it left */
export function orderOf({ asked, body }: Pick<OpenPayment, 'asked' | 'body'>): Order {
  const request = fieldsOf(body);
  const details = isObject(request['transaction_request']) ? request['transaction_request'] : request;
  const text = (field: string) => (typeof details[field] === 'string' ? details[field] : undefined);
  const { operation, source, destination, amount } = asked;
  const own = { operation, source, destination, amount };
  return { ...own, description: text('description'), reference: text('external_reference') };
}

/**
 * Whether a transaction, as it is read, is what was ordered, in each thing that the order names. The transaction has to show it: one
 * that leaves out its instruments, or a description that was ordered, could be anybody's. What the order leaves to the service is not compared.
 */
export function fits(order: Order, found: Transaction): boolean {
  return (
    isKind(order.operation, found) &&
    toAmount(found.amount) === toAmount(order.amount ?? '') &&
    isShown(found.sourceInstrument?.id, order.source) &&
    isShown(found.destinationInstrument?.id, order.destination) &&
    (order.description === undefined || present(found.description) === present(order.description)) &&
    (order.reference === undefined || isSameNumber(found.externalReference, order.reference))
  );
}

/** Whether two orders cannot be told apart by what a transaction shows: each of them that one fits, by {@link fits}. */
export function isAlike(one: Order, other: Order): boolean {
  const isSame = (a: string | undefined, b: string | undefined, shown: (text: string) => string | null) =>
    a === undefined || b === undefined || shown(a) === shown(b);
  return (
    one.operation === other.operation &&
    one.source?.toLowerCase() === other.source?.toLowerCase() &&
    one.destination?.toLowerCase() === other.destination?.toLowerCase() &&
    toAmount(one.amount ?? '') === toAmount(other.amount ?? '') &&
    isSame(one.description, other.description, present) &&
    isSame(one.reference, other.reference, unpadded)
  );
}

function isKind(operation: Order['operation'], found: Transaction): boolean {
  const { category, subCategory, transactionStatus } = found;
  if (present(found.originalTransactionId) !== null || saysNotPaid(transactionStatus)) return false;
  if (operation === 'createInternalTransaction') {
    return category === 'INTER_TRANS' && (subCategory === 'INT_DEBIT' || subCategory === 'INT_CREDIT');
  }
  const isValidation = found.metadata?.dataCep != null;
  return subCategory === 'SPEI_DEBIT' && isValidation === (operation === 'createPennyValidation');
}

const isShown = (found: Optional, wanted: string | null): boolean =>
  typeof found === 'string' && wanted !== null && found.toLowerCase() === wanted.toLowerCase();

const unpadded = (reference: string): string => reference.replace(/^0+/, '');

function isSameNumber(found: Optional, wanted: string): boolean {
  const shown = present(found);
  return shown !== null && unpadded(shown) === unpadded(wanted);
}

/** When the service says that it made a transaction, in ms since the epoch; undefined where it does not say. */
export function madeAt({ audit }: Transaction, utcOffset: string): number | undefined {
  const written = typeof audit?.createdAt === 'string' ? present(audit.createdAt) : null;
  const time = written === null ? Number.NaN : Date.parse(toRfc3339(written, utcOffset) ?? '');
  return Number.isNaN(time) ? undefined : time;
}

/** What tells the legs of one movement from those of another. */
export const movementOf = ({ id, trackingId }: Transaction): string =>
  present(trackingId) ?? id.toLowerCase();

const KEPT = [
  ...['id', 'bankId', 'clientId', 'externalReference', 'trackingId', 'description', 'amount', 'currency'],
  ...['category', 'subCategory', 'transactionStatus', 'audit'],
] as const;

/** As much of a transaction as the answer to a request to pay shows, and no name or account. */
function keptOf(found: Transaction): Pick<Transaction, (typeof KEPT)[number] | 'metadata'> {
  const shown = KEPT.filter((field) => field in found).map((field) => [field, found[field]]);
  const kept: Pick<Transaction, (typeof KEPT)[number]> = Object.fromEntries(shown);
  const cep = found.metadata?.dataCep;
  if (cep == null) return kept;
  const { cepUrl, validationId, status, createdAt } = cep;
  return { ...kept, metadata: { dataCep: { cepUrl, validationId, status, createdAt } } };
}

/** What the record keeps of a transaction that was read. */
export const keptText = (found: Transaction): string => JSON.stringify(keptOf(found));

/**
 * What is remembered of a transaction while a payment is looked for: what is compared, and what its record would keep. Null where
 * it can be no payment, as a credit from outside cannot: of those a merchant has tens of thousands.
 */
export function comparable(found: Transaction): Transaction | null {
  if (!MONEY_MUTATIONS.some((operation) => isKind(operation, found))) return null;
  const { sourceInstrument: source, destinationInstrument: destination } = found;
  return {
    ...keptOf(found),
    ...(source && { sourceInstrument: { id: source.id } }),
    ...(destination && { destinationInstrument: { id: destination.id } }),
  };
}

/** The fields of a JSON object; none where the text is not one. */
export function fieldsOf(text: string): JsonObject {
  const value = parsed(text);
  return isObject(value) ? value : {};
}

/** What the answer of a payment says; nothing where it has none that is JSON. */
export const answerOf = ({ answer }: PaymentRecord): JsonObject => fieldsOf(answer?.text ?? '');

/** Id of the credit that a refund returns; null for any other payment, and where the record does not say. */
export function refundedBy(record: PaymentRecord): string | null {
  if (record.asked?.operation !== 'refundTransaction') return null;
  const told = answerOf(record)['originalTransactionId'];
  return record.original ?? (typeof told === 'string' ? present(told) : null);
}
