import type { Account, Instrument } from '../state.ts';
import type { World } from '../world.ts';
import { ownBankId } from './record.ts';

export interface NewAccount {
  clientId: string;
  /** Owner of the account: this customer, or the client where undefined. */
  customerId: string | undefined;
  bankId: string | undefined;
  adapterId: string;
  requestedId: string | undefined;
  alias: string;
  accountType: string;
  holder: { name: string; rfc: string };
}

/** Opens a private account with a fresh CLABE, and the instrument that is tied to it. */
export function openAccount(world: World, request: NewAccount): { account: Account; instrument: Instrument } {
  const now = world.clock.now();
  const { clabeNumber, accountNumber } = world.clabes.issue();
  const id = world.ids.uuid('account');
  const owned = {
    bankId: request.bankId ?? ownBankId(world),
    clientId: request.clientId,
    ownerId: request.customerId ?? request.clientId,
    createdAt: now,
    updatedAt: now,
  };
  const instrument: Instrument = {
    ...owned,
    id: world.ids.uuid('instrument'),
    customerId: request.customerId,
    alias: request.alias,
    type: 'SENDER_RECEIVER',
    status: 'ACTIVE',
    rfc: request.holder.rfc,
    detail: { kind: 'clabe', accountNumber, clabeNumber, holderName: request.holder.name },
    accountId: id,
  };
  const account: Account = {
    ...owned,
    id,
    requestedId: request.requestedId ?? world.ids.uuid('account-id'),
    instrumentId: instrument.id,
    ownerType: request.customerId === undefined ? 'CLIENT' : 'CUSTOMER',
    adapterId: request.adapterId,
    accountNumber,
    clabeNumber,
    accountType: request.accountType,
    status: 'ACTIVE',
  };
  world.state.accounts.set(id, account);
  world.state.instruments.set(instrument.id, instrument);
  return { account, instrument };
}

/** Blocks an instrument, and the account that is behind it. */
export function blockInstrument(world: World, instrument: Instrument): void {
  const now = world.clock.now();
  instrument.status = 'BLOCKED';
  instrument.blockedAt = now;
  const account = world.state.accounts.get(instrument.accountId ?? '');
  if (account === undefined) return;
  account.status = 'BLOCKED';
  account.blockedAt = now;
}
