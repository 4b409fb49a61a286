import { z } from 'zod';
import { clock } from '../../common/clock.ts';
import {
  type ComparedAccount,
  centavos,
  type KnownCredit,
  type KnownPayment,
  movementsOf,
} from '../../money/reconciling/movements.ts';
import type { Gathered, Look, Readings } from '../../money/reconciling/readings.ts';
import { type GraphClient, GraphError, HEAD, query, queryShown, queryWhole } from '../graph.ts';

/** Nodes of a list that are read at a time. */
const PAGE = 100;
const DAY_MS = 24 * 60 * 60 * 1000;
/** How long after its event is in the log a balance may lack a credit, in ms, as in the comparison of a gateway; the margin where that is less. */
const LAG_MS = 5_000;
/** Refunds whose transactions are asked for at a time: far fewer than the queries of one caller that a gateway has wait. */
const REFUNDS_AT_ONCE = 8;

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
const REFUND = `query ($id: ID!) { node(id: $id) { ... on Payment { transaction { amount { amount } source { instrumentId } } } } }`;

/** All that is sent here. */
export const RECONCILE_DOCUMENTS: readonly string[] = [
  HEAD,
  ACCOUNTS,
  CREDITS,
  PAYMENTS,
  ONE_PAYMENT,
  REFUND,
];

const Refund = z.object({ amount: Money, source: z.object({ instrumentId: z.string() }).nullable() });
const RefundOfPayment = z.object({
  node: z.object({ transaction: Refund.nullable() }).nullable(),
});

const OPEN = { states: ['UNKNOWN', 'IN_FLIGHT'] };

/**
 * Reads the balances of all accounts that the caller sees. A balance may show a credit only after its event is in the log, and with
 * `AUTH_MODE=service` a gateway shows balances that it has kept. Those that were read too soon after the cursor are read again.
 */
export async function lookAtBalances(graph: GraphClient, marginMs: number): Promise<Look> {
  const lagMs = Math.min(marginMs, LAG_MS);
  const earliest = clock.monotonic() + lagMs;
  const { eventCursor: cursor } = z.object({ eventCursor: z.string() }).parse(await query(graph, HEAD, {}));
  for (let pause = lagMs; ; ) {
    await clock.sleep(pause);
    const [now, begun] = [clock.now(), clock.monotonic()];
    let oldest = begun;
    const accounts = await wholeList(graph, ACCOUNTS, AccountNode, {}, async (...asked) => {
      const askedAt = clock.monotonic();
      const { data, readMs } = await queryWhole(...asked);
      oldest = Math.min(oldest, askedAt + readMs);
      return data;
    });
    pause = earliest - oldest;
    if (pause > 0) continue;
    const balances = Object.fromEntries(accounts.map(({ id, availableBalance }) => [id, availableBalance]));
    return { cursor, reading: { from: now - (begun - oldest), to: clock.now(), balances }, accounts };
  }
}

/** The ids of the payments that are open. Read before the balances: what is settled by then is in them. */
export async function openPayments(graph: GraphClient): Promise<readonly string[]> {
  const open = await wholeList(graph, PAYMENTS, PaymentNode, OPEN);
  return open.map(({ id }) => id);
}

/** What the gateway knows to have moved since the baseline, and which payments are open, or were when it was read. */
export async function gatherMovements(
  graph: GraphClient,
  accounts: readonly ComparedAccount[],
  { baseline, cursors, open: earlier }: Readings,
  marginMs: number,
): Promise<Gathered> {
  const from = new Date(baseline.from - DAY_MS).toISOString();
  const recent = await wholeList(graph, PAYMENTS, PaymentNode, { from });
  const unsettled = await wholeList(graph, PAYMENTS, PaymentNode, OPEN);
  const known = new Map([...recent, ...unsettled].map((payment) => [payment.id, payment]));
  for (const id of earlier) {
    if (known.has(id)) continue;
    const { node } = z
      .object({ node: PaymentNode.nullable() })
      .parse(await query(graph, ONE_PAYMENT, { id }));
    if (node !== null) known.set(id, node);
  }
  const payments = [...known.values()];
  // Credits are read last: of a payment whose webhook is there, the payment is known then.
  const credits = await wholeList(graph, CREDITS, CreditNode, { after: cursors[0] }, shown);
  // By the gateway’s clock, which may go behind, it may have been settled just before the baseline, and have moved after it.
  const since = baseline.from - marginMs;
  const paid: Awaited<ReturnType<typeof knownPayment>>[] = [];
  for (let index = 0; index < payments.length; index += REFUNDS_AT_ONCE) {
    const some = payments.slice(index, index + REFUNDS_AT_ONCE);
    paid.push(...(await Promise.all(some.map((payment) => knownPayment(graph, payment, since)))));
  }
  const left = paid.filter((payment) => payment !== undefined && payment !== 'amount-unknown');
  const open = payments.filter((payment) => mayMoveSince(payment, since));
  const amountUnknown = payments
    .filter((payment, index) => paid[index] === 'amount-unknown' && mayMoveSince(payment, since))
    .map(({ id }) => id);
  return {
    movements: await movementsOf(accounts, left, credits.map(knownCredit), marginMs, atOnce),
    open: open.map(({ id }) => id),
    amountUnknown,
  };
}

/** Nobody waits for anything else that this command does. */
export const atOnce = (): undefined => undefined;

const isOpen = ({ state }: Payment): boolean => state === 'UNKNOWN' || state === 'IN_FLIGHT';

const mayMoveSince = (payment: Payment, time: number): boolean =>
  isOpen(payment) || (payment.settledAt ?? 0) >= time;

/** Undefined for what has moved nothing, and for a refund that had moved by then. */
async function knownPayment(
  graph: GraphClient,
  payment: Payment,
  since: number,
): Promise<KnownPayment | 'amount-unknown' | undefined> {
  const { id, operation, state, sentAt, settledAt } = payment;
  if (state === 'REFUSED' || sentAt === null) return undefined;
  const isRefund = operation === 'REFUND';
  if (isRefund && state === 'DONE' && (settledAt ?? sentAt) < since) return undefined;
  const refund = isRefund ? await refundOf(graph, id) : null;
  const amount = payment.amount ?? refund?.amount;
  if (amount === undefined) return 'amount-unknown';
  const source = isRefund ? (refund?.source?.instrumentId ?? null) : payment.sourceInstrumentId;
  return {
    source,
    destination: operation === 'INTERNAL_TRANSACTION' ? payment.destinationInstrumentId : null,
    isFromAny: isRefund && source === null,
    cents: amount,
    sentAt,
    doneAt: state === 'DONE' ? (settledAt ?? sentAt) : undefined,
  };
}

/** The transaction of a refund; null where it is not known, and where the service does not show it now. */
async function refundOf(graph: GraphClient, id: string): Promise<z.output<typeof Refund> | null> {
  try {
    const { node } = RefundOfPayment.parse(await query(graph, REFUND, { id }));
    return node?.transaction ?? null;
  } catch (error) {
    if (error instanceof GraphError && NOT_SHOWN.includes(error.code)) return null;
    throw error;
  }
}

/** What a read of one transaction fails with, where the service is asked and does not show it. */
const NOT_SHOWN = ['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT', 'UPSTREAM_INVALID', 'FORBIDDEN'];

const knownCredit = (credit: z.output<typeof CreditNode>): KnownCredit => ({
  clabe: credit.beneficiary.account,
  cents: credit.amount,
  at: credit.registeredAt ?? credit.transactionDate,
  receivedAt: credit.receivedAt,
  isRejected: credit.decision === 'REJECTED',
  isFromOutside: credit.rawSubCategory === 'SPEI_CREDIT',
});

/** A credit with a time that cannot be read goes by the time of its receipt. */
const shown: typeof query = async (...asked) => (await queryShown(...asked)).data;

async function wholeList<T>(
  graph: GraphClient,
  document: string,
  node: z.ZodType<T>,
  variables: object,
  read = query,
): Promise<T[]> {
  const Page = z.object({
    list: z.object({
      nodes: z.array(node),
      pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
    }),
  });
  const found: T[] = [];
  let page = variables;
  for (;;) {
    const data = await read(graph, document, page);
    // The accounts are the client's, everything else is asked for by itself.
    const { list } = Page.parse(Object(data)['client'] ?? data);
    found.push(...list.nodes);
    const { hasNextPage, endCursor } = list.pageInfo;
    if (!hasNextPage || endCursor === null) return found;
    page = { ...variables, after: endCursor };
  }
}
