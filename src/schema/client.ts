import {
  client,
  clientAccounts,
  clientCustomers,
  clientInstruments,
  clientWebhooks,
} from '../resolvers/client.ts';
import { AccountConnectionType } from './account.ts';
import { builder, ENTERS_GRAPH, readOnce, withGraphScope } from './builder.ts';
import { pageArgs } from './connection.ts';
import { CustomerConnectionType } from './customer.ts';
import { InstrumentConnectionType } from './instrument.ts';
import { NodeInterface } from './node.ts';
import { ClientType } from './refs.ts';
import { WebhookConnectionType } from './webhook.ts';

ClientType.implement({
  extensions: readOnce,
  description: 'The business client (merchant) whose money is moved. Everything in the graph belongs to one.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the client.' }),
    accounts: t.field({
      type: AccountConnectionType,
      description:
        "The accounts that the service lists for the client. Whether its customers' are among them is up to the service. Null when the list cannot be read.",
      args: pageArgs(),
      resolve: withGraphScope((_client, args, context) => clientAccounts(args, context)),
    }),
    customers: t.field({
      type: CustomerConnectionType,
      description: "The client's customers (Business Units). Null when the list cannot be read.",
      args: pageArgs(),
      resolve: withGraphScope((_client, args, context) => clientCustomers(args, context)),
    }),
    instruments: t.field({
      type: InstrumentConnectionType,
      description: 'Instruments of the client and of all its customers. Null when the list cannot be read.',
      args: {
        ...pageArgs(),
        customerId: t.arg.id({
          description: 'UUID of a customer: only its instruments. Null lists those of all.',
        }),
      },
      resolve: withGraphScope((_client, args, context) => clientInstruments(args, context)),
    }),
    webhooks: t.field({
      type: WebhookConnectionType,
      description: "The client's registered webhooks. Null when the list cannot be read.",
      args: pageArgs(),
      resolve: withGraphScope((_client, args, context) => clientWebhooks(args, context)),
    }),
  }),
});

builder.queryField('client', (t) =>
  t.field({
    type: ClientType,
    nullable: false,
    rights: ENTERS_GRAPH,
    description: 'The client (merchant) the caller acts for.',
    resolve: (_root, _args, context) => client(context),
  }),
);
