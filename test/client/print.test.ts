import { parse, print } from 'graphql';
import { expect, it } from 'vitest';
import { textOf } from '../../packages/client/src/print.ts';

const TEXT = '{\n  eventCursor\n}';

it.each([
  ['a plain text', TEXT],
  ['a parsed document', parse(TEXT)],
  ['what relay-compiler made of one', { kind: 'Request', params: { text: TEXT } }],
  ['what graphql-codegen made of one', Object(TEXT)],
])('%s is sent as its text', (_, document) => {
  expect(textOf(document)).toBe(TEXT);
});

it('a document whose text relay-compiler has put into a file says how to keep it', () => {
  expect(() => textOf({ kind: 'Request', params: { text: null } })).toThrow('include_query_text');
});

it.each([
  'query ($a: [ID!]! = ["x"], $b: Int = 1 @skip(if: true)) @live { list: node(id: "a \\"b\\"", of: { x: [1, 2.5e3], y: ENUM, z: null, w: true }) @include(if: $c) { id ...F ... on T @x { id } ... { id } } }',
  'subscription Named($after: Cursor) { events(after: $after) { id cursor } } fragment F on Event @a(b: 1) { id }',
  'mutation M($input: I!) { pay(first: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", second: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", third: { a: $input }) { __typename } }',
  '{ eventCursor }',
])('prints as graphql does: %s', (text) => {
  expect(textOf(parse(text))).toBe(print(parse(text)));
});
