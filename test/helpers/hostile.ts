import type { RawRequest } from './raw.ts';

const many = (count: number, part: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => part(index)).join(' ');

/** Texts that an expression takes long for when it looks from each of their places on to their end, or worse. */
export const HOSTILE_TEXTS: readonly string[] = [
  'cannot represent value '.repeat(600),
  'cannot represent a string value '.repeat(600),
  'cannot represent integer'.repeat(2_000),
  'a.'.repeat(40_000),
  'a+'.repeat(40_000),
  '"'.repeat(60_000),
  'found String "'.repeat(4_000),
  'Unexpected Int "'.repeat(4_000),
  ', found: '.repeat(6_000),
  'Value "'.repeat(8_000),
  '" does not exist in '.repeat(3_000),
  '1'.repeat(60_000),
  '1-'.repeat(30_000),
  'eyJ'.repeat(20_000),
  `eyJ${'a'.repeat(60_000)}`,
  'Bearer '.repeat(8_000),
  `Bearer${' '.repeat(60_000)}`,
  '/webhooks/a/A'.repeat(4_000),
  `/webhooks/${'a'.repeat(60_000)}`,
  'a://'.repeat(15_000),
  `a://${'b'.repeat(60_000)}`,
  'AAAA'.repeat(15_000),
  ' '.repeat(60_000),
  '-'.repeat(60_000),
  '_'.repeat(60_000),
  '/'.repeat(60_000),
];

const fragments = (count: number, body: (index: number) => string): string =>
  many(count, (index) => `fragment F${index} on Client { ${body(index)} }`);

/** Documents that are small, and cost those much who do not look out. */
export const HOSTILE_DOCUMENTS: Readonly<Record<string, RawRequest>> = {
  'unused variables of a long operation': {
    query: `query ${'N'.repeat(200_000)}(${many(100, (index) => `$v${index}: Int`)}) { client { id } }`,
  },
  'unused variables': { query: `query (${many(480, (index) => `$v${index}: Int`)}) { client { id } }` },
  'the name of an operation that is not there': {
    query: '{ client { id } }',
    ...{ operationName: 'N'.repeat(200_000) },
  },
  'a field with a long name': { query: `{ ${'a'.repeat(200_000)} }` },
  'wrong values of an enum': {
    query: 'query V($t:[EventType!]){events(types:$t){pageInfo{endCursor}}}',
    variables: { t: Array.from({ length: 100_000 }, () => 1) },
  },
  'a long value of an enum': {
    query: 'query V($t:[EventType!]){events(types:$t){pageInfo{endCursor}}}',
    variables: { t: ['X'.repeat(200_000)] },
  },
  'unknown fields of an input': {
    query: 'query V($by:AccountBy!){account(by:$by){id}}',
    variables: { by: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1])) },
  },
  'lists within lists': {
    query: 'query V($t:[EventType!]){events(types:$t){pageInfo{endCursor}}}',
    variables: { t: JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) },
  },
  'one leaf, again and again': { query: `{ ${many(1_990, () => '__typename')} }` },
  'one field, again and again': { query: `{ ${many(490, () => 'client{id}')} }` },
  'one field with arguments': { query: `{ ${many(160, () => 'client{customers(first:1){totalCount}}')} }` },
  'fragments in a circle': {
    query: `{ client { ${many(150, (index) => `...F${index}`)} } } ${fragments(150, (index) => `id ...F${(index + 1) % 150}`)}`,
  },
  'fragments that all say the same': {
    query: `{ client { ${many(200, (index) => `...F${index}`)} } } ${fragments(200, () => 'id')}`,
  },
  'fragments that double': {
    query: `{ client { ...F0 } } ${fragments(90, (index) => `customers { nodes { client { ...F${index + 1} ...F${index + 1} } } }`)} fragment F90 on Client { id }`,
  },
  'unknown fields': { query: `{ ${many(1_900, (index) => `f${index}`)} }` },
  'unknown directives': { query: `{ client ${many(950, () => '@a')} { id } }` },
  'a list within lists': {
    query: `{ events(types: ${'['.repeat(900)}${']'.repeat(900)}) { nodes { id } } }`,
  },
  'all root fields, thirty times': {
    query: `{ ${many(30, (index) => `a${index}: client { id }`)} banks { id } eventCursor }`,
  },
  'the schema of the schema': {
    query: `{ __schema { types { fields { type { fields { type { fields { name type { name } } } } } } } } ${many(
      25,
      (index) =>
        `a${index}: __schema { types { fields { type { fields { name args { name } type { name } } } } } }`,
    )} }`,
  },
  'fragments of the schema': {
    query: `{ ${many(29, (index) => `a${index}: __schema { ...S }`)} } fragment S on __Schema { types { ...T possibleTypes { ...T } } } fragment T on __Type { fields { name type { name ofType { name ofType { name } } } } }`,
  },
};
