import type { MoneyMutation } from '../../money/intent.ts';
import type { JournalEntry } from '../../money/journal/entries.ts';
import { printable } from '../command.ts';

/** The names of operations in the graph. */
const OPERATIONS: Readonly<Record<MoneyMutation, string>> = {
  createMoneyOut: 'MONEY_OUT',
  createInternalTransaction: 'INTERNAL_TRANSACTION',
  createPennyValidation: 'PENNY_VALIDATION',
  refundTransaction: 'REFUND',
};

/** The fields of an exported line, in the order of writing. */
type Fields = Readonly<Record<string, string | number | null>>;

export function fieldsOf(entry: JournalEntry): Fields {
  const { at, clientId, step, paymentId, asked, status, by, code, transactionId, requestId } = entry;
  return {
    at: new Date(at).toISOString(),
    step,
    clientId,
    customerId: asked?.customerId ?? null,
    requestedBy: asked?.requestedBy ?? null,
    operation: asked === null ? null : OPERATIONS[asked.operation],
    paymentId,
    amount: asked?.amount ?? null,
    sourceInstrumentId: asked?.source ?? null,
    destinationInstrumentId: asked?.destination ?? null,
    status,
    code,
    transactionId,
    requestId,
    by,
  };
}

/**
 * Returns a line as JSON, with what is needed to verify it without the store.
 *
 * @param previous digest of the line before; undefined if it is not known
 */
export const jsonOf = (entry: JournalEntry, previous: string | undefined): string =>
  printable(JSON.stringify({ ...fieldsOf(entry), line: { previous: previous ?? null, ...entry.line } }));

export const CSV_HEADER = `${[
  ...['at', 'step', 'client_id', 'customer_id', 'requested_by', 'operation', 'payment_id', 'amount'],
  ...['source_instrument_id', 'destination_instrument_id', 'status', 'code', 'transaction_id', 'request_id'],
  ...['line_id', 'digest', 'by'],
].join(',')}\r\n`;

/** What came to the fields later stands at the end: the file of an export that is followed has its header from before. */
export const csvOf = (entry: JournalEntry): string => {
  const { by = null, ...fields } = fieldsOf(entry);
  const { id, digest } = entry.line;
  return `${[...Object.values(fields), id, digest, by].map(cell).join(',')}\r\n`;
};

/** Matches a text that spreadsheets take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string | number | null): string {
  const text = value === null ? '' : printable(String(value));
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
