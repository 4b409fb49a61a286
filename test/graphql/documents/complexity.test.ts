import { buildSchema, Kind, type OperationDefinitionNode, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { complexityOf, pageSizeVariables } from '../../../src/graphql/documents/complexity.ts';
import { PreparedDocument } from '../../../src/graphql/documents/prepared-operation.ts';

const SCHEMA = buildSchema(`
  type Query { items(first: Int, last: Int): ItemConnection! item: Item named(ids: [ID!]!): [Item] all: [Item!]! }
  type ItemConnection { nodes: [Item!]! edges: [ItemEdge!]! pageInfo: PageInfo! }
  type PageInfo { endCursor: String }
  type ItemEdge { node: Item! }
  type Item { id: ID! owner: Item items(first: Int): ItemConnection! }
`);

function measured(text: string, variables = {}) {
  const document = parse(text);
  const operation = document.definitions.find(
    (definition): definition is OperationDefinitionNode => definition.kind === Kind.OPERATION_DEFINITION,
  );
  if (operation === undefined) throw new Error('there is one');
  const { fragments } = new PreparedDocument(SCHEMA, document);
  return complexityOf(SCHEMA, fragments, operation, variables);
}
const costOf = (text: string, variables = {}): number => measured(text, variables).cost;

describe('what an operation costs', () => {
  it('grows with each page, and pages within pages multiply', () => {
    const one = costOf('{ items(first: 10) { nodes { id owner { id } } } }');
    expect(costOf('{ items(first: 20) { nodes { id owner { id } } } }')).toBeGreaterThan(1.9 * one);
    const nested = '{ items(first: 10) { nodes { items(first: 20) { nodes { id owner { id } } } } } }';
    expect(costOf(nested)).toBeGreaterThan(10 * one);
    expect(measured(nested).pages).toEqual(['items(first: 10)', 'items(first: 20)']);
  });

  it.each([
    ['a fragment', '{ items(first: 50) { ...F } } fragment F on ItemConnection { nodes { owner { id } } }'],
    [
      'a fragment within the page',
      '{ items(first: 50) { nodes { ...F } } } fragment F on Item { owner { id } }',
    ],
    ['an inline fragment', '{ items(first: 50) { ... on ItemConnection { nodes { owner { id } } } } }'],
    ['a fragment without a condition', '{ items(first: 50) { ... { nodes { owner { id } } } } }'],
  ])('is the same where it stands in %s', (_what, text) => {
    expect(costOf(text)).toBe(costOf('{ items(first: 50) { nodes { owner { id } } } }'));
  });

  it.each([1, 7, 100])('is the same for pages of %s that fragments hold', (first) => {
    const inner = 'nodes { owner { id } } edges { node { id } } pageInfo { endCursor }';
    const outer = (item: string) => `nodes { items(first: 50) { ${item} } } pageInfo { endCursor }`;
    const inline = measured(`{ items(first: ${first}) { ${outer(inner)} } }`);
    const spread = measured(`{ items(first: ${first}) { ...C } }
      fragment C on ItemConnection { ${outer('...A')} } fragment A on ItemConnection { ${inner} }`);
    expect(spread).toEqual(inline);
    expect(inline.pages).toEqual([`items(first: ${first})`, 'items(first: 50)']);
    // For each item: itself, its connection, two items and what they hold, and the mark of the page.
    expect(inline.cost).toBe(1 + first * (1 + 1 + 50 * 4 + 1) + 1);
  });

  it('of a fragment depends on where it is spread', () => {
    const fragment = 'fragment F on Item { items { nodes { owner { id } } } }';
    const [top, beneath] = ['item { ...F }', 'items(first: 1) { nodes { ...F } }'];
    const [onTop, below] = [costOf(`{ ${top} } ${fragment}`), costOf(`{ ${beneath} } ${fragment}`)];
    expect(costOf(`{ ${top} ${beneath} } ${fragment}`)).toBe(onTop + below);
    expect(costOf(`{ ${beneath} ${top} } ${fragment}`)).toBe(onTop + below);
  });

  it('is that of the page that a variable says, and of its default where it is left out', () => {
    const text = 'query ($n: Int = 5) { items(first: $n) { nodes { owner { id } } } }';
    const of = (first: number) => costOf(`{ items(first: ${first}) { nodes { owner { id } } } }`);
    expect(costOf(text)).toBe(of(5));
    expect(costOf(text, { n: 80 })).toBe(of(80));
    expect(costOf(text, { n: 1_000 })).toBe(of(100));
    expect(pageSizeVariables(parse(text))).toEqual(['n']);
    expect(pageSizeVariables(parse('query ($i: [ID!]!) { named(ids: $i) { id } }'))).toEqual(['i']);
  });

  it('is that of the larger of two pages, and of a list of ids as long as it is', () => {
    expect(costOf('{ items(first: 5, last: 80) { nodes { id owner { id } } } }')).toBe(
      costOf('{ items(first: 80) { nodes { id owner { id } } } }'),
    );
    const named = 'query ($i: [ID!]!) { named(ids: $i) { owner { id } } }';
    expect(costOf(named, { i: ['a', 'b', 'c'] })).toBe(3 * costOf(named, { i: ['a'] }));
    expect(costOf('{ named(ids: ["a", "b", "c"]) { owner { id } } }')).toBe(costOf(named, { i: [1, 2, 3] }));
    const byDefault = `query ($i: [ID!]! = [${'"a" '.repeat(40)}]) { named(ids: $i) { owner { id } } }`;
    expect(costOf(byDefault)).toBe(40 * costOf(named, { i: ['a'] }));
    expect(costOf(byDefault, { i: ['a'] })).toBe(costOf(named, { i: ['a'] }));
    expect(costOf('{ all { owner { id } } }')).toBeGreaterThan(costOf(named, { i: ['a'] }));
  });
});

it('depth, aliases and directives are counted through fragments, and introspection’s fields too', () => {
  const text = `query @a { x: item @b { ...F @c ... @d { id } } __typename }
    fragment F on Item @e { y: owner { z: owner { id } } }`;
  expect(measured(text)).toMatchObject({ depth: 4, aliases: 3, directives: 5 });
  // A fragment within itself, which validation refuses, ends.
  expect(measured('{ item { ...F } } fragment F on Item { owner { ...F } }').depth).toBeLessThan(5);
});
