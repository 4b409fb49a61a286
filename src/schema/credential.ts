import { credentials } from '../resolvers/credential.ts';
import { when } from '../resolvers/values.ts';
import type { Credential } from '../upstream/credentials.ts';
import { builder } from './builder.ts';

const CredentialType = builder.objectRef<Credential>('Credential').implement({
  description: 'Id and secret by which a client gets access tokens.',
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'Id of the credential.' }),
    clientId: t.exposeID('client_id', { nullable: false, description: 'UUID of the client.' }),
    clientSecret: t.exposeString('client_secret', {
      nullable: false,
      description: "The secret. Readable only with the caller's own `x-api-key`; never logged.",
    }),
    environment: t.exposeString('environment', {
      nullable: false,
      description: 'Where it is valid: `staging` or `production`.',
    }),
    status: t.exposeString('status', { nullable: false, description: '`ACTIVE` or `INACTIVE`.' }),
    createdAt: t.field({ type: 'DateTime', description: 'When it was made.', resolve: when('created_at') }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'When it last changed.',
      resolve: when('updated_at'),
    }),
    deletedAt: t.field({
      type: 'DateTime',
      description: 'When it was deleted; null while it is not.',
      resolve: when('deleted_at'),
    }),
  }),
});

builder.queryField('credentials', (t) =>
  t.field({
    type: [CredentialType],
    authScopes: { apiKey: true },
    description: "The client's credentials. Needs the caller's own `x-api-key` header, and no bearer token.",
    args: { clientId: t.arg.id({ required: true, description: 'UUID of the client.' }) },
    resolve: (_root, { clientId }, context) => credentials(clientId, context),
  }),
);
