import {
  account,
  accountClabe,
  createCustomerPrivateAccount,
  createPrivateAccount,
} from '../resolvers/account.ts';
import { bankOf } from '../resolvers/bank.ts';
import { client } from '../resolvers/client.ts';
import { creditsTo } from '../resolvers/events/event-page.ts';
import { instrumentOf } from '../resolvers/instrument.ts';
import { ownerOf } from '../resolvers/owner.ts';
import { optional } from '../resolvers/values.ts';
import type { Account } from '../upstream/accounts.ts';
import { AuditType, auditOf } from './audit.ts';
import { builder, ENTERS_GRAPH, readOnce, reads, withGraphScope, withLogScope } from './builder.ts';
import { connectionType } from './connection.ts';
import { eventWindow } from './event-window.ts';
import { resultOf } from './failures.ts';
import { MoneyType } from './money.ts';
import { NodeInterface } from './node.ts';
import { OwnerType } from './owner.ts';
import { AccountType, BankType, ClientType, EventConnectionType, InstrumentType } from './refs.ts';

AccountType.implement({
  extensions: readOnce,
  description: 'A private account of the client or of one of its customers, with a CLABE and a balance.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'UUID of the private account.' }),
    accountId: t.exposeID('accountId', {
      nullable: false,
      description: 'UUID that it was created with as `account_id`. What it names is not documented.',
    }),
    bankId: t.id({ description: 'UUID of its bank.', resolve: optional('bankId') }),
    ownerId: t.exposeID('ownerId', {
      nullable: false,
      description: 'UUID of the client or customer that owns it.',
    }),
    ownerType: t.string({
      description: 'Kind of owner as the service writes it, such as `CLIENT` or `CUSTOMER`.',
      resolve: optional('ownerType'),
    }),
    instrumentId: t.id({
      description: 'Id of the instrument tied to the account.',
      resolve: optional('instrumentId'),
    }),
    clientBankAdapterId: t.exposeID('clientBankAdapterId', {
      nullable: false,
      description: 'UUID of the bank adapter of the client. What that is, is not documented.',
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
      description: 'Its available balance, in pesos.',
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

/** What the account leads to. */
builder.objectFields(AccountType, (t) => ({
  bank: t.field({
    type: BankType,
    description: 'Its bank; null when it names none, or the catalog does not list it.',
    extensions: reads('banks'),
    resolve: withGraphScope((parent, _args, context) => bankOf(parent, context)),
  }),
  owner: t.field({
    type: OwnerType,
    description: 'The client or customer that owns it; null when it cannot be found.',
    extensions: reads('customers'),
    resolve: withGraphScope((parent, _args, context) => ownerOf(parent, context)),
  }),
  instrument: t.field({
    type: InstrumentType,
    description: 'The instrument tied to the account, by which money is moved from and to it.',
    resolve: withGraphScope((parent, _args, context) => instrumentOf(parent, context)),
  }),
  client: t.field({
    type: ClientType,
    description: 'The client whose account it is.',
    resolve: (_account, _args, context) => client(context),
  }),
  moneyIn: t.field({
    type: EventConnectionType,
    description:
      "Credits to the account's CLABE, newest first: one look-up in the event log. It reaches as far back as the log does, which holds a number of events and forgets older ones: `reachesBackTo` says since when. Null when the log cannot be read.",
    args: eventWindow('newest first'),
    resolve: withLogScope((parent, args, context) => creditsTo(accountClabe(parent), args, context)),
  }),
}));

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
    rights: ENTERS_GRAPH,
    description: 'One account of those that the service lists for the client; null when none matches.',
    args: { by: t.arg({ type: AccountByInput, required: true, description: 'How the account is named.' }) },
    resolve: (_root, { by }, context) => account(by, context),
  }),
);

const created = (name: string, description: string) =>
  builder.objectRef<{ readonly account: Account }>(name).implement({
    description,
    fields: (t) => ({
      account: t.expose('account', {
        type: AccountType,
        nullable: false,
        description: 'The account as the service answered it.',
      }),
    }),
  });

const PrivateAccountSuccess = created('CreatePrivateAccountSuccess', 'The account was created.');
const CustomerAccountSuccess = created(
  'CreateCustomerPrivateAccountSuccess',
  "The customer's account was created.",
);

const PrivateAccountResult = resultOf('CreatePrivateAccount', PrivateAccountSuccess);
const CustomerAccountResult = resultOf('CreateCustomerPrivateAccount', CustomerAccountSuccess);

const PrivateAccountInput = builder.inputType('CreatePrivateAccountInput', {
  description: 'A private account to create for the client.',
  fields: (t) => ({
    bankId: t.id({ required: true, description: 'UUID of its bank.' }),
    ownerId: t.id({ required: true, description: 'UUID of the owner.' }),
    clientBankAdapterId: t.id({
      required: true,
      description: 'UUID of the bank adapter of the client. What that is, is not documented.',
    }),
    accountId: t.id({
      required: true,
      description: 'UUID, sent as `account_id`. What it names is not documented.',
    }),
  }),
});

const CustomerAccountInput = builder.inputType('CreateCustomerPrivateAccountInput', {
  description:
    'A private account to create for a customer. Which of the optional fields the service needs it does not document: what is left out is not sent.',
  fields: (t) => ({
    customerId: t.id({ required: true, description: 'UUID of the customer, which must exist.' }),
    bankId: t.id({ description: 'UUID of its bank.' }),
    ownerId: t.id({ description: 'UUID of the owner.' }),
    clientBankAdapterId: t.id({
      description: 'UUID of the bank adapter of the client. What that is, is not documented.',
    }),
  }),
});

builder.mutationFields((t) => ({
  createPrivateAccount: t.field({
    type: PrivateAccountResult,
    rights: { scopes: ['accounts:write'] },
    description: 'Creates a private account of the client, with its CLABE and the instrument tied to it.',
    args: { input: t.arg({ type: PrivateAccountInput, required: true, description: 'The account.' }) },
    resolve: (_root, { input }, context) => createPrivateAccount(input, context),
  }),
  createCustomerPrivateAccount: t.field({
    type: CustomerAccountResult,
    rights: { scopes: ['accounts:write'] },
    description: "Creates a private account of one of the client's customers.",
    args: { input: t.arg({ type: CustomerAccountInput, required: true, description: 'The account.' }) },
    resolve: (_root, { input }, context) => createCustomerPrivateAccount(input, context),
  }),
}));
