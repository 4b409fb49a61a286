import { formatCents } from './amounts.ts';
import type { Delivery } from './deliveries.ts';
import { ledgerAccount } from './ledger.ts';
import type { Seeded } from './seed.ts';
import type { Instrument, Token, WebhookType } from './state.ts';
import { formatTimestamp } from './timestamps.ts';
import type { World } from './world.ts';

export interface AccountView {
  id: string;
  instrumentId: string;
  ownerId: string;
  alias: string;
  clabe: string;
  /** Pesos with two decimals, `1250.00`. */
  availableBalance: string;
  status: string;
}

export interface InstrumentView {
  id: string;
  role: 'internal' | 'clabe' | 'card';
  alias: string;
  ownerId: string;
  holderName: string;
  status: Instrument['status'];
}

/** What there is to play with, of one client: credentials, and ids by role (docs/sandbox.md, "What is in it"). */
export interface ClientView {
  name: string;
  clientId: string;
  apiKey: string;
  clientSecret: string;
  accessToken: string;
  /** ISO 8601. */
  accessTokenExpiresAt: string;
  clientBankAdapterId: string;
  /** The well-funded account that pays. */
  centralizingInstrumentId: string;
  customerIds: string[];
  accountIds: string[];
  /** Instruments with a private account behind them; the centralizing one is the first. */
  internalInstrumentIds: string[];
  blockedInstrumentIds: string[];
  /** Receivers at other banks by CLABE. */
  clabeInstrumentIds: string[];
  /** Receivers by debit card. */
  cardInstrumentIds: string[];
  /** Receivers whose receipt (CEP) comes late, never, or names another holder; the demo client alone has them. */
  lateReceiptInstrumentId: string | null;
  noReceiptInstrumentId: string | null;
  otherHolderInstrumentId: string | null;
  bankIds: string[];
  transactions: {
    refundableCreditId: string;
    refundedCreditId: string;
    refundId: string;
    moneyOutId: string;
    internalTransactionId: string;
    pennyValidationId: string;
  };
  customers: { id: string; name: string; validationStatus: 'PENDING' | 'VALIDATED' }[];
  accounts: AccountView[];
  instruments: InstrumentView[];
}

export interface MovementView {
  id: string;
  /** ISO 8601. */
  at: string;
  transactionId: string;
  clientId?: string | undefined;
  subCategory?: string | undefined;
  description?: string | undefined;
  externalReference?: string | undefined;
  amount: string;
  lines: { account: string; amount: string }[];
}

export interface LedgerView {
  /** Computed from the movements each time. */
  balanced: boolean;
  /** By ledger account. */
  balances: Record<string, string>;
  accounts: { id: string; clientId: string; instrumentId: string; ledgerAccount: string; balance: string }[];
  movements: MovementView[];
}

/** A webhook that was sent, with each attempt and its reply. */
export interface DeliveryView {
  id: string;
  clientId: string;
  webhookId: string;
  webhookType: WebhookType;
  url: string;
  idMsg: string | null;
  state: Delivery['state'];
  createdAt: string;
  /** What was posted. */
  body: unknown;
  attempts: { at: string; status: number | null; body: string | null; error: string | null }[];
}

export function viewClient(world: World, seeded: Seeded, token: Token): ClientView {
  const { client, customers, clabe, card, history } = seeded;
  const { accounts, instruments } = world.state;
  const internal = instruments.made(client.id).filter(({ accountId }) => accountId !== undefined);
  const named = (text: string) => clabe.find(({ alias }) => alias === text)?.id ?? null;
  return {
    name: client.name,
    clientId: client.id,
    apiKey: client.apiKey,
    clientSecret: client.credentials[0]?.secret ?? '',
    accessToken: token.token,
    accessTokenExpiresAt: new Date(token.expiresAt).toISOString(),
    clientBankAdapterId: client.adapterId,
    centralizingInstrumentId: client.centralizingInstrumentId,
    customerIds: idsOf(customers),
    accountIds: idsOf(accounts.made(client.id)),
    internalInstrumentIds: idsOf(internal.filter(({ status }) => status === 'ACTIVE')),
    blockedInstrumentIds: idsOf(internal.filter(({ status }) => status === 'BLOCKED')),
    clabeInstrumentIds: idsOf(clabe),
    cardInstrumentIds: idsOf(card),
    lateReceiptInstrumentId: named('Late receipt'),
    noReceiptInstrumentId: named('No receipt'),
    otherHolderInstrumentId: named('Other holder'),
    bankIds: [...world.state.banks.keys()],
    transactions: {
      refundableCreditId: history.refundableCredit.id,
      refundedCreditId: history.refundedCredit.id,
      refundId: history.refund.id,
      moneyOutId: history.moneyOut.id,
      internalTransactionId: history.internalTransaction.id,
      pennyValidationId: history.pennyValidation.id,
    },
    customers: customers.map(({ id, name, validationStatus }) => ({ id, name, validationStatus })),
    accounts: viewAccounts(world, client.id),
    instruments: [
      ...internal.map((instrument) => describe(instrument, 'internal')),
      ...clabe.map((instrument) => describe(instrument, 'clabe')),
      ...card.map((instrument) => describe(instrument, 'card')),
    ],
  };
}

/** A client's accounts with the balances of this moment, also those that were opened since the start; without those of the crowd (crowd.ts). */
export function viewAccounts({ state, ledger }: World, clientId: string): AccountView[] {
  return state.accounts.made(clientId).map(({ id, instrumentId, ownerId, clabeNumber, status }) => ({
    id,
    instrumentId,
    ownerId,
    alias: state.instruments.get(instrumentId)?.alias ?? '',
    clabe: clabeNumber,
    availableBalance: formatCents(ledger.balance(ledgerAccount(id))),
    status,
  }));
}

/** Every movement, and what they add up to by ledger account. */
export function viewLedger({ ledger, state }: World): LedgerView {
  const { balances, balanced } = ledger.check();
  return {
    balanced,
    balances: Object.fromEntries([...balances].map(([account, cents]) => [account, formatCents(cents)])),
    accounts: [...state.accounts.values()].map((account) => ({
      id: account.id,
      clientId: account.clientId,
      instrumentId: account.instrumentId,
      ledgerAccount: ledgerAccount(account.id),
      balance: formatCents(ledger.balance(ledgerAccount(account.id))),
    })),
    movements: ledger.movements.map((movement) => {
      const transaction = state.transactions.get(movement.transactionId);
      const amount = formatCents(movement.amount);
      return {
        id: movement.id,
        at: formatTimestamp(movement.at, 'iso'),
        transactionId: movement.transactionId,
        clientId: transaction?.clientId,
        subCategory: transaction?.subCategory,
        description: transaction?.description,
        externalReference: transaction?.externalReference,
        amount,
        lines: [
          { account: movement.from, amount: `-${amount}` },
          { account: movement.to, amount },
        ],
      };
    }),
  };
}

export function viewDelivery(delivery: Delivery): DeliveryView {
  const { message, webhook } = delivery;
  return {
    id: delivery.id,
    clientId: message.clientId,
    webhookId: webhook.id,
    webhookType: message.type,
    url: webhook.url,
    idMsg: message.idMsg ?? null,
    state: delivery.state,
    createdAt: formatTimestamp(delivery.createdAt, 'iso'),
    body: message.body,
    attempts: delivery.attempts.map(({ at, status, body, error }) => ({
      at: formatTimestamp(at, 'iso'),
      status: status ?? null,
      body: body ?? null,
      error: error ?? null,
    })),
  };
}

function describe(instrument: Instrument, role: InstrumentView['role']): InstrumentView {
  const { id, alias, ownerId, status } = instrument;
  return { id, role, alias, ownerId, holderName: instrument.detail.holderName, status };
}

function idsOf(things: readonly { id: string }[]): string[] {
  return things.map(({ id }) => id);
}
