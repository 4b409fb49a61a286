import { ledgerAccount, SPEI } from '../ledger.ts';
import { magicOf, refuseByMagic } from '../magic.ts';
import type { Tell } from '../pending.ts';
import type { Transaction } from '../state.ts';
import type { World } from '../world.ts';
import { receiveSpeiCredit } from './credits.ts';
import { giveBack, tellStatus } from './outcome.ts';
import { changeStatus, post, recordTransaction } from './record.ts';
import {
  checkActiveDestination,
  checkFunds,
  checkOwnClient,
  checkTransactionRequest,
  ownDestination,
  type Parties,
  type TransactionRequest,
  usableSpeiSource,
} from './requests.ts';

/** A late transfer takes so many times as long as an ordinary one. */
const LATE_TIMES = 10;
/** Simulated ms from the settlement of a transfer to its return. */
const RETURNED_AFTER_MS = 60_000;

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
  const { description } = body.transaction_request;
  refuseByMagic({ destination, description, amount });
  const transaction = recordTransaction(world, {
    clientId,
    source,
    destination,
    amount,
    description,
    externalReference: body.transaction_request.external_reference,
    category: 'DEBIT_TRANS',
    subCategory: 'SPEI_DEBIT',
    status: 'INITIALIZED',
  });
  post(world, transaction, ledgerAccount(account.id), SPEI);
  liquidateLater(world, transaction);
  return transaction;
}

/** Lets an outbound SPEI transfer settle on the clock, or become of it what it says itself. */
export function liquidateLater(world: World, transaction: Transaction): void {
  const magic = magicOf(transaction);
  const end = world.pending.add(transaction.id, {
    done: (tell) => liquidate(world, transaction, magic === 'returned', tell),
    failed: (tell) => giveBack(world, transaction, tell),
  });
  if (magic === 'stuck') return;
  const total = settlementSeconds(world, magic) * 1000;
  if (world.choices.valuesBeyondTheSpec) {
    world.clock.schedule(transaction.createdAt + total / 2, () => {
      if (transaction.status === 'INITIALIZED') changeStatus(world, transaction, 'IN_PROCESS');
    });
  }
  world.clock.schedule(transaction.createdAt + total, () => end(magic === 'failed' ? 'failed' : 'done'));
}

/** Simulated seconds until a transfer settles. */
export const settlementSeconds = ({ choices }: World, magic: ReturnType<typeof magicOf>): number =>
  choices.moneyOutSeconds * (magic === 'late' ? LATE_TIMES : 1);

async function liquidate(
  world: World,
  transaction: Transaction,
  isReturned: boolean,
  tell: Tell,
): Promise<void> {
  tellStatus(world, transaction, 'LIQUIDATED', tell);
  if (!isReturned) return arriveInside(world, transaction, tell);
  const end = world.pending.add(transaction.id, {
    isReturn: true,
    done: (late) => giveBack(world, transaction, late),
  });
  world.clock.schedule(world.clock.now() + RETURNED_AFTER_MS, () => end('done'));
}

/** A transfer to a CLABE of the sandbox's own comes back from SPEI as a credit, also where it was registered as a receiver's. */
async function arriveInside(world: World, transaction: Transaction, tell: Tell): Promise<void> {
  const { detail } = transaction.destination;
  const account = detail.kind === 'clabe' ? world.state.accountByClabe(detail.clabeNumber) : undefined;
  if (account === undefined) return;
  const credit = {
    account,
    payer: transaction.source,
    amount: transaction.amount,
    concept: transaction.description,
    reference: transaction.externalReference,
    trackingId: transaction.trackingId,
    comesFrom: transaction,
  };
  await receiveSpeiCredit(world, credit, tell).deliveries;
}
