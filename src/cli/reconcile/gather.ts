import { z } from 'zod';
import { clock } from '../../common/clock.ts';
import { type Graph, query } from '../graph.ts';
import type { Movement, Reading } from './compare.ts';

/** Nodes of a list that are read at a time. */
const PAGE = 100;
const DAY_MS = 24 * 60 * 60 * 1000;

const Money = z.object({ amount: z.string() }).transform(({ amount }) => centavos(amount));
const Instant = z.string().transform((text) => Date.parse(text));
const AccountNode = z.object({
  id: z.string(),
  clabe: z.string(),
  instrumentId: z.string().nullable(),
  availableBalance: Money,
});
const CreditNode = z.object({
  amount: Money,
  decision: z.string(),
  rawSubCategory: z.string().nullable(),
  receivedAt: Instant,
  registeredAt: Instant.nullable(),
  transactionDate: Instant.nullable(),
  beneficiary: z.object({ account: z.string().nullable() }),
});
const PaymentNode = z.object({
  id: z.string(),
  operation: z.string(),
  state: z.string(),
  amount: Money.nullable(),
  sourceInstrumentId: z.string().nullable(),
  destinationInstrumentId: z.string().nullable(),
  sentAt: Instant.nullable(),
  settledAt: Instant.nullable(),
});
type Account = z.output<typeof AccountNode>;
type Credit = z.output<typeof CreditNode>;
type Payment = z.output<typeof PaymentNode>;

const PAYMENT =
  'id operation state amount { amount } sourceInstrumentId destinationInstrumentId sentAt settledAt';
const ACCOUNTS = `query ($after: Cursor) { client { list: accounts(first: ${PAGE}, after: $after) {
  nodes { id clabe instrumentId availableBalance { amount } } pageInfo { hasNextPage endCursor } } } }`;
const CREDITS = `query ($after: Cursor) { list: events(types: [MONEY_IN], first: ${PAGE}, after: $after) {
  nodes { ... on MoneyInEvent { amount { amount } decision rawSubCategory receivedAt registeredAt transactionDate
    beneficiary { account } } } pageInfo { hasNextPage endCursor } } }`;
const PAYMENTS = `query ($after: Cursor, $from: DateTime, $states: [PaymentState!]) {
  list: payments(first: ${PAGE}, after: $after, requestedFrom: $from, states: $states) {
    nodes { ${PAYMENT} } pageInfo { hasNextPage endCursor } } }`;
const ONE_PAYMENT = `query ($id: ID!) { node(id: $id) { ... on Payment { ${PAYMENT} } } }`;
const REFUNDED_FROM = `query ($id: ID!) { node(id: $id) { ... on Payment { transaction { source { instrumentId } } } } }`;
const Refund = z.object({
  node: z
    .object({
      transaction: z.object({ source: z.object({ instrumentId: z.string() }).nullable() }).nullable(),
    })
    .nullable(),
});

/** What an account held now, and where the event log stood before that was read. */
export interface Look {
  readonly cursor: string;
  readonly reading: Reading;
  readonly accounts: readonly Account[];
}

/** Reads the balances of all accounts that the caller sees. */
export async function lookAtBalances(graph: Graph): Promise<Look> {
  const { eventCursor } = z
    .object({ eventCursor: z.string() })
    .parse(await query(graph, '{ eventCursor }', {}));
  const from = clock.now();
  const accounts = await wholeList(graph, ACCOUNTS, AccountNode, {});
  const balances = Object.fromEntries(accounts.map(({ id, availableBalance }) => [id, availableBalance]));
  return { cursor: eventCursor, reading: { from, to: clock.now(), balances }, accounts };
}

/** Where to look for what moved. */
export interface Since {
  /** Of the event log, at the baseline. */
  readonly cursor: string;
  /** When the baseline was read, in ms since the epoch. */
  readonly from: number;
  /** Payments that were open then, or have been since. */
  readonly open: readonly string[];
}

/** What the gateway knows to have moved since the baseline, and which payments are open, or were when it was read. */
export async function gatherMovements(
  graph: Graph,
  accounts: readonly Account[],
  since: Since,
  marginMs: number,
): Promise<{ readonly movements: readonly Movement[]; readonly open: readonly string[] }> {
  const from = new Date(since.from - DAY_MS).toISOString();
  const recent = await wholeList(graph, PAYMENTS, PaymentNode, { from });
  const unsettled = await wholeList(graph, PAYMENTS, PaymentNode, { states: ['UNKNOWN', 'IN_FLIGHT'] });
  const known = new Map([...recent, ...unsettled].map((payment) => [payment.id, payment]));
  for (const id of since.open) {
    if (known.has(id)) continue;
    const { node } = z
      .object({ node: PaymentNode.nullable() })
      .parse(await query(graph, ONE_PAYMENT, { id }));
    if (node !== null) known.set(id, node);
  }
  const payments = [...known.values()];
  // Credits are read last: of a payment whose webhook is there, the payment is known then.
  const credits = await wholeList(graph, CREDITS, CreditNode, { after: since.cursor });
  const byInstrument = new Map(accounts.map(({ id, instrumentId }) => [instrumentId, id]));
  const byClabe = new Map(accounts.map(({ id, clabe }) => [clabe, id]));
  const paid = (await Promise.all(payments.map((payment) => ofPayment(graph, payment, byInstrument)))).flat();
  const received = credits.flatMap((credit) => ofCredit(credit, byClabe));
  const open = payments.filter((payment) => isOpen(payment) || (payment.settledAt ?? 0) >= since.from);
  return {
    movements: [...paid, ...withoutTwins(received, paid, marginMs)],
    open: open.map(({ id }) => id),
  };
}

const isOpen = ({ state }: Payment): boolean => state === 'UNKNOWN' || state === 'IN_FLIGHT';

async function ofPayment(
  graph: Graph,
  payment: Payment,
  accounts: ReadonlyMap<string | null, string>,
): Promise<Movement[]> {
  const { id, operation, state, amount, sentAt, settledAt } = payment;
  if (state === 'REFUSED' || sentAt === null || amount === null) return [];
  const isCertain = state === 'DONE';
  const when = { from: sentAt, to: isCertain ? (settledAt ?? sentAt) : Number.POSITIVE_INFINITY, isCertain };
  if (operation === 'REFUND') {
    const { node } = Refund.parse(await query(graph, REFUNDED_FROM, { id }));
    const source = accounts.get(node?.transaction?.source?.instrumentId ?? '');
    // Of one whose account cannot be told, each may be it.
    return source === undefined
      ? [...accounts.values()].map((account) => ({ account, cents: -amount, ...when, isCertain: false }))
      : [{ account: source, cents: -amount, ...when }];
  }
  const source = accounts.get(payment.sourceInstrumentId ?? '');
  const destination = operation === 'INTERNAL_TRANSACTION' ? payment.destinationInstrumentId : null;
  const target = accounts.get(destination ?? '');
  return [
    ...(source === undefined ? [] : [{ account: source, cents: -amount, ...when }]),
    ...(target === undefined ? [] : [{ account: target, cents: amount, ...when }]),
  ];
}

/** A credit may show in the balance from its date on, and does at the latest once its webhook has been answered. */
function ofCredit(credit: Credit, accounts: ReadonlyMap<string, string>): Movement[] {
  const account = accounts.get(credit.beneficiary.account ?? '');
  if (account === undefined) return [];
  const at = credit.registeredAt ?? credit.transactionDate ?? credit.receivedAt;
  const times = { from: Math.min(at, credit.receivedAt), to: Math.max(at, credit.receivedAt) };
  return [{ account, cents: credit.amount, ...times, isCertain: credit.decision !== 'REJECTED' }];
}

/** Credits without those that are the other half of an internal transaction which the gateway has made itself. */
function withoutTwins(
  received: readonly Movement[],
  paid: readonly Movement[],
  marginMs: number,
): readonly Movement[] {
  const halves = paid.filter(({ cents }) => cents > 0);
  return received.filter((credit) => {
    const twin = halves.findIndex(
      ({ account, cents, from, to }) =>
        account === credit.account &&
        cents === credit.cents &&
        credit.from <= to + marginMs &&
        credit.to >= from - marginMs,
    );
    if (twin !== -1) halves.splice(twin, 1);
    return twin === -1;
  });
}

async function wholeList<T>(
  graph: Graph,
  document: string,
  node: z.ZodType<T>,
  variables: object,
): Promise<T[]> {
  const Page = z.object({
    list: z.object({
      nodes: z.array(node),
      pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
    }),
  });
  const found: T[] = [];
  let given = variables;
  for (;;) {
    const data = await query(graph, document, given);
    // The accounts are the client's, everything else is asked for by itself.
    const { list } = Page.parse(Object(data)['client'] ?? data);
    found.push(...list.nodes);
    const { hasNextPage, endCursor } = list.pageInfo;
    if (!hasNextPage || endCursor === null) return found;
    given = { ...variables, after: endCursor };
  }
}

function centavos(amount: string): number {
  const [, sign = '', pesos = '0', cents = ''] = /^(-?)(\d+)(?:\.(\d{1,2}))?$/.exec(amount) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(pesos) * 100 + Number(cents.padEnd(2, '0')));
}
