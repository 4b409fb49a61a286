import { type Node, node, nodeTypeName } from '../resolvers/node.ts';
import { builder, ENTERS_GRAPH } from './builder.ts';

export const NodeInterface = builder.interfaceRef<Node>('Node').implement({
  description:
    'An object with an id of its own: Account, Bank, Client, Customer, Instrument, Payment, Transaction, Webhook.',
  resolveType: (found) => nodeTypeName(found),
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: "The service's own id of the object." }),
  }),
});

builder.queryField('node', (t) =>
  t.field({
    type: NodeInterface,
    authScopes: ENTERS_GRAPH,
    description:
      "Any object by its id, for Relay's refetching; null when the caller has none of this id. The selection's type conditions say what is looked for: `... on Customer` costs one look-up. Without one, all of them are tried.",
    args: { id: t.arg.id({ required: true, description: 'Id of the object, as the service writes it.' }) },
    resolve: (_root, { id }, context, info) => node(id, context, info),
  }),
);
