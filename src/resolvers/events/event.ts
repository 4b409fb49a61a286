import { toMessageAmount } from '../../common/amounts.ts';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import { EVENT_TYPES, type EventType, type MoneyInDecision, type StoredEvent } from '../../events/log.ts';
import type { Context } from '../../operation/context.ts';
import { ACCOUNTS, type Account } from '../../upstream/accounts.ts';
import type { Bank } from '../../upstream/banks.ts';
import { isObject, type JsonObject, present } from '../../upstream/call/json.ts';
import { isUuid } from '../../upstream/call/path.ts';
import { CUSTOMERS } from '../../upstream/customers.ts';
import type { Transaction } from '../../upstream/transactions.ts';
import { type Owner, ownerOf } from '../owner.ts';

/** Someone on one side of a movement, as a message names them. */
export interface Party {
  readonly account: string | null;
  readonly name: string | null;
  readonly rfc: string | null;
}

interface EventView {
  readonly id: string;
  readonly type: EventType;
  readonly cursor: string;
  readonly receivedAt: string;
}

/** A MONEY_IN message (docs/upstream-api.md, "Events"), under the graph's names. */
export interface MoneyInEvent extends EventView {
  readonly type: 'MONEY_IN';
  readonly messageDate: string | null;
  /** Null where the message writes it as a number beyond 2^53: the ingress takes no message without one. */
  readonly transactionId: string | null;
  readonly subCategory: string | null;
  readonly amount: string;
  /** Messages name no currency; the service's conventions do. */
  readonly currency: 'MXN';
  readonly beneficiary: Party;
  readonly payer: Party;
  readonly payerInstitution: string | null;
  readonly trackingKey: string | null;
  readonly paymentConcept: string | null;
  readonly numericReference: string | null;
  /** As the upstream writes it. */
  readonly transactionDate: string | null;
  readonly registeredAt: string | null;
  readonly ownerId: string | null;
  readonly decision: MoneyInDecision;
  readonly refundReason: string | null;
}

/** A CEP message (docs/upstream-api.md, "Events"), under the graph's names. */
export interface CepEvent extends EventView {
  readonly type: 'CEP';
  readonly messageDate: string | null;
  readonly bodyId: string | null;
  readonly status: string;
  readonly trackingKey: string | null;
  readonly externalReference: string | null;
  readonly paymentConcept: string | null;
  readonly beneficiary: Party;
  readonly processedAt: string | null;
}

/** A STATUS_UPDATE message: the spec shows nothing of it. */
export interface StatusUpdateEvent extends EventView {
  readonly type: 'STATUS_UPDATE';
  /** The message whole; one that is the JSON value null is an empty object, as there is nothing in it to lose. */
  readonly payload: NonNullable<unknown>;
}

export type Event = MoneyInEvent | CepEvent | StatusUpdateEvent;

const NOTHING: JsonObject = {};
const objectAt = (value: unknown, key: string): JsonObject => {
  const inner = isObject(value) ? value[key] : undefined;
  return isObject(inner) ? inner : NOTHING;
};

/** A text; a number too, since a provider may send a reference as either. Absent is null, and so is a number that JavaScript has rounded. */
const text = (holder: JsonObject, key: string): string | null => present(holder[key]);

/** An amount with its two decimals. What is no amount stays as it is, for the graph to refuse it where it is asked for. */
const amount = (holder: JsonObject): string =>
  toMessageAmount(holder['amount']) ?? text(holder, 'amount') ?? '';

const DATE = /^\d{4}-\d{2}-\d{2}$/;

function messageDate(envelope: JsonObject): string | null {
  const date = text(envelope, 'msg_date');
  return date !== null && DATE.test(date) ? date : null;
}

const party = (body: JsonObject, side: 'beneficiary' | 'payer'): Party => ({
  account: text(body, `${side}_account`),
  name: text(body, `${side}_name`),
  rfc: text(body, `${side}_rfc`),
});

function moneyIn(stored: StoredEvent, view: EventView): MoneyInEvent {
  const envelope = isObject(stored.payload) ? stored.payload : NOTHING;
  const body = objectAt(envelope, 'body');
  return {
    ...view,
    type: 'MONEY_IN',
    messageDate: messageDate(envelope),
    transactionId: text(body, 'id'),
    subCategory: text(body, 'sub_category'),
    amount: amount(body),
    currency: 'MXN',
    beneficiary: party(body, 'beneficiary'),
    payer: party(body, 'payer'),
    payerInstitution: text(body, 'payer_institution'),
    trackingKey: text(body, 'tracking_key'),
    paymentConcept: text(body, 'payment_concept'),
    numericReference: text(body, 'numeric_reference'),
    transactionDate: text(body, 'transaction_date'),
    registeredAt: text(body, 'registered_at'),
    ownerId: text(body, 'owner_id'),
    decision: stored.decision ?? 'INFORMED',
    refundReason: stored.refundReason ?? null,
  };
}

/** The message is wrapped (`client_id`, `payload`, `webhook_type`): the ingress takes no other. One without a wrapper would be read likewise. */
function cep(stored: StoredEvent, view: EventView): CepEvent {
  const outer = isObject(stored.payload) ? stored.payload : NOTHING;
  const envelope = isObject(outer['payload']) ? outer['payload'] : outer;
  const body = objectAt(envelope, 'body');
  return {
    ...view,
    type: 'CEP',
    messageDate: messageDate(envelope),
    bodyId: text(body, 'id'),
    status: text(body, 'status') ?? '',
    trackingKey: text(body, 'tracking_key'),
    externalReference: text(body, 'external_reference'),
    paymentConcept: text(body, 'payment_concept'),
    beneficiary: party(body, 'beneficiary'),
    processedAt: text(body, 'processed_at'),
  };
}

const decoded = new WeakMap<StoredEvent, Event | undefined>();

/**
 * Reads a stored event. A feed hands the same object to all its followers, so each is read once. For a caller narrowed to a
 * customer each follower and each page has copies, with sealed cursors (events/sealed-reads.ts), and reads those by itself.
 *
 * @returns undefined for an event of a type that this version does not know: a later one has stored it, and its readers will get it.
 */
export function decodeEvent(stored: StoredEvent): Event | undefined {
  if (!decoded.has(stored)) decoded.set(stored, read(stored));
  return decoded.get(stored);
}

function read(stored: StoredEvent): Event | undefined {
  const { id, cursor, receivedAt } = stored;
  const type = EVENT_TYPES.find((known) => known === stored.type);
  if (type === undefined) return undefined;
  const view = { id, cursor, receivedAt, type };
  if (type === 'MONEY_IN') return moneyIn(stored, view);
  if (type === 'CEP') return cep(stored, view);
  return { ...view, type, payload: stored.payload ?? NOTHING };
}

/**
 * The transaction of a CEP message, by the message's own id: the spec does not say what that names, so that it may well
 * be none. (A subscription to one receipt knows its transaction and matches by more; see receipt.ts.)
 */
export function cepTransaction(event: CepEvent, context: Context): MaybePromise<Transaction | null> {
  return event.bodyId !== null && isUuid(event.bodyId)
    ? context.reads.session.transactions.get(event.bodyId)
    : null;
}

/** The transaction that a credit names, read afresh. */
export const moneyInTransaction = (
  event: MoneyInEvent,
  context: Context,
): MaybePromise<Transaction | null> =>
  event.transactionId !== null && isUuid(event.transactionId)
    ? context.reads.session.transactions.get(event.transactionId)
    : null;

/**
 * The account that a credit has gone to, among those that the caller may see. It may be newer than the list that this process
 * knows, where another process had it opened.
 */
export function moneyInAccount(
  { beneficiary: { account } }: MoneyInEvent,
  { reads }: Context,
): MaybePromise<Account | null> {
  if (account === null) return null;
  reads.noteItem(ACCOUNTS, 'clabeNumber', account);
  return reads.session.accounts.find('clabeNumber', account);
}

/** The owner of the instrument that received a credit, who may be as new. */
export function moneyInOwner(event: MoneyInEvent, context: Context): MaybePromise<Owner | null> {
  const { clientId } = context.identity.caller;
  const id = event.ownerId;
  if (id !== null && id.toLowerCase() !== clientId.toLowerCase()) context.reads.noteItem(CUSTOMERS, 'id', id);
  return ownerOf(event, context);
}

/**
 * The bank of the catalog that has the code of the payer's institution. The code of an internal credit is one of the service's own, so it is
 * looked up nowhere: where the catalog has the same code, that may be another institution's.
 */
export const payerBank = (
  { payerInstitution, subCategory }: MoneyInEvent,
  { reads }: Context,
): MaybePromise<Bank | null> =>
  payerInstitution === null || subCategory === 'INT_CREDIT'
    ? null
    : reads.session.banks.find('institutionCode', payerInstitution);
