import {
  ConflictError,
  NotFoundError,
  OutcomeUnknown,
  RefusedError,
  ValidationError,
} from '../resolvers/errors.ts';
import {
  type CreatedWebhook,
  createLegacyWebhook,
  createWebhook,
  deleteWebhook,
  updateWebhook,
  webhook,
} from '../resolvers/webhook.ts';
import { builder, withGraphScope } from './builder.ts';
import { WebhookType } from './refs.ts';
import { WEBHOOK_TYPES } from './webhook.ts';

const WebhookTypeInput = builder.enumType('WebhookTypeInput', {
  description: 'What a webhook can be registered for.',
  values: WEBHOOK_TYPES,
});

const LegacyWebhookTypeInput = builder.enumType('LegacyWebhookTypeInput', {
  description: 'What a webhook can be registered for in the deprecated way.',
  values: {
    MONEY_IN: { description: 'Credits as they arrive.' },
    STATUS_UPDATE: { description: 'Something that the upstream does not document.' },
  },
});

const WebhookStatusInput = builder.enumType('WebhookStatusInput', {
  description:
    'The state that a webhook is to have. What the service does with notifications for one that is INACTIVE is not documented.',
  values: {
    ACTIVE: { description: 'As every new webhook is.' },
    INACTIVE: { description: 'Switched off.' },
  },
});

const CreateSuccess = builder.objectRef<CreatedWebhook>('CreateWebhookSuccess').implement({
  description: 'The webhook was registered.',
  fields: (t) => ({
    webhook: t.expose('webhook', {
      type: WebhookType,
      nullable: false,
      description: 'The webhook as the service answered it.',
    }),
    token: t.exposeString('token', { nullable: false, description: 'The secret, shown this once.' }),
  }),
});

const UpdateSuccess = builder.objectRef<{ readonly id: string }>('UpdateWebhookSuccess').implement({
  description: 'The webhook was changed.',
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'Id of the webhook.' }),
    webhook: t.field({
      type: WebhookType,
      description:
        'The webhook as the list shows it afterwards; null when it is not there, or cannot be read.',
      resolve: withGraphScope(({ id }, _args, context) => webhook(id, context)),
    }),
  }),
});

const DeleteSuccess = builder.objectRef<{ readonly id: string }>('DeleteWebhookSuccess').implement({
  description: 'The webhook was deleted, softly: the upstream may go on listing it.',
  fields: (t) => ({ id: t.exposeID('id', { nullable: false, description: 'Id of the webhook.' }) }),
});

const CreateResult = builder.errorUnion('CreateWebhookResult', {
  description: 'What came of a registration.',
  types: [CreateSuccess, ValidationError, ConflictError, RefusedError, OutcomeUnknown],
  resolveType: () => 'CreateWebhookSuccess',
});

const UpdateResult = builder.errorUnion('UpdateWebhookResult', {
  description: 'What came of `updateWebhook`.',
  types: [UpdateSuccess, ValidationError, NotFoundError, ConflictError, RefusedError],
  resolveType: () => 'UpdateWebhookSuccess',
});

const DeleteResult = builder.errorUnion('DeleteWebhookResult', {
  description: 'What came of `deleteWebhook`.',
  types: [DeleteSuccess, ValidationError, NotFoundError, ConflictError, RefusedError],
  resolveType: () => 'DeleteWebhookSuccess',
});

const AUTH_TYPE =
  'Sent as `auth_type`. What it means is not documented; null means `AUTH`, the only value that is seen.';

const CreateInput = builder.inputType('CreateWebhookInput', {
  description: 'A webhook to register.',
  fields: (t) => ({
    type: t.field({ type: WebhookTypeInput, required: true, description: 'What it is to be told of.' }),
    url: t.field({
      type: 'URL',
      description: "Address of the receiver. Left out, the webhook feeds this gateway's own ingress.",
    }),
    token: t.string({
      description:
        'Secret that the receiver is to recognise deliveries by. Left out, the gateway makes one; for a webhook that feeds the gateway it must be left out.',
    }),
    authType: t.string({ description: AUTH_TYPE }),
  }),
});

const UpdateInput = builder.inputType('UpdateWebhookInput', {
  description: 'Changes to a webhook. Only what is given is changed; null counts as not given.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'Id of the webhook.' }),
    url: t.field({ type: 'URL', description: 'New address of the receiver.' }),
    token: t.string({
      description: 'New secret. For a webhook that feeds this gateway it must be left out.',
    }),
    status: t.field({ type: WebhookStatusInput, description: 'Its new state.' }),
    authType: t.string({
      description: 'Sent as `auth_type`, such as `AUTH`. What it means is not documented.',
    }),
    auth: t.field({
      type: 'JSONObject',
      description: 'Further `auth_…` fields, passed through: the upstream does not document them.',
    }),
  }),
});

const DeleteInput = builder.inputType('DeleteWebhookInput', {
  description: 'A webhook to delete.',
  fields: (t) => ({ id: t.id({ required: true, description: 'Id of the webhook.' }) }),
});

const LegacyInput = builder.inputType('CreateLegacyWebhookInput', {
  description: 'A webhook to register in the deprecated way.',
  fields: (t) => ({
    type: t.field({ type: LegacyWebhookTypeInput, required: true, description: 'What it is to be told of.' }),
    url: t.field({ type: 'URL', required: true, description: 'Address of the receiver.' }),
    token: t.string({
      required: true,
      description: 'Secret that the receiver is to recognise deliveries by.',
    }),
    authType: t.string({ description: AUTH_TYPE }),
  }),
});

builder.mutationFields((t) => ({
  createWebhook: t.field({
    type: CreateResult,
    rights: { scopes: ['webhooks:write'] },
    description:
      'Registers a webhook. Without an address it feeds this gateway, which is what makes the subscriptions live.',
    args: { input: t.arg({ type: CreateInput, required: true, description: 'The webhook.' }) },
    resolve: (_root, { input }, context) => createWebhook(input, context),
  }),
  updateWebhook: t.field({
    type: UpdateResult,
    rights: { scopes: ['webhooks:write'] },
    description: 'Changes a webhook. Making the same change again does no harm.',
    args: { input: t.arg({ type: UpdateInput, required: true, description: 'The changes.' }) },
    resolve: (_root, { input }, context) => updateWebhook(input, context),
  }),
  deleteWebhook: t.field({
    type: DeleteResult,
    rights: { scopes: ['webhooks:write'] },
    description: 'Deletes a webhook: nothing is delivered to it any more.',
    args: { input: t.arg({ type: DeleteInput, required: true, description: 'The webhook.' }) },
    resolve: (_root, { input }, context) => deleteWebhook(input.id, context),
  }),
  createLegacyWebhook: t.field({
    type: CreateResult,
    rights: { scopes: ['webhooks:write'] },
    description: 'Registers a webhook in the way that the upstream deprecates.',
    deprecationReason: 'The upstream deprecates POST /v1/webhooks. Use createWebhook.',
    args: { input: t.arg({ type: LegacyInput, required: true, description: 'The webhook.' }) },
    resolve: (_root, { input }, context) => createLegacyWebhook(input, context),
  }),
}));
