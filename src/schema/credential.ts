import { credentials, issueCredentialToken } from '../resolvers/credential.ts';
import { RefusedError, ValidationError } from '../resolvers/errors.ts';
import { optional, when } from '../resolvers/values.ts';
import type { Credential, CredentialToken } from '../upstream/credentials.ts';
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
    rights: { apiKey: true },
    description: "The client's credentials. Needs the caller's own `x-api-key` header, and no bearer token.",
    args: { clientId: t.arg.id({ required: true, description: 'UUID of the client.' }) },
    resolve: (_root, { clientId }, context) => credentials(clientId, context),
  }),
);

const TokenType = builder.objectRef<CredentialToken>('CredentialToken').implement({
  description: 'A JWT for `Authorization: Bearer`. Shown once, never logged.',
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the token.' }),
    clientId: t.id({ description: 'UUID of the client.', resolve: optional('client_id') }),
    clientCredentialId: t.id({
      description: "UUID of the client's credential, as the service writes it.",
      resolve: optional('client_credential_id'),
    }),
    token: t.exposeString('token', {
      nullable: false,
      description: 'The JWT itself. Keep it: it cannot be read again.',
    }),
    status: t.exposeString('status', { nullable: false, description: '`ACTIVE` or `INACTIVE`.' }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'Until when it is accepted.',
      resolve: when('expires_at'),
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was issued.',
      resolve: when('created_at'),
    }),
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

const TokenResult = builder.errorUnion('IssueCredentialTokenResult', {
  description: 'What came of `issueCredentialToken`.',
  types: [TokenType, ValidationError, RefusedError],
  resolveType: () => 'CredentialToken',
});

const TokenInput = builder.inputType('IssueCredentialTokenInput', {
  description: 'What is exchanged for an access token.',
  fields: (t) => ({
    clientId: t.id({ required: true, description: 'UUID of the client.' }),
    clientSecret: t.string({
      required: true,
      description: 'Its secret, from `Query.credentials`. Never logged.',
    }),
  }),
});

builder.mutationField('issueCredentialToken', (t) =>
  t.field({
    type: TokenResult,
    rights: { apiKey: true },
    description:
      "Exchanges a client id and secret for an access token. Needs the caller's own `x-api-key` header.",
    args: { input: t.arg({ type: TokenInput, required: true, description: 'Client id and secret.' }) },
    resolve: (_root, { input }, context) => issueCredentialToken(input, context),
  }),
);
