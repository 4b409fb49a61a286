import { bankOf } from '../resolvers/bank.ts';
import { receiptOf } from '../resolvers/cep.ts';
import { client } from '../resolvers/client.ts';
import { eventPage } from '../resolvers/events/event-page.ts';
import { followTransaction } from '../resolvers/events/subscriptions.ts';
import type { TransactionUpdate } from '../resolvers/events/transaction-states.ts';
import { paymentByTransaction } from '../resolvers/payments/payment-list.ts';
import {
  jsonReference,
  transaction,
  transactionCategory,
  transactionOf,
  transactionStatus,
  transactionSubCategory,
} from '../resolvers/transaction.ts';
import { optional, partOf } from '../resolvers/values.ts';
import { AuditType, auditOf } from './audit.ts';
import {
  builder,
  ENTERS_GRAPH,
  ENTERS_LOG,
  readOnce,
  reads,
  withGraphScope,
  withLogScope,
  withPaymentsScope,
} from './builder.ts';
import { eventWindow } from './event-window.ts';
import { MoneyType } from './money.ts';
import { NodeInterface } from './node.ts';
import { BankType, CepType, ClientType, EventConnectionType, PaymentType, TransactionType } from './refs.ts';
import {
  TransactionCategoryType,
  TransactionInstrumentType,
  TransactionStatusType,
  TransactionSubCategoryType,
} from './transaction-values.ts';

TransactionType.implement({
  extensions: readOnce,
  description: 'A movement of money.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the transaction.' }),
    amount: t.field({
      type: MoneyType,
      nullable: false,
      description: 'How much was moved.',
      resolve: (parent) => parent,
    }),
    status: t.field({
      type: TransactionStatusType,
      nullable: false,
      description: 'How far along it is.',
      resolve: (parent, _args, { services }) => transactionStatus(parent.transactionStatus, services.logger),
    }),
    rawStatus: t.exposeString('transactionStatus', {
      nullable: false,
      description: 'The status as the service writes it.',
    }),
    category: t.field({
      type: TransactionCategoryType,
      nullable: false,
      description: 'Kind of movement.',
      resolve: (parent, _args, { services }) => transactionCategory(parent.category, services.logger),
    }),
    rawCategory: t.exposeString('category', {
      nullable: false,
      description: 'The category as the service writes it.',
    }),
    subCategory: t.field({
      type: TransactionSubCategoryType,
      nullable: false,
      description: 'Kind and direction of the movement.',
      resolve: (parent, _args, { services }) => transactionSubCategory(parent.subCategory, services.logger),
    }),
    rawSubCategory: t.exposeString('subCategory', {
      nullable: false,
      description: 'The sub-category as the service writes it.',
    }),
    externalReference: t.string({
      description: 'Numeric reference of up to seven digits, such as `"1234567"`.',
      resolve: optional('externalReference'),
    }),
    trackingId: t.string({
      description: 'SPEI tracking key (clave de rastreo), or the tracking id of an internal transaction.',
      resolve: optional('trackingId'),
    }),
    description: t.string({ description: 'What the payment is for.', resolve: optional('description') }),
    bankId: t.id({ description: 'UUID of the bank concerned.', resolve: optional('bankId') }),
    originalTransactionId: t.id({
      description: 'On a refund, the UUID of the credit that it returns. Null elsewhere.',
      resolve: optional('originalTransactionId'),
    }),
    jsonReference: t.string({
      description: 'Passed through: the upstream does not document its structure.',
      resolve: jsonReference,
    }),
    audit: t.field({
      type: AuditType,
      nullable: false,
      description: 'When each thing happened.',
      resolve: auditOf,
    }),
  }),
});

/** What the transaction leads to. */
builder.objectFields(TransactionType, (t) => ({
  bank: t.field({
    type: BankType,
    description: 'The bank concerned; null when it names none, or the catalog does not list it.',
    extensions: reads('banks'),
    resolve: withGraphScope((parent, _args, context) => bankOf(parent, context)),
  }),
  client: t.field({
    type: ClientType,
    nullable: false,
    description: 'The client whose transaction it is.',
    resolve: (_transaction, _args, context) => client(context),
  }),
  source: t.field({
    type: TransactionInstrumentType,
    description:
      'Where the money came from. Present when the transaction is read; null on what a mutation returns, unless the service sends it.',
    resolve: ({ sourceInstrument }) => partOf(sourceInstrument, 'sourceInstrument'),
  }),
  destination: t.field({
    type: TransactionInstrumentType,
    description:
      'Where the money went. Present when the transaction is read; null on what a mutation returns, unless the service sends it.',
    resolve: ({ destinationInstrument }) => partOf(destinationInstrument, 'destinationInstrument'),
  }),
  originalTransaction: t.field({
    type: TransactionType,
    description: 'On a refund, the credit that it returns. Null elsewhere.',
    resolve: withGraphScope((parent, _args, context) => transactionOf(parent.originalTransactionId, context)),
  }),
  payment: t.field({
    type: PaymentType,
    description:
      'The intent to pay that it came from. Null where it was not paid through this graph, once that is kept no longer, and where `payments` does not list it to this caller. Null too for one side of an internal transaction, as a rule the credit, because a payment names one transaction; and for a refund that evidence has settled, which names none. An error while payments are held for a record that was put back: it may have forgotten the payment.',
    resolve: withPaymentsScope(({ id }, _args, context) => paymentByTransaction(id, context)),
  }),
  cep: t.field({
    type: CepType,
    description: 'The receipt. Only penny validations have one.',
    resolve: receiptOf,
  }),
  events: t.field({
    type: EventConnectionType,
    description:
      'Events that name the transaction, oldest first: a credit by its id, a receipt by its id or that of its validation. One look-up in the event log, or two for a penny validation. It reaches as far back as the log does, which holds a number of events and forgets older ones: `reachesBackTo` says since when. Null when the log cannot be read.',
    args: eventWindow('oldest first'),
    resolve: withLogScope((parent, args, context) =>
      eventPage({ ...args, transactionId: parent.id }, context),
    ),
  }),
}));

const TransactionMatchInput = builder.inputType('TransactionMatch', {
  description: "Narrows the look-up, as the upstream's own query parameters do.",
  fields: (t) => ({
    status: t.string({ description: 'Only in this status, as the service writes it, such as `LIQUIDATED`.' }),
    trackingId: t.string({ description: 'Only with this SPEI tracking key.' }),
    category: t.string({
      description: 'Only of this category, as the service writes it, such as `DEBIT_TRANS`.',
    }),
    bankId: t.id({ description: 'Only with this bank, by its UUID.' }),
  }),
});

builder.queryField('transaction', (t) =>
  t.field({
    type: TransactionType,
    rights: ENTERS_GRAPH,
    description: 'One transaction of the client; null when there is none of this id, or it does not match.',
    args: {
      id: t.arg.id({ required: true, description: 'UUID of the transaction.' }),
      match: t.arg({
        type: TransactionMatchInput,
        description: 'What it must match besides; null for nothing.',
      }),
    },
    resolve: (_root, { id, match }, context) => transaction(id, match, context),
  }),
);

const TransactionUpdateKindType = builder.enumType('TransactionUpdateKind', {
  description: 'Why an update is sent.',
  values: {
    SNAPSHOT: { description: 'The state at the start of the subscription: always the first update.' },
    CHANGE: { description: 'A later state.' },
  },
});

const TransactionUpdateType = builder.objectRef<TransactionUpdate>('TransactionUpdate').implement({
  description: 'One state of a transaction, as the subscription tells it.',
  fields: (t) => ({
    kind: t.expose('kind', {
      type: TransactionUpdateKindType,
      nullable: false,
      description: 'Whether this is the state at the start or a change.',
    }),
    transaction: t.expose('transaction', {
      type: TransactionType,
      nullable: false,
      description: 'The transaction as it is now.',
    }),
  }),
});

builder.subscriptionField('transactionStatus', (t) =>
  t.field({
    type: TransactionUpdateType,
    nullable: false,
    rights: { scopes: [...ENTERS_GRAPH.scopes, ...ENTERS_LOG.scopes] },
    description:
      'The state of one transaction now, then each other state that a reading of it shows, until it is final: REFUNDED, or LIQUIDATED of a transaction that `refundTransaction` cannot return. A state between two readings is not shown: a received SPEI credit may be REFUNDED without having been shown as LIQUIDATED. A credit that is LIQUIDATED is followed on. A transfer out that the other bank returns later has ended here with LIQUIDATED; whether a later read shows the return is not documented. Within one subscription no state steps back to INITIALIZED. A state that the upstream has not documented is shown, and is never final; the state before it may come again. Subscribing again starts with what the upstream says at that time, so that a dropped connection loses no final state; it may be behind the last state that was told before.',
    args: {
      transactionId: t.arg.id({ required: true, description: 'UUID of the transaction.' }),
    },
    subscribe: (_root, { transactionId }, context) => followTransaction(transactionId, context),
    resolve: (update) => update,
  }),
);
