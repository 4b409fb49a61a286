import { optional, when } from '../resolvers/values.ts';
import {
  type CreateWebhookInput,
  feedsGateway,
  webhook,
  webhookStatus,
  webhookType,
  webhookUrl,
} from '../resolvers/webhook.ts';
import { builder, ENTERS_GRAPH, readOnce } from './builder.ts';
import { connectionType } from './connection.ts';
import { NodeInterface } from './node.ts';
import { WebhookType } from './refs.ts';

const OTHER = { description: 'A value that the upstream has not documented; the raw field carries it.' };

/** What a webhook can be registered for. */
export const WEBHOOK_TYPES = {
  MONEY_IN: { description: 'Credits as they arrive.' },
  STATUS_UPDATE: { description: 'Something that the upstream does not document.' },
  CEP: { description: 'Receipts of penny validations.' },
} satisfies Record<CreateWebhookInput['type'], object>;

const WebhookKindType = builder.enumType('WebhookType', {
  description: 'What a webhook is told of.',
  values: { ...WEBHOOK_TYPES, OTHER },
});

const WebhookStatusType = builder.enumType('WebhookStatus', {
  description:
    'State of a webhook. What the service does with notifications for one that is INACTIVE is not documented.',
  values: {
    ACTIVE: { description: 'As every new webhook is.' },
    INACTIVE: { description: 'As one is that has been switched off.' },
    OTHER,
  },
});

WebhookType.implement({
  extensions: readOnce,
  description: 'A registered receiver of notifications. Its token is not readable.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'Id of the webhook.' }),
    clientId: t.id({ description: 'UUID of the client that registered it.', resolve: optional('clientId') }),
    url: t.string({
      nullable: false,
      description:
        "Address of the receiver. The signature of the gateway's own ingress is masked: it is all that is needed to post events.",
      resolve: (parent, _args, { services }) => services.ingress.mask(webhookUrl(parent)),
    }),
    type: t.field({
      type: WebhookKindType,
      nullable: false,
      description: 'What it is told of.',
      resolve: (parent, _args, { services }) => webhookType(parent.webhookType, services.logger),
    }),
    rawType: t.exposeString('webhookType', {
      nullable: false,
      description: 'The type as the service writes it.',
    }),
    status: t.field({
      type: WebhookStatusType,
      nullable: false,
      description: 'Its state.',
      resolve: (parent, _args, { services }) => webhookStatus(parent.webhookStatus, services.logger),
    }),
    rawStatus: t.exposeString('webhookStatus', {
      nullable: false,
      description: 'The status as the service writes it.',
    }),
    authType: t.string({
      description: 'As the service writes it, such as `AUTH`. What it means is not documented.',
      resolve: optional('authType'),
    }),
    feedsGateway: t.boolean({
      nullable: false,
      description:
        "True when deliveries to this webhook reach the gateway's own ingress, at the address of its client and type, and so its subscriptions.",
      resolve: feedsGateway,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was registered.',
      resolve: when('createdAt'),
    }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'When it last changed.',
      resolve: when('updatedAt'),
    }),
    deletedAt: t.field({
      type: 'DateTime',
      description: 'When it was deleted; null while it is not.',
      resolve: when('deletedAt'),
    }),
    deletedBy: t.string({
      description: 'Who deleted it; null while nobody has.',
      resolve: optional('deletedBy'),
    }),
    blockedAt: t.field({
      type: 'DateTime',
      description: 'When it was blocked; null while it is not.',
      resolve: when('blockedAt'),
    }),
    blockedBy: t.string({
      description: 'Who blocked it; null while nobody has.',
      resolve: optional('blockedBy'),
    }),
  }),
});

export const WebhookConnectionType = connectionType('Webhook', 'webhooks', WebhookType);

builder.queryField('webhook', (t) =>
  t.field({
    type: WebhookType,
    rights: ENTERS_GRAPH,
    description: "One of the client's webhooks; null when there is none of this id.",
    args: { id: t.arg.id({ required: true, description: 'Id of the webhook.' }) },
    resolve: (_root, { id }, context) => webhook(id, context),
  }),
);
