import { bankOf } from '../resolvers/bank.ts';
import { currentInstrument, detailOf } from '../resolvers/instrument.ts';
import { optional } from '../resolvers/values.ts';
import type { TransactionInstrument } from '../upstream/transactions.ts';
import { builder, readOnce, reads, withGraphScope } from './builder.ts';
import { InstrumentDetailType } from './instrument.ts';
import { BankType, InstrumentType } from './refs.ts';

const OTHER = { description: 'A value that the upstream has not documented; the raw field carries it.' };

export const TransactionStatusType = builder.enumType('TransactionStatus', {
  description: '`OTHER` stands for a value that the upstream has not documented; `rawStatus` carries it.',
  values: {
    INITIALIZED: { description: 'Accepted and under way.' },
    LIQUIDATED: { description: 'Settled.' },
    REFUNDED: {
      description: 'The money has gone back. The upstream documents it of received credits alone.',
    },
    OTHER,
  },
});

export const TransactionCategoryType = builder.enumType('TransactionCategory', {
  description: 'Kind of movement. `OTHER` stands for a value not documented; `rawCategory` carries it.',
  values: {
    DEBIT_TRANS: { description: 'A payment out.' },
    INTER_TRANS: { description: 'A transfer between internal instruments.' },
    OTHER,
  },
});

export const TransactionSubCategoryType = builder.enumType('TransactionSubCategory', {
  description:
    'Kind and direction of a movement. `OTHER` stands for a value not documented; the raw field carries it.',
  values: {
    SPEI_DEBIT: { description: 'Money sent through SPEI.' },
    SPEI_CREDIT: { description: 'Money received through SPEI.' },
    INT_DEBIT: { description: 'Money sent to another internal instrument.' },
    INT_CREDIT: { description: 'Money received from another internal instrument.' },
    OTHER,
  },
});

export const TransactionInstrumentType = builder
  .objectRef<TransactionInstrument>('TransactionInstrument')
  .implement({
    extensions: readOnce,
    description: 'An instrument as a transaction recorded it.',
    fields: (t) => ({
      instrumentId: t.exposeID('id', { nullable: false, description: 'Id of the instrument.' }),
      alias: t.string({ description: 'Label that it had.', resolve: optional('instrumentAlias') }),
      status: t.string({
        description: 'State as the service writes it, such as `ACTIVE`.',
        resolve: optional('instrumentStatus'),
      }),
      type: t.string({
        description: 'Type as the service writes it, such as `SENDER_RECEIVER`.',
        resolve: optional('instrumentType'),
      }),
      rfc: t.string({
        description: 'Tax identifier (RFC) of the holder. `ND` when unknown, as the upstream writes it.',
        resolve: optional('rfc'),
      }),
      ownerId: t.id({ description: 'UUID of its owner.', resolve: optional('ownerId') }),
      bankId: t.id({ description: 'UUID of the bank behind it.', resolve: optional('bankId') }),
      bank: t.field({
        type: BankType,
        description: 'The bank behind it; null when it names none, or the catalog does not list it.',
        extensions: reads('banks'),
        resolve: withGraphScope((parent, _args, context) => bankOf(parent, context)),
      }),
      detail: t.field({
        type: InstrumentDetailType,
        description:
          'The card or the CLABE account; null when the transaction did not record it, and, with an error, when it did in a form that is not documented.',
        resolve: detailOf,
      }),
      instrument: t.field({
        type: InstrumentType,
        description:
          "The instrument as it is now; null when the caller may not read it or it is not the client's.",
        resolve: withGraphScope((parent, _args, context) => currentInstrument(parent.id, context)),
      }),
    }),
  });
