import { formatCents } from './amounts.ts';
import type { Delivery } from './deliveries.ts';
import { ledgerAccount } from './ledger.ts';
import type { Seeded } from './seed.ts';
import type { Instrument, Token } from './state.ts';
import { formatTimestamp } from './timestamps.ts';
import type { Json } from './views.ts';
import type { World } from './world.ts';

/** What there is to play with, of one client: credentials, and ids by role. */
export function viewSeeded(world: World, seeded: Seeded, token: Token): Json {
  const { client, customers, accounts, internal, clabe, card, history } = seeded;
  const named = (text: string) => clabe.find(({ alias }) => alias === text)?.id ?? null;
  return {
    name: client.name,
    clientId: client.id,
    apiKey: client.apiKey,
    clientSecret: client.credentials[0]?.secret,
    accessToken: token.token,
    accessTokenExpiresAt: new Date(token.expiresAt).toISOString(),
    clientBankAdapterId: client.adapterId,
    centralizingInstrumentId: client.centralizingInstrumentId,
    customerIds: idsOf(customers),
    accountIds: idsOf(accounts),
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
      moneyOutId: history.moneyOut.id,
      internalTransactionId: history.internalTransaction.id,
      pennyValidationId: history.pennyValidation.id,
    },
    customers: customers.map(({ id, name, validationStatus }) => ({ id, name, validationStatus })),
    accounts: accounts.map((account) => ({
      id: account.id,
      instrumentId: account.instrumentId,
      ownerId: account.ownerId,
      alias: world.state.instruments.get(account.instrumentId)?.alias,
      clabe: account.clabeNumber,
      availableBalance: formatCents(world.ledger.balance(ledgerAccount(account.id))),
      status: account.status,
    })),
    instruments: [
      ...internal.map((instrument) => describe(instrument, 'internal')),
      ...clabe.map((instrument) => describe(instrument, 'clabe')),
      ...card.map((instrument) => describe(instrument, 'card')),
    ],
  };
}

/** Every movement, and what they add up to by ledger account. */
export function viewLedger({ ledger, state }: World): Json {
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

/** A webhook that was sent, with each attempt and its reply. */
export function viewDelivery(delivery: Delivery): Json {
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

function describe(instrument: Instrument, role: string): Json {
  const { id, alias, ownerId, status } = instrument;
  return { id, role, alias, ownerId, holderName: instrument.detail.holderName, status };
}

function idsOf(things: readonly { id: string }[]): string[] {
  return things.map(({ id }) => id);
}
