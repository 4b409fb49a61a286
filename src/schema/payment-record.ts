import { type PaymentsPage, paymentByKey, paymentsPage } from '../resolvers/payments/payment-list.ts';
import type { OPERATIONS, Payment, PaymentState } from '../resolvers/payments/payment-state.ts';
import { transactionOf } from '../resolvers/transaction.ts';
import { builder, withGraphScope, withPaymentsScope } from './builder.ts';
import { PageInfoType } from './connection.ts';
import { MoneyType } from './money.ts';
import { NodeInterface } from './node.ts';
import { PaymentType, TransactionType } from './refs.ts';

const OperationType = builder.enumType('PaymentOperation', {
  description: 'How money was to be moved.',
  values: {
    MONEY_OUT: { description: 'An outbound SPEI transfer.' },
    INTERNAL_TRANSACTION: { description: 'A movement between two internal instruments.' },
    PENNY_VALIDATION: { description: 'A payment of 0.01 MXN to learn who owns a CLABE.' },
    REFUND: { description: 'The return of a received SPEI credit.' },
  } satisfies Record<keyof typeof OPERATIONS, object>,
});

const StateType = builder.enumType('PaymentState', {
  description: 'What became of an intent to pay.',
  values: {
    IN_FLIGHT: {
      description:
        'It was asked for, and the call that sends it is at it, or of money out the gateway itself: nothing is known yet.',
    },
    DONE: {
      description:
        'The service has taken it. That stays, also where the money comes back: `transaction` is as it reads now.',
    },
    REFUSED: { description: 'The service has refused it: nothing has moved.' },
    UNKNOWN: { description: 'It was sent, and may have happened.' },
  } satisfies Record<PaymentState, object>,
});

PaymentType.implement({
  description:
    'One intent to pay: what was asked, and what became of it. Its idempotency key is a secret of its caller and is never shown.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', {
      nullable: false,
      description: 'Id of the payment: the same for as long as it is kept. It tells nothing of the key.',
    }),
    operation: t.expose('operation', {
      type: OperationType,
      nullable: false,
      description: 'How money was to be moved.',
    }),
    state: t.expose('state', { type: StateType, nullable: false, description: 'What became of it.' }),
    amount: t.expose('amount', {
      type: MoneyType,
      nullable: true,
      description:
        'How much was asked for. Null for a refund, which is always in full, that names no amount and is not done.',
    }),
    sourceInstrumentId: t.exposeID('sourceInstrumentId', {
      nullable: true,
      description: 'UUID of the instrument that was to pay. Null for a refund.',
    }),
    destinationInstrumentId: t.exposeID('destinationInstrumentId', {
      nullable: true,
      description: 'UUID of the instrument that was to be paid. Null for a refund.',
    }),
    code: t.exposeString('code', {
      nullable: true,
      description:
        'Why it was refused (`UserErrorCode`), or why it is unknown (`OutcomeUnknownReason`). Null otherwise.',
    }),
    message: t.exposeString('message', { nullable: true, description: 'The same for people.' }),
    transactionId: t.exposeID('transactionId', {
      nullable: true,
      description:
        'UUID of the transaction that it became. Null until it is done, and for a refund that evidence has settled: no answer names its transaction.',
    }),
    transaction: t.field({
      type: TransactionType,
      description:
        'That transaction as it is now. Null where `transactionId` is null, and where it cannot be read.',
      resolve: withGraphScope(({ transactionId }, _args, context) => transactionOf(transactionId, context)),
    }),
  }),
});

/** How it was sent, and whether it may be sent again. */
builder.objectFields(PaymentType, (t) => ({
  requestedAt: t.expose('requestedAt', {
    type: 'DateTime',
    nullable: false,
    description: 'When it was asked for.',
  }),
  sentAt: t.expose('sentAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When it was recorded as sent, which is just before the request leaves. Null before that.',
  }),
  settledAt: t.expose('settledAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When it was known to be done or refused. Null before that.',
  }),
  attempts: t.exposeInt('attempts', {
    nullable: false,
    description:
      'About how often it was sent: 0 at first, 1 once it is recorded as sent, also where it never left, and 1 more for each repeat. A repeat that its caller causes counts before it leaves. One does not count where the record takes no write at that moment, or where a failover loses the count.',
  }),
  requestedBy: t.exposeString('requestedBy', {
    nullable: false,
    description:
      "Who asked: the subject of the caller's token in service mode. In passthrough, and where a token names nobody or a very long name, a digest.",
  }),
  safeToRetry: t.exposeBoolean('safeToRetry', {
    nullable: false,
    description:
      'True where it is not settled, and the same input with the same key is sent to the service again, which does it once. Where it is false, nothing is sent again: a repeat tells what is known by then.',
  }),
  retryUntil: t.expose('retryUntil', {
    type: 'DateTime',
    nullable: true,
    description: 'Until when that holds; null when `safeToRetry` is false.',
  }),
}));

const EdgeType = builder.objectRef<PaymentsPage['edges'][number]>('PaymentEdge').implement({
  description: 'One of the payments, and its place in the list.',
  fields: (t) => ({
    cursor: t.expose('cursor', {
      type: 'Cursor',
      nullable: false,
      description: 'Place of the payment in the list, to pass as `after` or `before`.',
    }),
    node: t.expose('node', { type: PaymentType, nullable: false, description: 'The payment itself.' }),
  }),
});

const ConnectionType = builder.objectRef<PaymentsPage>('PaymentConnection').implement({
  description: 'A page of payments, newest first.',
  fields: (t) => ({
    edges: t.expose('edges', {
      type: [EdgeType],
      nullable: false,
      description: 'The payments, each with its cursor.',
    }),
    nodes: t.field({
      type: [PaymentType],
      nullable: false,
      description: 'The payments without their cursors.',
      resolve: ({ edges }) => edges.map(({ node }): Payment => node),
    }),
    pageInfo: t.expose('pageInfo', {
      type: PageInfoType,
      nullable: false,
      description: 'Where this page stands in the list.',
    }),
  }),
});

builder.queryFields((t) => ({
  payment: t.field({
    type: PaymentType,
    rights: { scopes: ['payments:read'] },
    description:
      'One intent to pay, as the record has it; never sends anything. Null where the caller has not used this key, or nothing has been sent under it and no call is at it: a request that is still on its way may be sent yet. One that a call is at, and has not sent, is `IN_FLIGHT` with 0 `attempts`.',
    args: {
      idempotencyKey: t.arg.string({
        required: true,
        description: 'The key that the mutation was sent with.',
      }),
    },
    resolve: withPaymentsScope((_root, { idempotencyKey }, context) => paymentByKey(idempotencyKey, context)),
  }),
  payments: t.field({
    type: ConnectionType,
    rights: { scopes: ['payments:read'] },
    description:
      "Intents to pay that were sent, newest first, for 30 days. Those of the caller's client; for a caller narrowed to a customer, those that callers narrowed to this customer have asked for. Where the operation's time is over before a page is full, the page is short, and the next one goes on from its cursor.",
    args: {
      first: t.arg.int({ description: 'How many payments to return, from 1 to 100; null means 50.' }),
      after: t.arg({
        type: 'Cursor',
        description: 'Start behind this payment. Null starts with the newest.',
      }),
      last: t.arg.int({
        description: 'How many payments to return, from 1 to 100, counted back from `before`.',
      }),
      before: t.arg({
        type: 'Cursor',
        description: 'End before this payment. Null, with `last`, ends with the oldest.',
      }),
      states: t.arg({ type: [StateType], description: 'Only those in one of these states; null for all.' }),
      operations: t.arg({ type: [OperationType], description: 'Only these operations; null for all.' }),
      requestedFrom: t.arg({
        type: 'DateTime',
        description: 'Only those that were asked for at this time or later.',
      }),
      requestedTo: t.arg({
        type: 'DateTime',
        description: 'Only those that were asked for before this time.',
      }),
    },
    resolve: withPaymentsScope((_root, args, context) => paymentsPage(args, context)),
  }),
}));
