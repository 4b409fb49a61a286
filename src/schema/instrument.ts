import { bankOf } from '../resolvers/bank.ts';
import { client } from '../resolvers/client.ts';
import { customerOf } from '../resolvers/customer.ts';
import {
  accountOf,
  detailForm,
  instrument,
  lastFour,
  maskedNumber,
  registeredDetail,
} from '../resolvers/instrument.ts';
import { registerInstrument } from '../resolvers/instrument-registration.ts';
import { ownerOf } from '../resolvers/owner.ts';
import { optional } from '../resolvers/values.ts';
import { present } from '../upstream/call/json.ts';
import type { Instrument, InstrumentDetail } from '../upstream/instruments.ts';
import { AuditType, auditOf } from './audit.ts';
import { builder, ENTERS_GRAPH, readOnce, reads, withGraphScope } from './builder.ts';
import { connectionType } from './connection.ts';
import { resultOf } from './failures.ts';
import { NodeInterface } from './node.ts';
import { OwnerType } from './owner.ts';
import { AccountType, BankType, ClientType, CustomerType, InstrumentType } from './refs.ts';

const CardDetailType = builder.objectRef<InstrumentDetail>('CardDetail').implement({
  extensions: readOnce,
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
  extensions: readOnce,
  description: 'The bank account behind an instrument.',
  fields: (t) => ({
    accountNumber: t.string({ description: 'Account number.', resolve: optional('accountNumber') }),
    clabe: t.string({
      nullable: false,
      description: '18-digit CLABE, as the service writes it.',
      resolve: (detail) => present(detail.clabeNumber) ?? '',
    }),
    holderName: t.string({ description: 'Name of the account holder.', resolve: optional('holderName') }),
  }),
});

export const InstrumentDetailType = builder.unionType('InstrumentDetail', {
  description: 'What an instrument stands for: a card or a CLABE account.',
  types: [CardDetailType, ClabeDetailType],
  resolveType: (detail) => detailForm(detail),
});

InstrumentType.implement({
  extensions: readOnce,
  description: 'Where money comes from or goes to: a registered card, or a CLABE account.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.exposeID('id', { nullable: false, description: 'Id of the instrument.' }),
    bankId: t.id({ description: 'UUID of the bank behind it.', resolve: optional('bankId') }),
    bank: t.field({
      type: BankType,
      description: 'The bank behind it; null when it names none, or the catalog does not list it.',
      extensions: reads('banks'),
      resolve: withGraphScope((parent, _args, context) => bankOf(parent, context)),
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
      extensions: reads('customers'),
      resolve: withGraphScope((parent, _args, context) => ownerOf(parent, context)),
    }),
    customerId: t.id({
      description: 'UUID of the customer that owns it. Null for an instrument of the client itself.',
      resolve: optional('customerId'),
    }),
    customer: t.field({
      type: CustomerType,
      description: 'The customer that owns it. Null for an instrument of the client itself.',
      extensions: reads('customers'),
      resolve: withGraphScope((parent, _args, context) => customerOf(parent, context)),
    }),
    account: t.field({
      type: AccountType,
      description: 'The private account behind an internal instrument; null for an external one.',
      extensions: reads('accounts'),
      resolve: withGraphScope((parent, _args, context) => accountOf(parent, context)),
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
      description:
        'The card or the CLABE account. Null, with an error, where the service answers with a form that it has not documented.',
      resolve: registeredDetail,
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
    rights: ENTERS_GRAPH,
    description: 'One instrument of the client or of its customers; null when there is none of this id.',
    args: { id: t.arg.id({ required: true, description: 'Id of the instrument.' }) },
    resolve: (_root, { id }, context) => instrument(id, context),
  }),
);

const RegisterSuccess = builder
  .objectRef<{ readonly instrument: Instrument }>('RegisterInstrumentSuccess')
  .implement({
    extensions: readOnce,
    description: 'The instrument was registered.',
    fields: (t) => ({
      instrument: t.expose('instrument', {
        type: InstrumentType,
        nullable: false,
        description: 'The instrument as the service answered it.',
      }),
    }),
  });

const RegisterResult = resultOf('RegisterInstrument', RegisterSuccess);

const DebitCardInput = builder.inputType('DebitCardInput', {
  description: 'A debit card that can be paid to.',
  fields: (t) => ({
    destinationBankId: t.id({ required: true, description: 'UUID of the destination bank.' }),
    cardNumber: t.string({
      required: true,
      description: '16 digits. Never readable again in full, and never logged.',
    }),
    holderName: t.string({ required: true, description: 'Name of the card holder, at most 40 characters.' }),
  }),
});

const ReceiverInput = builder.inputType('ReceiverInput', {
  isOneOf: true,
  description: 'What is registered: exactly one of the two forms.',
  fields: (t) => ({
    debitCard: t.field({ type: DebitCardInput, description: 'A debit card.' }),
    virtualClabe: t.field({
      type: 'JSONObject',
      description: 'A virtual CLABE. The upstream documents no fields: passed through as given.',
    }),
  }),
});

const RegisterInput = builder.inputType('RegisterInstrumentInput', {
  description: 'An instrument of type `RECEIVER` to register.',
  fields: (t) => ({
    sourceBankId: t.id({ required: true, description: 'UUID of the issuing or processing bank.' }),
    customerId: t.id({
      description:
        'UUID of the customer that is to own the instrument. Left out, it is the customer that the caller is narrowed to, or else the client.',
    }),
    alias: t.string({ required: true, description: 'Label for the instrument.' }),
    rfc: t.string({
      required: true,
      defaultValue: 'ND',
      description: 'Tax identifier (RFC) of the holder; `ND` when unknown.',
    }),
    receiver: t.field({ type: ReceiverInput, required: true, description: 'The card or the virtual CLABE.' }),
  }),
});

builder.mutationField('registerInstrument', (t) =>
  t.field({
    type: RegisterResult,
    rights: { scopes: ['accounts:write'] },
    description:
      'Registers an instrument that money can be sent to. There is no key: a second call makes another instrument, unless the service refuses it.',
    args: { input: t.arg({ type: RegisterInput, required: true, description: 'The instrument.' }) },
    resolve: (_root, { input }, context) => registerInstrument(input, context),
  }),
);
