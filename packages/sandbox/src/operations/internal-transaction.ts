import { conflict, dataError } from '../errors.ts';
import { ledgerAccount } from '../ledger.ts';
import { refuseByMagic } from '../magic.ts';
import { internalCreditMessage } from '../messages.ts';
import type { Transaction } from '../state.ts';
import type { World } from '../world.ts';
import { makeTrackingId, post, recordTransaction } from './record.ts';
import {
  accountOf,
  checkActiveDestination,
  checkFunds,
  checkOwnClient,
  checkTransactionRequest,
  ownDestination,
  type Parties,
  type TransactionRequest,
  usableSource,
} from './requests.ts';

/**
 * Moves money book to book (docs/upstream-api.md, endpoint 12) in two legs, and tells the destination's owner unless it is the source's too.
 * Returns the debit leg. @throws ApiError
 */
export function transferInternally(
  world: World,
  clientId: string,
  body: Parties & { transaction_request: TransactionRequest },
): Transaction {
  checkOwnClient(world, clientId, body.client_id);
  const amount = checkTransactionRequest(body.transaction_request, 'fewer than 40');
  const { source, account } = usableSource(world, clientId, body.source_instrument_id);
  const destination = ownDestination(world, clientId, body.destination_instrument_id);
  const destinationAccount = accountOf(world, destination);
  if (destinationAccount === undefined) throw conflict('external_transfer_not_allowed');
  checkActiveDestination(world, destination);
  if (source.id === destination.id && world.choices.sameInstrumentTransfer === 'refused') {
    throw dataError('Source and destination must differ.');
  }
  checkFunds(world, account, amount);
  refuseByMagic({ destination, description: body.transaction_request.description, amount });
  const leg = {
    clientId,
    source,
    destination,
    amount,
    description: body.transaction_request.description,
    externalReference: body.transaction_request.external_reference,
    category: 'INTER_TRANS',
    status: 'LIQUIDATED',
    trackingId: makeTrackingId(world),
  };
  const debit = recordTransaction(world, { ...leg, subCategory: 'INT_DEBIT' });
  const credit = recordTransaction(world, { ...leg, subCategory: 'INT_CREDIT' });
  post(world, debit, ledgerAccount(account.id), ledgerAccount(destinationAccount.id));
  if (source.ownerId !== destination.ownerId) {
    world.deliveries.enqueue(internalCreditMessage(world, credit));
  }
  return debit;
}
