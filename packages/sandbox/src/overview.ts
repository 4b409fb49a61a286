import { formatCents } from './amounts.ts';
import { type AccountView, type DeliveryView, viewAccounts, viewDelivery } from './control-views.ts';
import type { Delivery } from './deliveries.ts';
import type { FaultView } from './faults.ts';
import type { RestTransaction } from './rest.ts';
import type { Seeded } from './seed.ts';
import type { Cep, Instrument, Step, Transaction, Webhook } from './state.ts';
import { formatTimestamp } from './timestamps.ts';
import { shownStatus, viewTransaction } from './views.ts';
import type { World } from './world.ts';

/** How many transactions the page shows. */
const SHOWN = 100;

interface PartyView {
  alias: string;
  holderName: string;
  /** An account of the sandbox's own; undefined for one at another bank. */
  accountId?: string | undefined;
}

/** One line of the page's list. */
export interface TransactionView {
  id: string;
  /** ISO 8601. */
  at: string;
  subCategory: string;
  status: string;
  amount: string;
  description: string;
  source: PartyView;
  destination: PartyView;
  receipt: { status: string; url: string } | null;
  /** How many of its webhooks stand how. */
  webhooks: Record<Delivery['state'], number>;
}

/** What the page at `/` shows. */
export interface OverviewView {
  clientId: string;
  clock: { now: string; speed: number };
  accounts: AccountView[];
  /** Newest first. */
  transactions: TransactionView[];
  faults: FaultView[];
  webhooks: {
    down: boolean;
    registered: { id: string; type: Webhook['type']; url: string; status: string }[];
  };
}

/** A transaction with all that came of it. Times are ISO 8601. */
export interface TransactionDetailView {
  transaction: RestTransaction;
  trail: { at: string; of: Step['of']; status: string }[];
  movements: { at: string; from: string; to: string; amount: string }[];
  /** The requests that made, read or refunded it; the status is null where no complete answer was sent. */
  calls: { at: string; method: string; path: string; status: number | null }[];
  deliveries: DeliveryView[];
  receipt: { status: string; url: string; beneficiaryName: string | null } | null;
}

export function viewOverview(world: World, demo: Seeded, faults: FaultView[]): OverviewView {
  const { state, clock, deliveries } = world;
  const clientId = demo.client.id;
  const newest = [...state.transactions.values()].filter((one) => one.clientId === clientId).slice(-SHOWN);
  const sent = Map.groupBy(deliveries.all(), ({ message }) => message.transactionId);
  return {
    clientId,
    clock: { now: formatTimestamp(clock.now(), 'iso'), speed: clock.speed },
    accounts: viewAccounts(world, clientId),
    transactions: newest.reverse().map((one) => viewLine(world, one, sent.get(one.id) ?? [])),
    faults,
    webhooks: {
      down: deliveries.isDown,
      registered: state.webhooks
        .made(clientId)
        .filter(({ deletedAt }) => deletedAt === undefined)
        .map(({ id, type, url, status }) => ({ id, type, url, status })),
    },
  };
}

function viewLine(world: World, transaction: Transaction, sent: readonly Delivery[]): TransactionView {
  const webhooks = { PENDING: 0, ANSWERED: 0, GIVEN_UP: 0 };
  for (const { state } of sent) webhooks[state] += 1;
  return {
    id: transaction.id,
    at: formatTimestamp(transaction.createdAt, 'iso'),
    subCategory: transaction.subCategory,
    status: transaction.status,
    amount: formatCents(transaction.amount),
    description: transaction.description,
    source: viewParty(transaction.source),
    destination: viewParty(transaction.destination),
    receipt: transaction.cep === undefined ? null : viewReceipt(world, transaction.cep),
    webhooks,
  };
}

export function viewTransactionDetail(world: World, transaction: Transaction): TransactionDetailView {
  const { ledger, deliveries, calls } = world;
  const { cep } = transaction;
  return {
    transaction: viewTransaction(world, transaction),
    trail: transaction.trail.map(({ at, of, status }) => ({ at: formatTimestamp(at, 'iso'), of, status })),
    movements: ledger.movements
      .filter(({ transactionId }) => transactionId === transaction.id)
      .map(({ at, from, to, amount }) => ({
        at: formatTimestamp(at, 'iso'),
        from,
        to,
        amount: formatCents(amount),
      })),
    calls: calls.of(transaction.id).map(({ at, method, path, status }) => ({
      at: formatTimestamp(at, 'iso'),
      method,
      path,
      status: status ?? null,
    })),
    deliveries: deliveries
      .all()
      .filter(({ message }) => message.transactionId === transaction.id)
      .map(viewDelivery),
    receipt:
      cep === undefined ? null : { ...viewReceipt(world, cep), beneficiaryName: cep.beneficiaryName ?? null },
  };
}

const viewReceipt = ({ origin }: World, cep: Cep) => ({
  status: shownStatus(cep),
  url: `${origin}/cep/${cep.validationId}`,
});

const viewParty = ({ alias, detail, accountId }: Instrument): PartyView => ({
  alias,
  holderName: detail.holderName,
  accountId,
});
