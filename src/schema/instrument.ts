import { bankOf } from '../resolvers/bank.ts';
import { client } from '../resolvers/client.ts';
import { customerOf } from '../resolvers/customer.ts';
import {
  accountOf,
  detailForm,
  instrument,
  lastFour,
  maskedNumber,
  requiredDetail,
} from '../resolvers/instrument.ts';
import { ownerOf } from '../resolvers/owner.ts';
import { optional } from '../resolvers/values.ts';
import type { Instrument, InstrumentDetail } from '../upstream/instruments.ts';
import { AccountType } from './account.ts';
import { AuditType, auditOf } from './audit.ts';
import { BankType } from './bank.ts';
import { builder } from './builder.ts';
import { ClientType } from './client.ts';
import { connectionType } from './connection.ts';
import { CustomerType } from './customer.ts';
import { OwnerType } from './owner.ts';

const CardDetailType = builder.objectRef<InstrumentDetail>('CardDetail').implement({
  description: 'The card behind an instrument. Its whole number is not readable.',
  fields: (t) => ({
    maskedNumber: t.string({
      nullable: false,
      description: 'All but the last four digits are masked, as in `************1234`.',
      resolve: maskedNumber,
    }),
    lastFour: t.string({ nullable: false, description: 'The last four digits.', resolve: lastFour }),
    expirationDate: t.string({
      description: 'When the card expires, as the service writes it.',
      resolve: optional('expirationDate'),
    }),
    holderName: t.string({ description: 'Name of the card holder.', resolve: optional('holderName') }),
  }),
});

const ClabeDetailType = builder.objectRef<InstrumentDetail>('ClabeDetail').implement({
  description: 'The bank account behind an instrument.',
  fields: (t) => ({
    accountNumber: t.string({ description: 'Account number.', resolve: optional('accountNumber') }),
    clabe: t.string({
      nullable: false,
      description: '18-digit CLABE, as the service writes it.',
      resolve: (detail) => detail.clabeNumber ?? '',
    }),
    holderName: t.string({ description: 'Name of the account holder.', resolve: optional('holderName') }),
  }),
});

export const InstrumentDetailType = builder.unionType('InstrumentDetail', {
  description: 'What an instrument stands for: a card or a CLABE account.',
  types: [CardDetailType, ClabeDetailType],
  resolveType: (detail) => detailForm(detail),
});

export const InstrumentType = builder.objectRef<Instrument>('Instrument');

InstrumentType.implement({
  description: 'Where money comes from or goes to: a registered card, or a CLABE account.',
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'Id of the instrument.' }),
    bankId: t.id({ description: 'UUID of the bank behind it.', resolve: optional('bankId') }),
    bank: t.field({
      type: BankType,
      description: 'The bank behind it; null when it names none, or the catalog does not list it.',
      resolve: (parent, _args, context) => bankOf(parent, context),
    }),
    client: t.field({
      type: ClientType,
      nullable: false,
      description: 'The client under which it is registered.',
      resolve: (_instrument, _args, context) => client(context),
    }),
    ownerId: t.id({
      description: 'UUID of the client or customer that owns it.',
      resolve: optional('ownerId'),
    }),
    owner: t.field({
      type: OwnerType,
      description: 'The client or customer that owns it; null when it cannot be found.',
      resolve: (parent, _args, context) => ownerOf(parent, context),
    }),
    customerId: t.id({
      description: 'UUID of the customer that owns it. Null for an instrument of the client itself.',
      resolve: optional('customerId'),
    }),
    customer: t.field({
      type: CustomerType,
      description: 'The customer that owns it. Null for an instrument of the client itself.',
      resolve: (parent, _args, context) => customerOf(parent, context),
    }),
    account: t.field({
      type: AccountType,
      description: 'The private account behind an internal instrument; null for an external one.',
      resolve: (parent, _args, context) => accountOf(parent, context),
    }),
    alias: t.exposeString('alias', { nullable: false, description: 'Label that it was given.' }),
    type: t.exposeString('type', {
      nullable: false,
      description: 'Type as the service writes it, such as `RECEIVER` or `SENDER_RECEIVER`.',
    }),
    rfc: t.exposeString('rfc', {
      nullable: false,
      description: 'Tax identifier (RFC) of the holder. `ND` when unknown, as the upstream writes it.',
    }),
    detail: t.field({
      type: InstrumentDetailType,
      nullable: false,
      description: 'The card or the CLABE account.',
      resolve: requiredDetail,
    }),
    audit: t.field({
      type: AuditType,
      nullable: false,
      description: 'When each thing happened.',
      resolve: auditOf,
    }),
  }),
});

export const InstrumentConnectionType = connectionType('Instrument', 'instruments', InstrumentType);

builder.queryField('instrument', (t) =>
  t.field({
    type: InstrumentType,
    authScopes: { scope: 'graph:read' },
    description: 'One instrument of the client or of its customers; null when there is none of this id.',
    args: { id: t.arg.id({ required: true, description: 'Id of the instrument.' }) },
    resolve: (_root, { id }, context) => instrument(id, context),
  }),
);
