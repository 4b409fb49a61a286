import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { preparedOperation } from '../../../src/graphql/documents/prepared-operation.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { streamKey } from '../../../src/transport/sockets/stream-key.ts';

const schema = buildSchema();

const isOfAnyCredential = (
  document: string,
  of: { visibility: string | undefined } = { visibility: 'client' },
) => {
  const operation = preparedOperation({ schema, document: parse(document) });
  if (operation === undefined) throw new Error('the document has one operation');
  return streamKey({ operation, variables: {}, credential: 'Bearer one', ...of })?.ofAnyCredential;
};

describe('a stream is the same for all who may see its events', () => {
  it.each([
    '{ moneyIn { __typename id cursor amount { amount currency } payer { name rfc } subCategory transactionDate } }',
    '{ events { id ... on CepEvent { status rawStatus processedAt beneficiary { name } } } }',
    '{ events { ...E } } fragment E on Event { id ...M ...M } fragment M on MoneyInEvent { decision beneficiary { ...P } } fragment P on Party { name }',
    '{ events { ... on StatusUpdateEvent { payload } } }',
  ])('where it follows from the event alone: %s', (selection) => {
    expect(isOfAnyCredential(`subscription ${selection}`)).toBe(true);
  });

  it.each([
    '{ moneyIn { id transaction { id } } }',
    '{ moneyIn { id owner { __typename } } }',
    '{ events { id ... on CepEvent { transactionId } } }',
    '{ events { id ... on CepEvent { transaction { id } } } }',
    '{ events { ...E } } fragment E on Event { id ...M } fragment M on MoneyInEvent { owner { __typename } }',
  ])('and not where something is read from the REST service: %s', (selection) => {
    expect(isOfAnyCredential(`subscription ${selection}`)).toBe(false);
  });

  it('and not where it is not known who is calling', () => {
    expect(isOfAnyCredential('subscription { moneyIn { id } }', { visibility: undefined })).toBe(false);
  });

  it('holds of no field that has a resolver and does not say that it reads nothing but its parent', () => {
    const reading = ['MoneyInEvent', 'CepEvent', 'StatusUpdateEvent', 'Party', 'Money'].flatMap((name) => {
      const type = schema.getType(name);
      if (type === undefined || !('getFields' in type)) throw new Error(`there is a type ${name}`);
      return Object.values(type.getFields()).flatMap((field) =>
        'resolve' in field && field.resolve !== undefined && field.extensions['ofParent'] !== true
          ? [`${name}.${field.name}`]
          : [],
      );
    });
    expect(reading.sort()).toEqual([
      'CepEvent.transaction',
      'CepEvent.transactionId',
      'MoneyInEvent.account',
      'MoneyInEvent.owner',
      'MoneyInEvent.payerBank',
      'MoneyInEvent.transaction',
    ]);
  });
});
