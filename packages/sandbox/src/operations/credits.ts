import type { Delivery } from '../deliveries.ts';
import { preconditionFailed } from '../errors.ts';
import { heldFor, ledgerAccount, SPEI } from '../ledger.ts';
import { speiCreditMessage } from '../messages.ts';
import type { Tell } from '../pending.ts';
import type { Account, Instrument, Transaction } from '../state.ts';
import type { World } from '../world.ts';
import { giveBack } from './outcome.ts';
import { changeStatus, post, recordTransaction } from './record.ts';
import { checkFunds } from './requests.ts';

export interface IncomingCredit {
  account: Account;
  payer: Instrument;
  amount: bigint;
  concept: string;
  reference: string;
  trackingId?: string;
  /** The transfer of the sandbox's own that arrives by it. */
  comesFrom?: Transaction;
}

/**
 * An SPEI credit arrives. Its money is held until the MONEY_IN webhook has been answered: 201 makes it available, 422 sends
 * it back. Without an active webhook, or once every delivery has been given up, it is accepted.
 *
 * `deliveries` resolves when each active webhook has been tried once.
 *
 * @param tell sends what an end tells that comes until then; one that comes later, by a retry, is told the way of the clock's own.
 */
export function receiveSpeiCredit(
  world: World,
  credit: IncomingCredit,
  tell?: Tell,
): { transaction: Transaction; deliveries: Promise<Delivery[]> } {
  const destination = world.state.instruments.get(credit.account.instrumentId);
  if (destination === undefined) throw preconditionFailed('The account has no instrument.');
  const { clientId } = credit.account;
  const transaction = recordTransaction(world, {
    clientId,
    source: credit.payer,
    destination,
    amount: credit.amount,
    description: credit.concept,
    externalReference: credit.reference,
    category: world.choices.creditCategory,
    subCategory: 'SPEI_CREDIT',
    status: 'INITIALIZED',
    ...(credit.trackingId === undefined ? {} : { trackingId: credit.trackingId }),
    ...(credit.comesFrom === undefined ? {} : { comesFrom: credit.comesFrom }),
  });
  post(world, transaction, SPEI, heldFor(clientId));
  let reason = 'Rejected by the receiver';
  const end = world.pending.add(transaction.id, {
    done: () => {
      post(world, transaction, heldFor(clientId), ledgerAccount(credit.account.id));
      changeStatus(world, transaction, 'LIQUIDATED');
    },
    failed: (tellOf) => {
      sendBack(world, transaction, heldFor(clientId), reason, tellOf);
    },
  });
  let tellMeanwhile = tell;
  const message = speiCreditMessage(world, transaction, (accepted, refundReason) => {
    reason = refundReason ?? reason;
    void end(accepted ? 'done' : 'failed', tellMeanwhile);
  });
  const deliveries = world.deliveries.send(message).finally(() => {
    tellMeanwhile = undefined;
  });
  return { transaction, deliveries };
}

/**
 * Refunds a received SPEI credit in full (docs/upstream-api.md, endpoint 14).
 *
 * @throws ApiError 400 FAILED_PRECONDITION when it is no such credit, was refunded before (a choice), or the account that
 *   received it holds less by now.
 */
export function refundCredit(world: World, credit: Transaction, description: string): Transaction {
  if (credit.subCategory !== 'SPEI_CREDIT') {
    throw preconditionFailed('Only external SPEI credits can be refunded.');
  }
  const repeatable = world.choices.repeatedRefund === 'performed' && credit.status === 'REFUNDED';
  if (credit.status !== 'LIQUIDATED' && !repeatable) {
    throw preconditionFailed(
      credit.status === 'REFUNDED'
        ? 'The transaction has already been refunded.'
        : 'The transaction has not been liquidated.',
    );
  }
  const account = world.state.accounts.get(credit.destination.accountId ?? '');
  if (account === undefined) throw preconditionFailed('The account is not currently active.');
  checkFunds(world, account, credit.amount);
  return sendBack(world, credit, ledgerAccount(account.id), description, (message) =>
    world.deliveries.enqueue(message),
  );
}

function sendBack(
  world: World,
  credit: Transaction,
  from: string,
  description: string,
  tell: Tell,
): Transaction {
  const refund = recordTransaction(world, {
    clientId: credit.clientId,
    source: credit.destination,
    destination: credit.source,
    amount: credit.amount,
    description,
    externalReference: credit.externalReference,
    category: 'DEBIT_TRANS',
    subCategory: 'SPEI_DEBIT',
    status: 'LIQUIDATED',
    originalTransactionId: credit.id,
  });
  post(world, refund, from, SPEI);
  changeStatus(world, credit, 'REFUNDED');
  if (credit.comesFrom !== undefined) giveBack(world, credit.comesFrom, tell);
  return refund;
}
