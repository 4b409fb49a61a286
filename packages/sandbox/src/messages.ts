import { formatCents } from './amounts.ts';
import type { Message } from './deliveries.ts';
import { OWN_INSTITUTION } from './participants.ts';
import type { Instrument, Transaction } from './state.ts';
import { formatDate, formatSeconds, formatTimestamp } from './timestamps.ts';
import { shownStatus, withExtraFields } from './views.ts';
import type { World } from './world.ts';

/** What an SPEI credit's receiver decides: true accepts (201), false rejects (422) with its reason. */
export type Decide = (accepted: boolean, refundReason: string | undefined) => void;

/** MONEY_IN of a SPEI credit: 201 and 422 are answers (docs/upstream-api.md, "Events"). When nobody can answer, the credit is accepted. */
export function speiCreditMessage(world: World, credit: Transaction, decide: Decide): Message {
  return {
    ...moneyIn(world, credit, payerInstitution(world, credit.source)),
    answered: (status) => status === 201 || status === 422,
    onAnswer: (status, body) => decide(status === 201, status === 422 ? readRefundReason(body) : undefined),
    onNoAnswer: () => decide(true, undefined),
  };
}

/** MONEY_IN of an internal credit: informational, no status has an effect. */
export function internalCreditMessage(world: World, credit: Transaction): Message {
  return { ...moneyIn(world, credit, OWN_INSTITUTION), answered: isSuccess };
}

/** CEP message of a penny validation, with the validation's state now (docs/upstream-api.md, "Events"). */
export function cepMessage(world: World, validation: Transaction, idMsg: string): Message | undefined {
  const { cep } = validation;
  if (cep === undefined) return undefined;
  const { choices } = world;
  const completed = cep.status === 'COMPLETED';
  const { detail } = validation.destination;
  const body = {
    id: choices.cepBodyId === 'transaction' ? validation.id : cep.validationId,
    tracking_key: validation.trackingId,
    ...(completed ? { external_reference: validation.externalReference } : {}),
    payment_concept: validation.description,
    beneficiary_account: detail.kind === 'clabe' ? detail.clabeNumber : detail.cardNumber,
    beneficiary_name: cep.beneficiaryName ?? null,
    beneficiary_rfc: cep.beneficiaryRfc ?? null,
    status: shownStatus(cep),
    processed_at:
      cep.processedAt === undefined ? null : formatTimestamp(cep.processedAt, choices.timestamps.cep),
  };
  const payload = { id_msg: idMsg, msg_name: 'CEP', msg_date: formatDate(world.clock.now()), body };
  return {
    clientId: validation.clientId,
    type: 'CEP',
    idMsg,
    transactionId: validation.id,
    body: withExtraFields(choices, { client_id: validation.clientId, payload, webhook_type: 'CEP' }),
    answered: isSuccess,
  };
}

/** STATUS_UPDATE, whose payload the spec does not show. */
export function statusUpdateMessage(
  world: World,
  clientId: string,
  change: { resource: string; id: string; status: string },
): Message {
  const at = world.clock.now();
  const form = world.choices.timestamps.general;
  const transactionId = change.resource === 'TRANSACTION' ? change.id : undefined;
  if (world.choices.statusUpdateForm === 'bare') {
    const body = { event: `${change.resource}.${change.status}`.toLowerCase(), data: change };
    return { clientId, type: 'STATUS_UPDATE', idMsg: undefined, body, transactionId, answered: isSuccess };
  }
  const idMsg = world.ids.uuid('message');
  const body = {
    id_msg: idMsg,
    msg_name: 'STATUS_UPDATE',
    msg_date: formatDate(at),
    body: { ...change, updated_at: formatTimestamp(at, form) },
  };
  return { clientId, type: 'STATUS_UPDATE', idMsg, body, transactionId, answered: isSuccess };
}

function moneyIn(world: World, credit: Transaction, payer_institution: string) {
  const idMsg = world.ids.uuid('message');
  const body = {
    id: credit.id,
    beneficiary_account: accountNumberOf(credit.destination),
    beneficiary_name: credit.destination.detail.holderName,
    beneficiary_rfc: credit.destination.rfc,
    payer_account: accountNumberOf(credit.source),
    payer_name: credit.source.detail.holderName,
    payer_rfc: credit.source.rfc,
    payer_institution,
    amount: formatCents(credit.amount),
    transaction_date: formatSeconds(credit.createdAt),
    tracking_key: credit.trackingId,
    payment_concept: credit.description,
    numeric_reference: credit.externalReference,
    sub_category: credit.subCategory,
    registered_at: formatTimestamp(credit.createdAt, 'iso'),
    owner_id: credit.destination.ownerId,
  };
  return {
    clientId: credit.destination.clientId,
    type: 'MONEY_IN' as const,
    idMsg,
    transactionId: credit.id,
    body: withExtraFields(world.choices, {
      id_msg: idMsg,
      msg_name: 'MONEY_IN',
      msg_date: formatDate(world.clock.now()),
      body,
    }),
  };
}

function accountNumberOf({ detail }: Instrument): string {
  return detail.kind === 'clabe' ? detail.clabeNumber : detail.cardNumber;
}

function payerInstitution(world: World, payer: Instrument): string {
  return world.state.banks.get(payer.bankId)?.institutionCode ?? OWN_INSTITUTION;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function readRefundReason(body: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === 'object' && parsed !== null && 'refundReason' in parsed) {
      return typeof parsed.refundReason === 'string' ? parsed.refundReason : undefined;
    }
  } catch {
    // The body is optional, and one that is no JSON gives no reason.
  }
  return undefined;
}
