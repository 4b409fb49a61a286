import { OWN_INSTITUTION } from '../participants.ts';
import type { Instrument, Transaction } from '../state.ts';
import type { World } from '../world.ts';

/** What a new transaction needs to say; the rest is made here. */
export interface NewTransaction {
  clientId: string;
  source: Instrument;
  destination: Instrument;
  amount: bigint;
  description: string;
  externalReference: string;
  category: string;
  subCategory: string;
  status: string;
  /** SPEI tracking key of a credit that came from outside, or shared by two legs. */
  trackingId?: string;
  originalTransactionId?: string;
  comesFrom?: Transaction;
}

/** Records a transaction of the sandbox's own bank, without moving anything. */
export function recordTransaction(world: World, transaction: NewTransaction): Transaction {
  const now = world.clock.now();
  const recorded: Transaction = {
    id: world.ids.uuid('transaction'),
    bankId: ownBankId(world),
    createdAt: now,
    updatedAt: now,
    ...transaction,
    trail: [{ at: now, of: 'transaction', status: transaction.status }],
    trackingId: transaction.trackingId ?? makeTrackingId(world),
  };
  world.state.transactions.set(recorded.id, recorded);
  return recorded;
}

/** A SPEI tracking key (clave de rastreo): letters and digits, at most 30. */
export function makeTrackingId(world: World): string {
  return `SBX${world.ids.digits('tracking', 20)}`;
}

/** Moves the transaction's amount between two ledger accounts. @throws InsufficientFundsError */
export function post(world: World, transaction: Transaction, from: string, to: string): void {
  world.ledger.move({
    id: world.ids.uuid('movement'),
    at: world.clock.now(),
    transactionId: transaction.id,
    from,
    to,
    amount: transaction.amount,
  });
}

/** Gives the transaction a state, and the time of the change. */
export function changeStatus(world: World, transaction: Transaction, status: string): void {
  transaction.status = status;
  transaction.updatedAt = world.clock.now();
  transaction.trail.push({ at: transaction.updatedAt, of: 'transaction', status });
}

/** The bank that holds the sandbox's own accounts. */
export function ownBankId(world: World): string {
  const bank = world.state.bankByInstitution(OWN_INSTITUTION);
  if (bank === undefined) throw new Error(`institution ${OWN_INSTITUTION} is missing from the catalog`);
  return bank.id;
}
