import { parse, print } from 'graphql';
import { expect, it } from 'vitest';
import { nodeOf } from '../../packages/client/src/parse.ts';
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

it('a text is the same parsed document each time, as Apollo Client and urql keep each that they are given', () => {
  expect(nodeOf(TEXT)).toEqual(parse(TEXT));
  expect(nodeOf(Object(TEXT))).toBe(nodeOf(TEXT));
});

it.each([
  ['relay-compiler', 'include_query_text', { kind: 'Request', params: { text: null } }],
  ['graphql-codegen', 'embedHashInDocument', { __meta__: { hash: 'sha256:0' } }],
])('a document whose text %s has put into a file says how to keep it: %s', (_, option, document) => {
  expect(() => textOf(document)).toThrow(option);
});

it.each([
  'query ($a: [ID!]! = ["x"], $b: Int = 1 @skip(if: true)) @live { list: node(id: "a \\"b\\"", of: { x: [1, 2.5e3], y: ENUM, z: null, w: true }) @include(if: $c) { id ...F ... on T @x { id } ... { id } } }',
  'subscription Named($after: Cursor) { events(after: $after) { id cursor } } fragment F on Event @a(b: 1) { id }',
  'mutation M($input: I!) { pay(first: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", second: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", third: { a: $input }) { __typename } }',
  '{ eventCursor }',
  '"What it is for." query Named { a } "What\\u007f it has." fragment F on T { a }',
  '"""One line\nand another""" query { a }',
  'query Q("the first" $a: ID, $b: String = """x""") { a }',
  'query Q($a: [String] = ["""x\ny"""], $b: ID) { a }',
  '{ a(b: "\\b\\t\\u0000\\u007f \\\\u000b \\" é💸") }',
  '{ a(b: [], c: {}) }',
  `{ ${'a'.repeat(81)} }`,
  '{ a(list: ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"]) }',
  '{ a(of: { a: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b: ["bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"] }) }',
])('prints as graphql does: %s', (text) => {
  expect(textOf(parse(text))).toBe(print(parse(text)));
});

it.each(
  [
    'x',
    '',
    ' x',
    ' "',
    '\t\\\\',
    'x"',
    'x\\\\',
    'x\\""" y',
    'x\\"""',
    'one\n  two',
    'one\n\n  two\n three',
    'one\ntwo',
    '  one\ntwo',
    'x'.repeat(71),
    ` ${'x'.repeat(71)}`,
  ].map((text) => (/["\\]$/.test(text) ? `${text}\n` : text)),
)('prints a block as graphql does: %j', (text) => {
  const document = parse(`{ a(b: """${text}""") { c(d: { e: ["""${text}"""] }) } }`);
  expect(textOf(document)).toBe(print(document));
});
