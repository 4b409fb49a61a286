import { type Node, node, nodes, nodeTypeName } from '../resolvers/node.ts';
import { builder, ENTERS_GRAPH } from './builder.ts';

export const NodeInterface = builder.interfaceRef<Node>('Node').implement({
  description:
    'An object with an id of its own: Account, Bank, Client, Customer, Instrument, Payment, Transaction, Webhook.',
  resolveType: (found) => nodeTypeName(found),
  fields: (t) => ({
    id: t.exposeID('id', {
      nullable: false,
      description: "The service's own id of the object; that of a Payment is the gateway's own.",
    }),
  }),
});

const COST =
  'The type conditions of the selection say what is looked for: `... on Customer` costs one look-up. That of an Instrument or a Transaction is a REST call; a Client costs none, and a Payment a look-up in the record of payments; and the others are looked for in a list that an operation reads once, however many it asks for. Without a condition all eight are tried, one after the other, until one is found: for an id that nothing has, four lists and two calls.';

builder.queryFields((t) => ({
  node: t.field({
    type: NodeInterface,
    rights: ENTERS_GRAPH,
    description: `Any object by its id, for Relay's refetching; null when the caller has none of this id. ${COST}`,
    args: { id: t.arg.id({ required: true, description: 'Id of the object, as the service writes it.' }) },
    resolve: (_root, { id }, context, info) => node(id, context, info),
  }),
  nodes: t.field({
    type: [NodeInterface],
    nullable: { list: true, items: true },
    rights: ENTERS_GRAPH,
    description: `As \`node\`, for each of up to 100 ids, in their order: null where there is none, and, with an error, where one cannot be read. Each counts as one item of a page towards the cost of the operation. ${COST}`,
    args: { ids: t.arg.idList({ required: true, description: 'Ids of the objects, from none to 100.' }) },
    resolve: (_root, { ids }, context, info) => nodes(ids, context, info),
  }),
}));
