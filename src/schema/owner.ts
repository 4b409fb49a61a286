import { Client } from '../resolvers/client.ts';
import { builder } from './builder.ts';
import { ClientType, CustomerType } from './refs.ts';

export const OwnerType = builder.unionType('Owner', {
  description: 'Who owns an account or an instrument: the client itself or one of its customers.',
  types: () => [ClientType, CustomerType],
  resolveType: (owner) => (owner instanceof Client ? 'Client' : 'Customer'),
});
