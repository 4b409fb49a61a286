import {
  createInternalTransaction,
  createMoneyOut,
  createPennyValidation,
  type Paid,
} from '../resolvers/payments/paying.ts';
import { type Refunded, refundTransaction } from '../resolvers/payments/refund.ts';
import { transaction } from '../resolvers/transaction.ts';
import { builder, withGraphScope } from './builder.ts';
import { resultOf } from './failures.ts';
import { TransactionType } from './refs.ts';

const KEY = {
  required: true,
  description:
    'Names this intent to pay: any string of 8 to 128 printable characters (spaces count; line breaks, control and invisible characters are refused), made once per intent and sent again on every retry. The same key with other contents is refused once something was sent under it, and while a call with it is under way. Kept for 30 days. Example: `"invoice-2026-1187"`.',
} as const;
const REPLAYED = 'True when the key had been used before and this is that first answer again.';

const OUTCOMES = ': done, refused or unknown';

const paid = (name: string, description: string) =>
  builder.objectRef<Paid>(name).implement({
    description,
    fields: (t) => ({
      transaction: t.expose('transaction', {
        type: TransactionType,
        nullable: false,
        description:
          'The transaction as the service answered it; where evidence has settled the payment, as it read then, without instruments and without the holder of its receipt. `Query.transaction` reads it as it is now.',
      }),
      replayed: t.exposeBoolean('replayed', { nullable: false, description: REPLAYED }),
    }),
  });

const MoneyOutSuccess = paid('CreateMoneyOutSuccess', 'The transfer was accepted; it settles later.');
const InternalSuccess = paid(
  'CreateInternalTransactionSuccess',
  'The service has taken it. The money has moved once `transaction` reads `LIQUIDATED`; the service documents no other status here. `transaction` is the debit; where evidence has settled the payment, and has found the credit alone, that credit.',
);
const PennySuccess = paid(
  'CreatePennyValidationSuccess',
  'The 0.01 MXN were sent; the receipt follows, on average 90 seconds later.',
);

const RefundSuccess = builder.objectRef<Refunded>('RefundTransactionSuccess').implement({
  description: 'The service has taken the refund: the money is on its way back to the payer.',
  fields: (t) => ({
    refund: t.expose('refund', {
      type: TransactionType,
      nullable: true,
      description:
        "The transaction that returns it. Null when the upstream's answer was lost and the refund is known from the original's status alone.",
    }),
    original: t.field({
      type: TransactionType,
      description: 'The credit as it reads now. Null when it cannot be read; the refund stands all the same.',
      resolve: withGraphScope((parent, _args, context) => transaction(parent.originalId, null, context)),
    }),
    replayed: t.exposeBoolean('replayed', { nullable: false, description: REPLAYED }),
  }),
});

const MoneyOutResult = resultOf('CreateMoneyOut', MoneyOutSuccess, OUTCOMES);
const InternalResult = resultOf('CreateInternalTransaction', InternalSuccess, OUTCOMES);
const PennyResult = resultOf('CreatePennyValidation', PennySuccess, OUTCOMES);
const RefundResult = resultOf('RefundTransaction', RefundSuccess, OUTCOMES);

const CENTRAL_SOURCE = {
  required: true,
  description:
    "UUID of the instrument that pays: the client's centralizing account. The service marks none: the provider says which it is.",
} as const;
const AMOUNT = {
  type: 'MoneyAmount',
  required: true,
  description: 'How much, more than zero: `"1250.00"`.',
} as const;
const CURRENCY = {
  type: 'CurrencyCode',
  required: true,
  defaultValue: 'MXN',
  description: 'Currency of the amount; only `MXN` is moved.',
} as const;
const REFERENCE = {
  required: true,
  description: 'Numeric reference of at most seven digits, such as `"1234567"`.',
} as const;

const MoneyOutInput = builder.inputType('CreateMoneyOutInput', {
  description: 'An outbound SPEI transfer.',
  fields: (t) => ({
    idempotencyKey: t.string(KEY),
    sourceInstrumentId: t.id(CENTRAL_SOURCE),
    destinationInstrumentId: t.id({
      required: true,
      description: 'UUID of the instrument that is paid, such as a registered debit card.',
    }),
    amount: t.field(AMOUNT),
    currency: t.field(CURRENCY),
    description: t.string({
      required: true,
      description:
        'What the payment is for. The service documents no limit here; of an internal transaction it has to have fewer than 40 characters.',
    }),
    externalReference: t.string(REFERENCE),
  }),
});

const InternalInput = builder.inputType('CreateInternalTransactionInput', {
  description: 'A transfer between two internal instruments, of the client or of its customers.',
  fields: (t) => ({
    idempotencyKey: t.string(KEY),
    sourceInstrumentId: t.id({ required: true, description: 'UUID of the internal instrument that pays.' }),
    destinationInstrumentId: t.id({
      required: true,
      description: 'UUID of the internal instrument that is paid. It should differ from the source.',
    }),
    amount: t.field(AMOUNT),
    currency: t.field(CURRENCY),
    description: t.string({
      required: true,
      description: 'What the payment is for, in fewer than 40 characters.',
    }),
    externalReference: t.string(REFERENCE),
  }),
});

const PennyInput = builder.inputType('CreatePennyValidationInput', {
  description: 'A payment of 0.01 MXN to learn who owns a CLABE.',
  fields: (t) => ({
    idempotencyKey: t.string(KEY),
    sourceInstrumentId: t.id(CENTRAL_SOURCE),
    destinationInstrumentId: t.id({
      required: true,
      description: 'UUID of the CLABE instrument to validate.',
    }),
    description: t.string({
      description:
        'At most 40 characters: letters without accents, digits, spaces, ñ and Ñ. Null leaves it to the service: `Validacion de cuenta`.',
    }),
    externalReference: t.string({
      description:
        'Numeric reference of at most seven digits. Null leaves it to the service: the date of the operation as ddmmaa.',
    }),
  }),
});

const RefundAmountInput = builder.inputType('RefundAmountInput', {
  description: 'A refund that names its amount.',
  fields: (t) => ({
    amount: t.field({
      type: 'MoneyAmount',
      required: true,
      description:
        'Must equal the amount received, such as `"1250.00"`. Another amount is refused with `INVALID_INPUT`, and nothing is sent.',
    }),
    description: t.string({
      required: true,
      description: 'Why the money is returned. The service documents no limit.',
    }),
  }),
});

const RefundAsInput = builder.inputType('RefundAsInput', {
  isOneOf: true,
  description: 'Exactly one of the two body shapes that the upstream accepts.',
  fields: (t) => ({
    amount: t.field({
      type: RefundAmountInput,
      description: 'The current shape: the amount, which must equal the amount received, and a description.',
    }),
    reason: t.string({
      description:
        'The earlier shape: only why the money is returned. The whole credit is returned with it too.',
    }),
  }),
});

const RefundInput = builder.inputType('RefundTransactionInput', {
  description: 'The return of a received SPEI credit.',
  fields: (t) => ({
    idempotencyKey: t.string(KEY),
    transactionId: t.id({ required: true, description: 'UUID of the credit to return.' }),
    as: t.field({ type: RefundAsInput, required: true, description: 'How the refund is put.' }),
  }),
});

builder.mutationFields((t) => ({
  createMoneyOut: t.field({
    type: MoneyOutResult,
    rights: { scopes: ['money:move:out'] },
    description: 'Sends an outbound SPEI transfer.',
    args: { input: t.arg({ type: MoneyOutInput, required: true, description: 'The transfer.' }) },
    resolve: (_root, { input }, context) => createMoneyOut(input, context),
  }),
  createInternalTransaction: t.field({
    type: InternalResult,
    rights: { scopes: ['money:move:internal'] },
    description:
      'Moves money between two internal instruments. As documented it is `LIQUIDATED` at once, and is reversed only by another one.',
    args: { input: t.arg({ type: InternalInput, required: true, description: 'The transfer.' }) },
    resolve: (_root, { input }, context) => createInternalTransaction(input, context),
  }),
  createPennyValidation: t.field({
    type: PennyResult,
    rights: { scopes: ['money:move:validate'] },
    description:
      'Sends 0.01 MXN to a CLABE instrument to verify who owns it. Follow it with `Subscription.cepStatus`.',
    args: { input: t.arg({ type: PennyInput, required: true, description: 'The validation.' }) },
    resolve: (_root, { input }, context) => createPennyValidation(input, context),
  }),
  refundTransaction: t.field({
    type: RefundResult,
    rights: { scopes: ['money:move:refund'] },
    description:
      'Returns a received SPEI credit, always in full. Not one whose MONEY_IN was answered with 422: the service returns that by itself.',
    args: { input: t.arg({ type: RefundInput, required: true, description: 'The refund.' }) },
    resolve: (_root, { input }, context) => refundTransaction(input, context),
  }),
}));
