import { cepStatus } from '../resolvers/cep.ts';
import {
  type CepEvent,
  cepTransaction,
  type Event,
  type MoneyInEvent,
  moneyInAccount,
  moneyInOwner,
  moneyInTransaction,
  type Party,
  payerBank,
  type StatusUpdateEvent,
} from '../resolvers/events/event.ts';
import { transactionSubCategory } from '../resolvers/transaction.ts';
import { when } from '../resolvers/values.ts';
import { builder, ofParent, reads, withGraphScope } from './builder.ts';
import { CepStatusType } from './cep.ts';
import { MoneyType } from './money.ts';
import { OwnerType } from './owner.ts';
import { AccountType, BankType, TransactionType } from './refs.ts';
import { TransactionSubCategoryType } from './transaction-values.ts';

export const EventTypeEnum = builder.enumType('EventType', {
  description: 'What an event tells of.',
  values: {
    MONEY_IN: { description: 'Money has arrived.' },
    CEP: { description: 'The receipt of a penny validation has changed.' },
    STATUS_UPDATE: { description: 'Something that the upstream does not document.' },
  } satisfies Record<Event['type'], object>,
});

const TYPE_NAMES = {
  MONEY_IN: 'MoneyInEvent',
  CEP: 'CepEvent',
  STATUS_UPDATE: 'StatusUpdateEvent',
} as const;

export const EventInterface = builder.interfaceRef<Event>('Event').implement({
  description: 'A notification of the service, kept in the event log.',
  resolveType: (event) => TYPE_NAMES[event.type],
  fields: (t) => ({
    id: t.exposeID('id', {
      nullable: false,
      description:
        "The provider's message id; a redelivery has the same one, and another event may have it too: `cursor` tells two apart. Where the provider sends none, made here.",
    }),
    type: t.expose('type', { type: EventTypeEnum, nullable: false, description: 'What the event tells of.' }),
    cursor: t.expose('cursor', {
      type: 'Cursor',
      nullable: false,
      description: 'Place of the event in the log: pass it as `after` to go on behind it.',
    }),
    receivedAt: t.expose('receivedAt', {
      type: 'DateTime',
      nullable: false,
      description: 'When the gateway received it.',
    }),
  }),
});

const PartyType = builder.objectRef<Party>('Party').implement({
  description: 'Someone on one side of a movement, as the notification names them.',
  fields: (t) => ({
    account: t.exposeString('account', { description: 'CLABE or account number.' }),
    name: t.exposeString('name', { description: 'Name of the holder.' }),
    rfc: t.exposeString('rfc', {
      description: 'Tax identifier (RFC) of the holder. `ND` when not provided, as the upstream writes it.',
    }),
  }),
});

const MoneyInDecisionType = builder.enumType('MoneyInDecision', {
  description: 'What was decided on a credit.',
  values: {
    ACCEPTED: { description: 'The SPEI credit was accepted.' },
    REJECTED: {
      description:
        'The SPEI credit was rejected. The upstream refunds it once it has the 422 of the gateway.',
    },
    INFORMED: {
      description:
        'Nothing was decided. With `subCategory: INT_CREDIT` an internal transaction had moved the money already. With any other the gateway does not know what the credit is: do not ship for it, and have a person ask the provider.',
    },
  },
});

export const MoneyInEventType = builder.objectRef<MoneyInEvent>('MoneyInEvent').implement({
  description: 'Money has arrived, through SPEI or from another internal instrument.',
  interfaces: [EventInterface],
  fields: (t) => ({
    messageDate: t.expose('messageDate', {
      type: 'Date',
      nullable: true,
      description: 'Date that the message bears; null when it bears none.',
    }),
    transactionId: t.exposeID('transactionId', {
      description:
        'UUID of the transaction. Null where the message writes it as a number that JSON readers round.',
    }),
    subCategory: t.field({
      type: TransactionSubCategoryType,
      nullable: false,
      description: '`SPEI_CREDIT` from outside, `INT_CREDIT` from another internal instrument.',
      extensions: ofParent,
      resolve: (event, _args, { services }) => transactionSubCategory(event.subCategory, services.logger),
    }),
    rawSubCategory: t.exposeString('subCategory', {
      extensions: ofParent,
      description: 'The sub-category as the message writes it; null when it bears none.',
    }),
    amount: t.field({
      type: MoneyType,
      nullable: false,
      description: 'How much has arrived.',
      extensions: ofParent,
      resolve: (event) => event,
    }),
    beneficiary: t.expose('beneficiary', {
      type: PartyType,
      nullable: false,
      description: 'Who receives it.',
    }),
    payer: t.expose('payer', { type: PartyType, nullable: false, description: 'Who paid it.' }),
    payerInstitution: t.exposeString('payerInstitution', {
      description:
        "Code of the payer's institution: the central bank's for SPEI credits, an internal one for internal credits.",
    }),
    trackingKey: t.exposeString('trackingKey', {
      description: 'SPEI tracking key (clave de rastreo), or the tracking id of an internal credit.',
    }),
    paymentConcept: t.exposeString('paymentConcept', { description: 'What the payment is for.' }),
    numericReference: t.exposeString('numericReference', {
      description: 'Numeric reference, such as `"1234567"`.',
    }),
    transactionDate: t.field({
      type: 'DateTime',
      description: 'Date and time that the message bears for the transaction.',
      extensions: ofParent,
      resolve: when('transactionDate'),
    }),
    registeredAt: t.field({
      type: 'DateTime',
      description: 'When the service registered it.',
      extensions: ofParent,
      resolve: when('registeredAt'),
    }),
    ownerId: t.exposeID('ownerId', { description: 'UUID of the owner of the instrument that received it.' }),
    decision: t.expose('decision', {
      type: MoneyInDecisionType,
      nullable: false,
      description: 'What was decided and stored, before the gateway answered.',
    }),
    refundReason: t.exposeString('refundReason', {
      description: 'Why the credit was rejected; null when it was not, or no reason was given.',
    }),
  }),
});

/** What the credit leads to. */
builder.objectFields(MoneyInEventType, (t) => ({
  owner: t.field({
    type: OwnerType,
    description: 'The owner of the instrument that received it; null when it cannot be found.',
    extensions: reads('customers'),
    resolve: withGraphScope((event, _args, context) => moneyInOwner(event, context)),
  }),
  transaction: t.field({
    type: TransactionType,
    description: 'Read afresh from the upstream. Null when it cannot be read, or not yet.',
    resolve: withGraphScope((event, _args, context) => moneyInTransaction(event, context)),
  }),
  account: t.field({
    type: AccountType,
    description:
      'The account that received it, by its CLABE, as it is now: of those that the service lists for the client. Null where it lists none with it, or no longer.',
    extensions: reads('accounts'),
    resolve: withGraphScope((event, _args, context) => moneyInAccount(event, context)),
  }),
  payerBank: t.field({
    type: BankType,
    description:
      "The payer's bank, by the code of its institution. Null where the catalog has none with it, and for an internal credit, whose code is one of the service's own.",
    extensions: reads('banks'),
    resolve: withGraphScope((event, _args, context) => payerBank(event, context)),
  }),
}));

builder.objectRef<CepEvent>('CepEvent').implement({
  description: 'The receipt of a penny validation has changed, or the service still waits for it.',
  interfaces: [EventInterface],
  fields: (t) => ({
    messageDate: t.expose('messageDate', {
      type: 'Date',
      nullable: true,
      description: 'Date that the message bears; null when it bears none.',
    }),
    bodyId: t.exposeID('bodyId', {
      description: "The `id` of the message's body, as sent: the upstream does not say of what.",
    }),
    transactionId: t.id({
      description:
        'UUID of the transaction, when the message could be matched to one: a REST call for each event. `bodyId` costs none.',
      resolve: async (event, _args, context) => (await cepTransaction(event, context))?.id ?? null,
    }),
    status: t.field({
      type: CepStatusType,
      nullable: false,
      description: 'How far along the receipt is.',
      extensions: ofParent,
      resolve: (event, _args, context) => cepStatus(event.status, context),
    }),
    rawStatus: t.exposeString('status', {
      nullable: false,
      extensions: ofParent,
      description: 'The state as the message writes it.',
    }),
    trackingKey: t.exposeString('trackingKey', { description: 'SPEI tracking key (clave de rastreo).' }),
    externalReference: t.exposeString('externalReference', {
      description: 'Numeric reference; null until the receipt is complete.',
    }),
    paymentConcept: t.exposeString('paymentConcept', { description: 'What the payment was for.' }),
    beneficiary: t.expose('beneficiary', {
      type: PartyType,
      nullable: false,
      description: 'The account holder, as verified once the receipt is complete.',
    }),
    processedAt: t.field({
      type: 'DateTime',
      description: 'When the receipt was processed; null until then.',
      extensions: ofParent,
      resolve: when('processedAt'),
    }),
    transaction: t.field({
      type: TransactionType,
      description: 'The transaction, when the message could be matched to one; read afresh.',
      resolve: withGraphScope((event, _args, context) => cepTransaction(event, context)),
    }),
  }),
});

builder.objectRef<StatusUpdateEvent>('StatusUpdateEvent').implement({
  description: 'The upstream documents neither payload nor triggers: it is passed on whole.',
  interfaces: [EventInterface],
  fields: (t) => ({
    payload: t.expose('payload', {
      type: 'JSON',
      nullable: false,
      description:
        'The message as it came. A message that is the JSON value `null` reads as an empty object.',
    }),
  }),
});
