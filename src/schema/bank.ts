import { bank, banks } from '../resolvers/bank.ts';
import { builder, ENTERS_GRAPH, readOnce } from './builder.ts';
import { NodeInterface } from './node.ts';
import { BankType } from './refs.ts';

BankType.implement({
  extensions: readOnce,
  description:
    'A SPEI participant. The upstream documents no field but the id: where it sends a name and codes under names that are known, they stand here; everything that it sends is in `attributes`.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the participant.' }),
    name: t.exposeString('name', {
      description: 'Its name, such as `BBVA MEXICO`; null where the catalog does not say.',
    }),
    institutionCode: t.exposeString('institutionCode', {
      description: 'Its code at Banco de México, such as `"40012"`; null where the catalog does not say.',
    }),
    clabeCode: t.exposeString('clabeCode', {
      description:
        'The three digits with which its CLABEs begin, such as `"012"`; null where the catalog does not say.',
    }),
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
    rights: ENTERS_GRAPH,
    description:
      'The SPEI participant catalog, whole: it is small and changes rarely. Null when it cannot be read.',
    resolve: (_root, _args, context) => banks(context),
  }),
  bank: t.field({
    type: BankType,
    rights: ENTERS_GRAPH,
    description: 'One SPEI participant; null when the catalog has none of this id.',
    args: { id: t.arg.id({ required: true, description: 'UUID of the participant.' }) },
    resolve: (_root, { id }, context) => bank(id, context),
  }),
}));
