import { account } from '../resolvers/account.ts';
import { bankOf } from '../resolvers/bank.ts';
import { instrumentOf } from '../resolvers/instrument.ts';
import { ownerOf } from '../resolvers/owner.ts';
import { optional } from '../resolvers/values.ts';
import type { Account } from '../upstream/accounts.ts';
import { AuditType, auditOf } from './audit.ts';
import { BankType } from './bank.ts';
import { builder } from './builder.ts';
import { connectionType } from './connection.ts';
import { InstrumentType } from './instrument.ts';
import { MoneyType } from './money.ts';
import { OwnerType } from './owner.ts';

export const AccountType = builder.objectRef<Account>('Account');

AccountType.implement({
  description: 'A private account of the client or of one of its customers, with a CLABE and a balance.',
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the private account.' }),
    accountId: t.exposeID('accountId', {
      nullable: false,
      description: 'UUID of the account that it was created under.',
    }),
    bankId: t.id({ description: 'UUID of the bank that keeps it.', resolve: optional('bankId') }),
    bank: t.field({
      type: BankType,
      description: 'The bank that keeps it; null when it names none, or the catalog does not list it.',
      resolve: (parent, _args, context) => bankOf(parent, context),
    }),
    ownerId: t.exposeID('ownerId', {
      nullable: false,
      description: 'UUID of the client or customer that owns it.',
    }),
    ownerType: t.string({
      description: 'Kind of owner as the service writes it, such as `CLIENT` or `CUSTOMER`.',
      resolve: optional('ownerType'),
    }),
    owner: t.field({
      type: OwnerType,
      description: 'The client or customer that owns it; null when it cannot be found.',
      resolve: (parent, _args, context) => ownerOf(parent, context),
    }),
    instrumentId: t.id({
      description: 'Id of the instrument tied to the account.',
      resolve: optional('instrumentId'),
    }),
    instrument: t.field({
      type: InstrumentType,
      description: 'The instrument tied to the account, by which money is moved from and to it.',
      resolve: (parent, _args, context) => instrumentOf(parent, context),
    }),
    clientBankAdapterId: t.exposeID('clientBankAdapterId', {
      nullable: false,
      description: "UUID of the client's adapter at the bank.",
    }),
    bankAdapter: t.string({ description: 'Name of the bank adapter.', resolve: optional('bankAdapter') }),
    accountNumber: t.exposeString('accountNumber', {
      nullable: false,
      description: 'Account number, such as `"104000000012"`.',
    }),
    clabe: t.expose('clabeNumber', {
      type: 'Clabe',
      nullable: false,
      description: '18-digit CLABE under which the account receives SPEI credits.',
    }),
    availableBalance: t.field({
      type: MoneyType,
      nullable: false,
      description: 'What can be spent now, in pesos.',
      resolve: (parent) => ({ amount: parent.availableBalance, currency: 'MXN' }),
    }),
    type: t.exposeString('accountType', {
      nullable: false,
      description: 'Type of account as the service writes it, such as `PRIVATE_ACCOUNT`.',
    }),
    status: t.exposeString('accountStatus', {
      nullable: false,
      description: 'State of the account as the service writes it, such as `ACTIVE`.',
    }),
    audit: t.field({
      type: AuditType,
      nullable: false,
      description: 'When each thing happened.',
      resolve: auditOf,
    }),
  }),
});

export const AccountConnectionType = connectionType('Account', 'accounts', AccountType);

const AccountByInput = builder.inputType('AccountBy', {
  isOneOf: true,
  description: 'Names an account in exactly one of four ways.',
  fields: (t) => ({
    id: t.id({ description: 'UUID of the private account.' }),
    instrumentId: t.id({ description: 'Id of the instrument tied to it.' }),
    accountNumber: t.string({ description: 'Its account number.' }),
    clabe: t.field({ type: 'Clabe', description: 'Its 18-digit CLABE.' }),
  }),
});

builder.queryField('account', (t) =>
  t.field({
    type: AccountType,
    authScopes: { scope: 'graph:read' },
    description: 'One account of those that the service lists for the client; null when none matches.',
    args: { by: t.arg({ type: AccountByInput, required: true, description: 'How the account is named.' }) },
    resolve: (_root, { by }, context) => account(by, context),
  }),
);
