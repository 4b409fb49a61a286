import { clock } from '../../common/clock.ts';
import { JournalEntries, type JournalEntry } from '../../money/journal/entries.ts';
import { JOURNAL_PAGE } from '../../money/journal/verify.ts';
import { createPayments, type RecordedPayment } from '../../money/payment-reads.ts';
import { type MoneyRecords, PaymentsHeldError } from '../../money/record.ts';
import { LOOKED_FOR_MS } from '../../money/settling/open-records.ts';
import { refundedBy } from '../../resolvers/payments/evidence-match.ts';
import { isUuid } from '../../upstream/call/path.ts';
import {
  CommandError,
  EXIT,
  type ExitCode,
  print,
  printableLine,
  readArguments,
  UsageError,
} from '../command.ts';
import { fieldsOf } from './entry-text.ts';
import { holdText } from './hold-text.ts';
import { type Listed, listed } from './list.ts';
import { clientsMeant, withRecords } from './records.ts';

/** The payment of an id, with its client. */
export interface Named {
  readonly clientId: string;
  readonly record: RecordedPayment;
  readonly payment: Listed;
}

/**
 * Finds the payment of an id, or of the transaction that it made, of any client. Ids of payments are no UUIDs, those of transactions are.
 *
 * @throws CommandError if there is none; PaymentsHeldError where a record that was put back may have forgotten it
 */
export async function named(records: MoneyRecords, id: string, client: string | undefined): Promise<Named> {
  const payments = createPayments(records);
  let uncertain: PaymentsHeldError | undefined;
  for (const clientId of await clientsMeant(records, client)) {
    const reader = { clientId, customerId: undefined };
    const find = isUuid(id) ? payments.byTransaction : payments.byId;
    const record = await find(reader, id).catch((error: unknown) => {
      // A record that may have forgotten it says nothing of the clients whose record has it.
      if (!(error instanceof PaymentsHeldError)) throw error;
      uncertain = error;
      return undefined;
    });
    const payment = record === undefined ? undefined : listed(clientId, record);
    if (record !== undefined && payment !== undefined) return { clientId, record, payment };
  }
  if (uncertain !== undefined) throw (await unnotedIn(records)) ?? uncertain;
  throw new CommandError(
    isUuid(id)
      ? `No payment is recorded with the transaction "${id}". It may be one whose outcome is not known yet: pasarela payments list --state UNKNOWN,IN_FLIGHT shows those.`
      : `There is no payment "${id}". pasarela payments list shows the ids.`,
  );
}

/** Where no gateway holds payments for it, the error says what this command has found. */
async function unnotedIn(records: MoneyRecords): Promise<CommandError | undefined> {
  const holds = (await records.held()).filter(({ why }) => why === 'put-back');
  return holds.length > 0 && holds.every(({ isUnnoted }) => isUnnoted)
    ? new CommandError(`There is no such payment here. ${holds.map(holdText).join(' ')}`)
    : undefined;
}

/** An id of a payment that would be read as an option: one in 64 begins with a dash. */
const isDashedId = (arg: string): boolean => /^-[\w-]{42}$/.test(arg);

/** Reads the id of a payment, or of its transaction, from the arguments. */
export function readNamed<const T extends Parameters<typeof readArguments>[1]>(
  args: readonly string[],
  more: T,
) {
  const dashed = args.filter(isDashedId);
  const first = args.filter((arg) => !isDashedId(arg));
  const end = dashed.length === 0 || first.includes('--') ? [] : ['--'];
  const { values, positionals } = readArguments([...first, ...end, ...dashed], {
    client: { type: 'string' },
    json: { type: 'boolean' },
    ...more,
  });
  const [id, ...others] = positionals;
  if (id === undefined || others.length > 0)
    throw new UsageError('wants the id of one payment, or of its transaction');
  return { id, values };
}

/** `pasarela payments show`: one payment, with its lines in the journal. */
export async function showPayment(args: readonly string[]): Promise<ExitCode> {
  const { id, values } = readNamed(args, {});
  return withRecords(async (records) => {
    const { clientId, record, payment } = await named(records, id, text(values.client));
    const steps = await stepsOf(records, clientId, record);
    const shown = {
      ...payment,
      customerId: record.asked?.customerId ?? null,
      originalTransactionId: refundedBy(record),
      lookedForUntil: lookedForUntil(record),
    };
    if (values.json === true) print(JSON.stringify({ ...shown, journal: steps.map(fieldsOf) }));
    else {
      for (const line of textOf(shown)) print(line);
      if (shown.lookedForUntil !== null) print(whoLooks(record, payment, shown.lookedForUntil));
      for (const step of steps) print(stepText(step));
    }
    return EXIT.done;
  });
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads the lines of a payment, which stand between its beginning and its end. */
async function stepsOf(
  { journal, idKey }: MoneyRecords,
  clientId: string,
  record: RecordedPayment,
): Promise<JournalEntry[]> {
  const entries = new JournalEntries({ journal, idKey }, clientId);
  const until = record.settledAt ?? Number.POSITIVE_INFINITY;
  const found: JournalEntry[] = [];
  let after = `${Math.max(0, record.createdAt - CLOCKS_MS)}-0`;
  for (;;) {
    const lines = await journal.read(clientId, after, JOURNAL_PAGE);
    const last = lines.at(-1);
    if (last === undefined) return found;
    const read = await entries.of(lines);
    found.push(...read.filter(({ paymentId }) => paymentId === record.id));
    // Where a clock was put back, the lines since have the time of the one before.
    const isEnded = found.some(({ step }) => step === 'done' || step === 'refused');
    if (isEnded && (read.at(-1)?.at ?? 0) > until + CLOCKS_MS) return found;
    after = last.id;
  }
}

/**
 * Until when a gateway looks for an open payment, RFC 3339; null for one that is settled, or was not sent. A stored refusal that this
 * version does not recognise is told as UNKNOWN, and no gateway looks for that payment.
 */
function lookedForUntil({ sent, answer }: RecordedPayment): string | null {
  const isSettled = answer !== null && answer.kind !== 'unknown';
  if (sent === null || isSettled) return null;
  return new Date(Math.min(sent.sentAt, clock.now() - sent.ageMs) + LOOKED_FOR_MS).toISOString();
}

/** The record does not say in which mode the gateways run. */
function whoLooks({ seen }: RecordedPayment, { retryUntil }: Listed, until: string): string {
  const isOver = clock.now() >= Date.parse(until);
  if (isOver && seen !== 'unread' && seen !== 'unreadable')
    return 'No gateway looks for it any more, once a look after lookedForUntil has read all. pasarela payments settle has one look again.';
  const first =
    retryUntil === null
      ? ''
      : `send it again until ${retryUntil}, unless payments are held or its record was put back since, and `;
  const last = isOver ? 'one look has read all' : until;
  return `Gateways with AUTH_MODE=service ${first}look for it until ${last}, unless its record was put back and payments are held for that; in passthrough they do so only while the token of its caller holds.`;
}

/** By how much the times of a record and of its lines may differ, in ms. */
const CLOCKS_MS = 60_000;

export function textOf(payment: Listed): string[] {
  const { amount, message, ...others } = payment;
  const shown = { ...others, amount: amount === null ? null : `${amount.amount} ${amount.currency}` };
  const lines = Object.entries(shown)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => printableLine(`${`${name}:`.padEnd(26)}${value}`));
  return message === null ? lines : [...lines, printableLine(message)];
}

function stepText(entry: JournalEntry): string {
  const { at, step, status, code, transactionId, requestId, by } = fieldsOf(entry);
  const details = Object.entries({ by, status, code, transactionId, requestId })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${value}`);
  return printableLine(`${at}  ${String(step).padEnd(13)}  ${details.join(', ')}`.trimEnd());
}
