import { type GraphQLSchema, lexicographicSortSchema } from 'graphql';
import { builder } from './builder.ts';
import './scalars.ts';
import './errors.ts';
import './account.ts';
import './bank.ts';
import './cep.ts';
import './client.ts';
import './credential.ts';
import './customer.ts';
import './event.ts';
import './event-log.ts';
import './instrument.ts';
import './node.ts';
import './owner.ts';
import './payment-mutations.ts';
import './payment-record.ts';
import './transaction.ts';
import './webhook.ts';
import './webhook-registration.ts';

const DESCRIPTION = `Accounts, instruments, payments and their events, over a service that moves Mexican pesos by SPEI.

Begin at \`Query.client\`: everything of the caller hangs from it. Amounts are decimal strings. What changes money is a
mutation with an idempotency key of the caller's, and tells done, refused and unknown apart. What happens is a
subscription, and continues behind the last cursor that was seen.`;

builder.queryType({ description: 'What can be read.' });
builder.mutationType({
  description:
    'What can be changed. Results are unions: what the caller can correct, or must accept, is data.',
});
builder.subscriptionType({
  description:
    'What happens, as it happens. Every payload says where it stands, so that a dropped connection loses nothing.',
});

/** Builds the public graph as a gateway serves it: types and fields in the order of the sources, since sorting them builds all of them again. */
export function buildServedSchema(): GraphQLSchema {
  const schema = builder.toSchema({ sortSchema: false });
  schema.description = DESCRIPTION;
  return schema;
}

/** Builds the public graph in the order of names, so that the committed SDL changes with the graph alone. */
export const buildSchema = (): GraphQLSchema => lexicographicSortSchema(buildServedSchema());
