import { parseCents } from '../amounts.ts';
import { dataError, notFound, otherClient, preconditionFailed } from '../errors.ts';
import { ledgerAccount } from '../ledger.ts';
import type { Account, Instrument } from '../state.ts';
import type { World } from '../world.ts';

/** The three ids that every transaction body carries. */
export interface Parties {
  client_id: string;
  source_instrument_id: string;
  destination_instrument_id: string;
}

export interface TransactionRequest {
  external_reference: string;
  description: string;
  amount: string;
  currency: string;
}

const SHORT_DESCRIPTION = 40;

/** The checks that internal transactions document, in the spec's words (docs/upstream-api.md, "Errors"). Returns the amount in centavos. */
export function checkTransactionRequest(
  transaction: TransactionRequest,
  description: 'fewer than 40' | 'unlimited',
): bigint {
  if (transaction.currency !== 'MXN') throw dataError('Transaction currency unsupported.');
  const amount = parseCents(transaction.amount);
  if (amount === undefined) {
    throw dataError('Transaction Amount must be a numeric string with two decimals.');
  }
  if (amount <= 0n) throw dataError('Transaction Amount must be higher than 0.');
  if (description === 'fewer than 40' && [...transaction.description].length >= SHORT_DESCRIPTION) {
    throw dataError('Transaction description must have less than 40 characters length.');
  }
  checkExternalReference(transaction.external_reference);
  return amount;
}

/** @throws ApiError DATA_ERROR unless numeric with at most 7 digits. */
export function checkExternalReference(reference: string): void {
  if (!/^\d{1,7}$/.test(reference)) {
    throw dataError('External reference should be numeric and have a maximum length of 7 digits.');
  }
}

/** @throws ApiError unless the body's client is the token's. */
export function checkOwnClient(world: World, tokenClientId: string, clientId: string): void {
  if (clientId.toLowerCase() !== tokenClientId) throw otherClient(world.choices);
}

/** The source instrument with the account behind it. @throws ApiError 404 or 400 FAILED_PRECONDITION. */
export function usableSource(
  world: World,
  clientId: string,
  instrumentId: string,
): { source: Instrument; account: Account } {
  const source = ownInstrument(world, clientId, instrumentId);
  if (source === undefined) throw notFound('source_not_found');
  const account = accountOf(world, source);
  if (account === undefined) throw preconditionFailed('The source instrument holds no account.');
  if (!isUsable(source, account)) throw preconditionFailed('The account is not currently active.');
  return { source, account };
}

/** As `usableSource`, where only the centralizing account may pay if the choices say so. */
export function usableSpeiSource(world: World, clientId: string, instrumentId: string) {
  const usable = usableSource(world, clientId, instrumentId);
  const centralizing = world.state.clients.get(clientId)?.centralizingInstrumentId;
  if (world.choices.moneyOutSource === 'centralizing only' && usable.source.id !== centralizing) {
    throw preconditionFailed('The source must be the centralizing account.');
  }
  return usable;
}

/** The destination instrument. @throws ApiError 404 `destination_not_found`. */
export function ownDestination(world: World, clientId: string, instrumentId: string): Instrument {
  const destination = ownInstrument(world, clientId, instrumentId);
  if (destination === undefined) throw notFound('destination_not_found');
  return destination;
}

/** @throws ApiError 400 FAILED_PRECONDITION when the destination is inactive or blocked. */
export function checkActiveDestination(world: World, destination: Instrument): void {
  if (!isUsable(destination, accountOf(world, destination))) {
    throw preconditionFailed('The account is not currently active.');
  }
}

/** @throws ApiError 400 FAILED_PRECONDITION when the account holds less than the amount. */
export function checkFunds(world: World, account: Account, amount: bigint): void {
  if (world.ledger.balance(ledgerAccount(account.id)) < amount) {
    throw preconditionFailed('The account does not have sufficient funds.');
  }
}

export function accountOf(world: World, instrument: Instrument): Account | undefined {
  return instrument.accountId === undefined ? undefined : world.state.accounts.get(instrument.accountId);
}

function ownInstrument(world: World, clientId: string, instrumentId: string): Instrument | undefined {
  const instrument = world.state.instruments.get(instrumentId.toLowerCase());
  return instrument?.clientId === clientId && instrument.deletedAt === undefined ? instrument : undefined;
}

function isUsable(instrument: Instrument, account: Account | undefined): boolean {
  return instrument.status === 'ACTIVE' && (account === undefined || account.status === 'ACTIVE');
}
