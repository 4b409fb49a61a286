import { clock } from '../../common/clock.ts';
import { createPayments, type RecordedPayment } from '../../money/payment-reads.ts';
import { type MoneyRecords, PAYMENT_CLASSES, type PaymentPosition } from '../../money/record.ts';
import {
  CLASSES,
  OPERATIONS,
  type Payment,
  type PaymentOperation,
  type PaymentState,
  paymentOf,
  stateOf,
} from '../../resolvers/payments/payment-state.ts';
import {
  type Colour,
  coloured,
  EXIT,
  type ExitCode,
  print,
  printableLine,
  readArguments,
  refuseArguments,
  remark,
  UsageError,
  writeOut,
} from '../command.ts';
import { remarkHolds } from './hold-text.ts';
import { clientsMeant, withRecords } from './records.ts';
import { span } from './span.ts';

const OPTIONS = {
  client: { type: 'string' },
  customer: { type: 'string' },
  state: { type: 'string' },
  operation: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
} as const;

const LIMIT = 50;
const PAGE = 100;

/** A payment with its client, in the form in which it is printed. */
export type Listed = Omit<Payment, 'position'> & { readonly clientId: string };

/** @returns undefined for a record of an earlier version, which does not hold the order */
export function listed(clientId: string, record: RecordedPayment): Listed | undefined {
  if (record.asked === null) return undefined;
  const { position: _position, ...payment } = paymentOf({ ...record, asked: record.asked }, clock.now());
  return { clientId, ...payment };
}

/** `pasarela payments list`: shows payments and their states, the newest first. */
export async function listPayments(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readArguments(args, OPTIONS);
  refuseArguments(positionals);
  const states = wordsOf('--state', values.state, CLASSES);
  const operations = wordsOf('--operation', values.operation, OPERATIONS);
  const limit = Number(values.limit ?? LIMIT);
  if (!Number.isInteger(limit) || limit < 1)
    throw new UsageError(`--limit wants a number, and got "${values.limit}"`);
  const filter: Filter = {
    // As the gateway keeps it: claims of tokens are UUIDs, which are the same in any case.
    customerId: values.customer?.toLowerCase(),
    states,
    operations,
    ...span(values),
    limit,
  };
  return withRecords(async (records) => {
    await remarkHolds(records);
    const found: Listed[] = [];
    for (const clientId of await clientsMeant(records, values.client)) {
      // One more than is printed shows that there are more.
      for (const one of await read(records, clientId, { ...filter, limit: limit + 1 })) found.push(one);
    }
    found.sort((one, other) => other.requestedAt.localeCompare(one.requestedAt));
    for (const payment of found.slice(0, limit)) {
      if (values.json === true) print(JSON.stringify(payment));
      else writeOut(coloured(lineOf(payment), payment.state, COLOURS[payment.state]));
    }
    if (found.length > limit)
      remark(`There are older ones: this is the newest ${limit}. --limit sets another number.`);
    return EXIT.done;
  });
}

const COLOURS: Readonly<Record<PaymentState, Colour>> = {
  IN_FLIGHT: 'cyan',
  DONE: 'green',
  REFUSED: 'red',
  UNKNOWN: 'yellow',
};

interface Filter {
  readonly customerId: string | undefined;
  readonly states: readonly PaymentState[] | undefined;
  readonly operations: readonly PaymentOperation[] | undefined;
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly limit: number;
}

async function read(records: MoneyRecords, clientId: string, filter: Filter): Promise<Listed[]> {
  const { states, operations, limit, customerId, from, to } = filter;
  const payments = createPayments(records);
  const search = {
    clientId,
    customerId,
    from,
    to,
    operations: (operations ?? (Object.keys(OPERATIONS) as PaymentOperation[])).map(
      (name) => OPERATIONS[name],
    ),
    classes: states === undefined ? PAYMENT_CLASSES : [...new Set(states.map((state) => CLASSES[state]))],
    isBack: false,
  };
  const found: Listed[] = [];
  let beyond: PaymentPosition | undefined;
  while (found.length < limit) {
    const size = Math.min(PAGE, limit - found.length);
    const page = await payments.page(
      { ...search, beyond },
      size,
      (record) => states?.includes(stateOf(record)) ?? true,
    );
    found.push(...page.payments.map((record) => listed(clientId, record)).filter((one) => one !== undefined));
    const last = page.payments.at(-1);
    if (!page.goesOn || last === undefined) break;
    beyond = { createdAt: last.createdAt, hash: last.hash };
  }
  return found;
}

function wordsOf<T extends string>(
  option: string,
  text: string | undefined,
  known: Readonly<Record<T, unknown>>,
): readonly T[] | undefined {
  // The words are the keys of the table.
  const names = Object.keys(known) as T[];
  const told = text?.split(',').map((word) => {
    const name = names.find((one) => one === word.trim().toUpperCase());
    if (name === undefined) throw new UsageError(`${option} got "${word}", wants of ${names.join(', ')}`);
    return name;
  });
  return told && [...new Set(told)];
}

const lineOf = ({ requestedAt, state, operation, amount, id, code, retryUntil }: Listed): string =>
  printableLine(
    [
      requestedAt,
      state.padEnd(9),
      operation.padEnd(20),
      (amount?.amount ?? '').padStart(12),
      id,
      [code, retryUntil === null ? null : `may be sent again until ${retryUntil}`]
        .filter((word) => word !== null)
        .join(', '),
    ]
      .join('  ')
      .trimEnd(),
  );
