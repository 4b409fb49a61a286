import { bank, banks } from '../resolvers/bank.ts';
import { builder, ENTERS_GRAPH } from './builder.ts';
import { BankType } from './refs.ts';

BankType.implement({
  description:
    'A SPEI participant. The upstream documents no field but the id: what else it sends is in `attributes`.',
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the participant.' }),
    attributes: t.expose('attributes', {
      type: 'JSONObject',
      nullable: false,
      description:
        'Everything that the service sent about the participant, under the names that it uses, such as `{ "name": "STP" }`.',
    }),
  }),
});

builder.queryFields((t) => ({
  banks: t.field({
    type: [BankType],
    authScopes: ENTERS_GRAPH,
    description:
      'The SPEI participant catalog, whole: it is small and changes rarely. Null when it cannot be read.',
    resolve: (_root, _args, context) => banks(context),
  }),
  bank: t.field({
    type: BankType,
    authScopes: ENTERS_GRAPH,
    description: 'One SPEI participant; null when the catalog has none of this id.',
    args: { id: t.arg.id({ required: true, description: 'UUID of the participant.' }) },
    resolve: (_root, { id }, context) => bank(id, context),
  }),
}));
