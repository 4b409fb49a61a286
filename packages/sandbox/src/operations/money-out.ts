import { ledgerAccount, SPEI } from '../ledger.ts';
import { statusUpdateMessage } from '../messages.ts';
import type { Transaction } from '../state.ts';
import type { World } from '../world.ts';
import { receiveSpeiCredit } from './credits.ts';
import { changeStatus, post, recordTransaction } from './record.ts';
import {
  accountOf,
  checkActiveDestination,
  checkFunds,
  checkOwnClient,
  checkTransactionRequest,
  ownDestination,
  type Parties,
  type TransactionRequest,
  usableSpeiSource,
} from './requests.ts';

/** Starts an outbound SPEI transfer (docs/upstream-api.md, endpoint 11): INITIALIZED now, LIQUIDATED on the clock. @throws ApiError */
export function startMoneyOut(
  world: World,
  clientId: string,
  body: Parties & { transaction_request: TransactionRequest },
): Transaction {
  checkOwnClient(world, clientId, body.client_id);
  const amount = checkTransactionRequest(body.transaction_request, world.choices.moneyOutDescription);
  const { source, account } = usableSpeiSource(world, clientId, body.source_instrument_id);
  const destination = ownDestination(world, clientId, body.destination_instrument_id);
  checkActiveDestination(world, destination);
  checkFunds(world, account, amount);
  const transaction = recordTransaction(world, {
    clientId,
    source,
    destination,
    amount,
    description: body.transaction_request.description,
    externalReference: body.transaction_request.external_reference,
    category: 'DEBIT_TRANS',
    subCategory: 'SPEI_DEBIT',
    status: 'INITIALIZED',
  });
  post(world, transaction, ledgerAccount(account.id), SPEI);
  liquidateLater(world, transaction);
  return transaction;
}

/** Lets an outbound SPEI transfer settle on the clock. */
export function liquidateLater(world: World, transaction: Transaction): void {
  const total = world.choices.moneyOutSeconds * 1000;
  if (world.choices.valuesBeyondTheSpec) {
    world.clock.schedule(transaction.createdAt + total / 2, () =>
      changeStatus(world, transaction, 'IN_PROCESS'),
    );
  }
  world.clock.schedule(transaction.createdAt + total, () => {
    changeStatus(world, transaction, 'LIQUIDATED');
    world.deliveries.enqueue(
      statusUpdateMessage(world, transaction.clientId, {
        resource: 'TRANSACTION',
        id: transaction.id,
        status: transaction.status,
      }),
    );
    return arriveInside(world, transaction);
  });
}

/** A transfer to a CLABE of the sandbox's own comes back from SPEI as a credit. */
async function arriveInside(world: World, transaction: Transaction): Promise<void> {
  const account = accountOf(world, transaction.destination);
  if (account === undefined) return;
  await receiveSpeiCredit(world, {
    account,
    payer: transaction.source,
    amount: transaction.amount,
    concept: transaction.description,
    reference: transaction.externalReference,
    trackingId: transaction.trackingId,
  }).deliveries;
}
