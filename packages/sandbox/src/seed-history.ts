import { receiveSpeiCredit, refundCredit } from './operations/credits.ts';
import { someExternalPayer } from './operations/instruments.ts';
import { transferInternally } from './operations/internal-transaction.ts';
import { startMoneyOut } from './operations/money-out.ts';
import { startPennyValidation } from './operations/penny-validation.ts';
import type { Account, Client, Instrument, Transaction } from './state.ts';
import type { World } from './world.ts';

const DAY_MS = 24 * 3_600_000;

/** Length of the history that every client starts with, in simulated ms. */
export const HISTORY_MS = 3 * DAY_MS;

/** What one client has before anything happened. */
export interface Belongings {
  client: Client;
  accounts: Account[];
  centralizing: Instrument;
  internal: Instrument[];
  clabe: Instrument[];
  card: Instrument[];
}

/** Transactions of the past, by what can be tried on them. */
export interface History {
  refundableCredit: Transaction;
  refundedCredit: Transaction;
  /** What returned it. */
  refund: Transaction;
  moneyOut: Transaction;
  internalTransaction: Transaction;
  pennyValidation: Transaction;
}

/** Lives through `HISTORY_MS` with all clients, by the operations that requests use. */
export async function makeHistory(world: World, all: readonly Belongings[]): Promise<History[]> {
  for (const one of all) fund(world, one);
  await world.clock.advance(DAY_MS);
  const payments = all.map((one) => pay(world, one));
  await world.clock.advance(DAY_MS);
  const histories = all.map((one, index) => ({ ...earn(world, one), ...at(payments, index) }));
  await world.clock.advance(DAY_MS);
  return histories;
}

function fund(world: World, { client, accounts, centralizing }: Belongings): void {
  for (const account of accounts) {
    const amount = account.instrumentId === centralizing.id ? 150_000_000n : 2_500_000n;
    credit(world, client, account, amount, 'Fondeo inicial');
  }
}

function pay(world: World, { client, centralizing, internal, card }: Belongings) {
  const transfer = (to: Instrument, amount: string, description: string) => ({
    client_id: client.id,
    source_instrument_id: centralizing.id,
    destination_instrument_id: to.id,
    transaction_request: { external_reference: '1001', description, amount, currency: 'MXN' },
  });
  return {
    moneyOut: startMoneyOut(world, client.id, transfer(at(card, 0), '1250.00', 'Pago de servicios')),
    internalTransaction: transferInternally(
      world,
      client.id,
      transfer(at(internal, 1), '5000.00', 'Traspaso'),
    ),
  };
}

function earn(world: World, { client, accounts, centralizing, clabe }: Belongings) {
  const account = at(accounts, 0);
  const refundableCredit = credit(world, client, account, 249_990n, 'Factura 204');
  const refundedCredit = credit(world, client, account, 31_000n, 'Factura 205');
  const refund = refundCredit(world, refundedCredit, 'Pago duplicado');
  const pennyValidation = startPennyValidation(world, client.id, {
    client_id: client.id,
    source_instrument_id: centralizing.id,
    destination_instrument_id: at(clabe, 0).id,
  });
  return { refundableCredit, refundedCredit, refund, pennyValidation };
}

function credit(
  world: World,
  client: Client,
  account: Account,
  amount: bigint,
  concept: string,
): Transaction {
  const payer = someExternalPayer(world, client.id, 'Cliente Frecuente SA de CV');
  return receiveSpeiCredit(world, { account, payer, amount, concept, reference: '2001' }).transaction;
}

function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new RangeError(`the seed data needs an item ${index}`);
  return item;
}
