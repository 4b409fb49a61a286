import { cepStatus, isFinal } from '../resolvers/cep.ts';
import type { CepUpdate } from '../resolvers/events/receipt.ts';
import { followCep } from '../resolvers/events/subscriptions.ts';
import { transactionOf } from '../resolvers/transaction.ts';
import { optional, when } from '../resolvers/values.ts';
import { builder, readOnce, withGraphScope } from './builder.ts';
import { CepType, TransactionType } from './refs.ts';

export const CepStatusType = builder.enumType('CepStatus', {
  description: "The upstream's transient INITIALIZED is shown as PENDING, as it asks of its clients.",
  values: {
    PENDING: { description: 'The receipt has not been issued yet.' },
    DELAYED: {
      description:
        'Still not issued at the fourth attempt, about 8 minutes in; retries go on for about three hours.',
    },
    COMPLETED: { description: 'Issued and validated. Final.' },
    FAILED: { description: 'No receipt came within about three hours. Final.' },
    OTHER: { description: 'A state that the upstream has not documented; `rawStatus` carries it.' },
  },
});

CepType.implement({
  extensions: readOnce,
  description: 'Electronic payment receipt (comprobante electrónico de pago) of a penny validation.',
  fields: (t) => ({
    validationId: t.id({ description: 'UUID of the validation.', resolve: optional('validationId') }),
    status: t.field({
      type: CepStatusType,
      nullable: false,
      description: 'How far along the receipt is.',
      resolve: (cep, _args, context) => cepStatus(cep.status, context),
    }),
    rawStatus: t.exposeString('status', {
      nullable: false,
      description: 'The state as the service writes it.',
    }),
    final: t.boolean({
      nullable: false,
      description: 'True once the status can no longer change.',
      resolve: (cep) => isFinal(cep.status),
    }),
    url: t.field({
      type: 'URL',
      description: 'Address of the receipt; null while there is none.',
      resolve: optional('cepUrl'),
    }),
    beneficiaryName: t.string({
      description:
        'Verified name of the account holder; null until processed, and in the result of a mutation unless the service sent it.',
      resolve: optional('beneficiaryName'),
    }),
    beneficiaryRfc: t.string({
      description:
        'Verified tax identifier (RFC) of the account holder; null until processed, and in the result of a mutation unless the service sent it.',
      resolve: optional('beneficiaryRfc'),
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was created.',
      resolve: when('createdAt'),
    }),
    processedAt: t.field({
      type: 'DateTime',
      description:
        'When the receipt was processed; null until then, and in the result of a mutation unless the service sent it.',
      resolve: when('processedAt'),
    }),
  }),
});

const CepUpdateKindType = builder.enumType('CepUpdateKind', {
  description: 'Why an update is sent.',
  values: {
    SNAPSHOT: { description: 'The state at the start of the subscription: always the first update.' },
    CHANGE: { description: 'A later state.' },
  },
});

const CepUpdateType = builder.objectRef<CepUpdate>('CepUpdate').implement({
  description: 'One state of a receipt, as the subscription tells it.',
  fields: (t) => ({
    kind: t.expose('kind', {
      type: CepUpdateKindType,
      nullable: false,
      description: 'Whether this is the state at the start or a change.',
    }),
    cep: t.expose('cep', { type: CepType, nullable: false, description: 'The receipt as it is now.' }),
    transactionId: t.exposeID('transactionId', {
      nullable: false,
      description: 'UUID of the penny validation.',
    }),
    transaction: t.field({
      type: TransactionType,
      description:
        'The penny validation, read afresh. It may lag behind `cep` for a moment; null when it cannot be read.',
      resolve: withGraphScope((update, _args, context) => transactionOf(update.transactionId, context)),
    }),
  }),
});

builder.subscriptionField('cepStatus', (t) =>
  t.field({
    type: CepUpdateType,
    nullable: false,
    rights: { scopes: ['events:read'] },
    description:
      'The receipt (CEP) of one penny validation: its state now, then every change. Completes after COMPLETED or FAILED. Within one subscription no documented state steps back, however the notifications arrive. Subscribing again starts with what the upstream says at that time, so that a dropped connection loses no final state; it may be behind the last state that was told before.',
    args: {
      transactionId: t.arg.id({ required: true, description: 'UUID of the penny validation.' }),
    },
    subscribe: (_root, { transactionId }, context) => followCep(transactionId, context),
    resolve: (update) => update,
  }),
);
