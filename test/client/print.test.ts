import { parse } from 'graphql';
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
