import { dataError, preconditionFailed } from '../errors.ts';
import { ledgerAccount, SPEI } from '../ledger.ts';
import { refuseByMagic } from '../magic.ts';
import type { Transaction } from '../state.ts';
import { formatDayMonthYear } from '../timestamps.ts';
import type { World } from '../world.ts';
import { followCep } from './cep.ts';
import { liquidateLater } from './money-out.ts';
import { post, recordTransaction } from './record.ts';
import {
  checkActiveDestination,
  checkExternalReference,
  checkFunds,
  checkOwnClient,
  ownDestination,
  type Parties,
  usableSpeiSource,
} from './requests.ts';

const ONE_CENTAVO = 1n;

/** Sends 0.01 MXN to a CLABE instrument and follows its CEP (docs/upstream-api.md, endpoint 13). @throws ApiError */
export function startPennyValidation(
  world: World,
  clientId: string,
  body: Parties & { description?: string | undefined; external_reference?: string | undefined },
): Transaction {
  checkOwnClient(world, clientId, body.client_id);
  const description = body.description ?? 'Validacion de cuenta';
  if (!/^[A-Za-z0-9ñÑ ]{0,40}$/.test(description)) {
    throw dataError(
      'Transaction description must have at most 40 characters: letters, digits and spaces only.',
    );
  }
  if (body.external_reference !== undefined) checkExternalReference(body.external_reference);
  const { source, account } = usableSpeiSource(world, clientId, body.source_instrument_id);
  const destination = ownDestination(world, clientId, body.destination_instrument_id);
  checkActiveDestination(world, destination);
  if (destination.detail.kind !== 'clabe') throw preconditionFailed('Only CLABE accounts are supported.');
  if (world.choices.pennyValidationNeedsWebhook && world.state.activeWebhooks(clientId, 'CEP').length === 0) {
    throw preconditionFailed('A CEP webhook must be registered.');
  }
  checkFunds(world, account, ONE_CENTAVO);
  refuseByMagic({ destination, description, amount: ONE_CENTAVO });
  const now = world.clock.now();
  const transaction = recordTransaction(world, {
    clientId,
    source,
    destination,
    amount: ONE_CENTAVO,
    description,
    externalReference: body.external_reference ?? formatDayMonthYear(now),
    category: 'DEBIT_TRANS',
    subCategory: 'SPEI_DEBIT',
    status: 'INITIALIZED',
  });
  transaction.cep = {
    validationId: world.ids.uuid('validation'),
    messageId: world.ids.uuid('message'),
    status: 'PENDING',
    createdAt: now,
  };
  post(world, transaction, ledgerAccount(account.id), SPEI);
  liquidateLater(world, transaction);
  followCep(world, transaction, transaction.cep);
  return transaction;
}
