import { ledgerAccount, SPEI } from '../ledger.ts';
import { statusUpdateMessage } from '../messages.ts';
import type { Tell } from '../pending.ts';
import type { Transaction } from '../state.ts';
import type { World } from '../world.ts';
import { changeStatus, post } from './record.ts';
import { accountOf } from './requests.ts';

/** Has an outbound transfer REFUNDED, its money back with its payer: whoever was to have it did not take it, or sends it back. */
export function giveBack(world: World, transaction: Transaction, tell: Tell): void {
  const account = accountOf(world, transaction.source);
  if (account !== undefined) post(world, transaction, SPEI, ledgerAccount(account.id));
  tellStatus(world, transaction, 'REFUNDED', tell);
}

/** Gives an outbound transfer a state, and tells it by a STATUS_UPDATE. */
export function tellStatus(world: World, transaction: Transaction, status: string, tell: Tell): void {
  changeStatus(world, transaction, status);
  const change = { resource: 'TRANSACTION', id: transaction.id, status };
  tell(statusUpdateMessage(world, transaction.clientId, change));
}
