import { client } from '../resolvers/client.ts';
import { customer, customerAccounts, customerInstruments, validationStatus } from '../resolvers/customer.ts';
import { optional } from '../resolvers/values.ts';
import type { Customer } from '../upstream/customers.ts';
import { AccountConnectionType } from './account.ts';
import { AuditType, auditOf } from './audit.ts';
import { builder, ENTERS_GRAPH, readOnce, reads } from './builder.ts';
import { connectionType, pageArgs } from './connection.ts';
import { InstrumentConnectionType } from './instrument.ts';
import { NodeInterface } from './node.ts';
import { ClientType, CustomerType } from './refs.ts';

const CustomerValidationStatusType = builder.enumType('CustomerValidationStatus', {
  description: 'KYB state. Only `VALIDATED` customers are to be used in production.',
  values: {
    PENDING: { description: 'The provider has not completed its checks.' },
    VALIDATED: { description: 'The checks have passed.' },
    OTHER: { description: 'A state that the upstream has not documented; `rawValidationStatus` carries it.' },
  },
});

const LegalRepresentativeType = builder.objectRef<Customer>('LegalRepresentative').implement({
  extensions: readOnce,
  description: 'The person who represents a customer in law.',
  fields: (t) => ({
    name: t.string({ description: 'Full name.', resolve: optional('legalRepresentativeName') }),
    rfc: t.string({
      description: 'Tax identifier (RFC) of the person.',
      resolve: optional('legalRepresentativeRfc'),
    }),
    phone: t.string({ description: 'Telephone number.', resolve: optional('legalRepresentativePhone') }),
    email: t.string({ description: 'E-mail address.', resolve: optional('legalRepresentativeEmail') }),
  }),
});

CustomerType.implement({
  extensions: readOnce,
  description: 'A Business Unit: a legal entity of its own, with its own RFC, CLABEs and balances.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the customer.' }),
    client: t.field({
      type: ClientType,
      nullable: false,
      description: 'The client whose customer it is.',
      resolve: (_customer, _args, context) => client(context),
    }),
    name: t.exposeString('name', { nullable: false, description: 'Registered name.' }),
    rfc: t.exposeString('rfc', {
      nullable: false,
      description: 'Tax identifier (RFC), such as `ABC010203AB1`.',
    }),
    legalRepresentative: t.field({
      type: LegalRepresentativeType,
      nullable: false,
      description: 'The person who represents it in law.',
      resolve: (parent) => parent,
    }),
    domain: t.string({
      description: 'As the service writes it. What it holds is not documented.',
      resolve: optional('domain'),
    }),
    alias: t.string({
      description: 'Alias, as the service writes it.',
      resolve: optional('customerAlias'),
    }),
    status: t.exposeString('customerStatus', {
      nullable: false,
      description: 'State of the customer as the service writes it, such as `ACTIVE`.',
    }),
    validationStatus: t.field({
      type: CustomerValidationStatusType,
      nullable: false,
      description: 'State of the KYB checks.',
      resolve: (parent, _args, { services }) =>
        validationStatus(parent.customerValidationStatus, services.logger),
    }),
    rawValidationStatus: t.exposeString('customerValidationStatus', {
      nullable: false,
      description: 'State of the KYB checks as the service writes it.',
    }),
    audit: t.field({
      type: AuditType,
      nullable: false,
      description: 'When each thing happened.',
      resolve: auditOf,
    }),
    accounts: t.field({
      type: AccountConnectionType,
      description:
        'The accounts that the service lists with this customer as owner. Null when the list cannot be read.',
      args: pageArgs(),
      extensions: reads('customers.accounts'),
      resolve: customerAccounts,
    }),
    instruments: t.field({
      type: InstrumentConnectionType,
      description: 'The instruments that this customer owns. Null when the list cannot be read.',
      args: pageArgs(),
      resolve: customerInstruments,
    }),
  }),
});

export const CustomerConnectionType = connectionType('Customer', 'customers', CustomerType);

builder.queryField('customer', (t) =>
  t.field({
    type: CustomerType,
    rights: ENTERS_GRAPH,
    description: 'One customer of the client; null when there is none of this id.',
    args: { id: t.arg.id({ required: true, description: 'UUID of the customer.' }) },
    resolve: (_root, { id }, context) => customer(id, context),
  }),
);
