import { buildSchema, parse } from 'graphql';
import { expect, it } from 'vitest';
import { useDeclaredVariables } from '../../../src/graphql/plugins/declared-variables.ts';
import { documentOf, hashOf } from '../../../src/graphql/plugins/trusted-documents.ts';

it('a stream keeps of its request the variables that it declares, and nothing else that came along', () => {
  const variables = { declared: 1, other: 'x'.repeat(1_000) };
  const params = { query: 'q', variables, extensions: { large: 'x'.repeat(1_000) } };
  const args = {
    schema: buildSchema('type Query { a(b: Int): Int } type Subscription { a(b: Int): Int }'),
    document: parse('subscription ($declared: Int) { a(b: $declared) }'),
    variableValues: variables,
    contextValue: { params },
  };
  // Only this member of the hook's payload is used.
  const subscribe = useDeclaredVariables().onSubscribe as unknown as (payload: object) => void;
  subscribe({ args });
  expect(params).toEqual({ query: 'q', variables: { declared: 1 }, extensions: undefined });
});

it('a listed document is found by the id that its file gives it as it is written, and by its hash in either case', () => {
  const text = '{ __typename }';
  const hash = hashOf(text);
  const listed = new Map([
    ['GetClient', text],
    [hash, text],
  ]);
  for (const documentId of ['GetClient', hash, `sha256:${hash}`, `sha256:${hash.toUpperCase()}`]) {
    expect(documentOf(listed, { documentId })).toBe(text);
  }
  expect(() => documentOf(listed, { documentId: 'getclient' })).toThrow('is not listed');
});
