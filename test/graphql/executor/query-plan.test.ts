import {
  buildSchema,
  type ExecutionResult,
  execute,
  GraphQLEnumType,
  GraphQLID,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  parse,
  validate,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { createPlannedExecution, type Execute } from '../../../src/graphql/executor/planned-queries.ts';

/** Executes by plans, as for callers who are known. */
const executing = (interpret: Execute): Execute =>
  createPlannedExecution({
    interpret,
    isIdentified: () => true,
    recount: () => undefined,
    note: () => undefined,
  });

/** Numbers from 0 to 1 that follow from a text. */
function numbersOf(text: string): () => number {
  let state = 2_166_136_261;
  for (const character of text) state = Math.imul(state ^ character.charCodeAt(0), 16_777_619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A source object. What it holds follows from its seed, so that whoever asks is told the same. */
interface Item {
  readonly kind: 'Thing' | 'Other';
  readonly seed: string;
  readonly [property: string]: unknown;
}

/** How often something comes that is not as the schema says. */
interface Chances {
  readonly fault: number;
  readonly later: number;
}

function itemOf(seed: string, { fault }: Chances): Item {
  const next = numbersOf(seed);
  const odd = <T>(value: T): unknown => (next() < fault ? oddity(next()) : value);
  return {
    kind: next() < 0.5 ? 'Thing' : 'Other',
    seed,
    id: odd(`${seed.length}-${Math.floor(next() * 1e6)}`),
    note: next() < 0.3 ? null : odd(`note "${seed.slice(-4)}" é`),
    size: odd(next() < 0.5 ? 1 : 2),
    count: odd(Math.floor(next() * 100)),
    json: odd({ any: [1, 'two', null] }),
    tags: odd(['a', null, 'b']),
  };
}

function oddity(chance: number): unknown {
  const all = [
    null,
    undefined,
    new Error('as a value'),
    { an: 'object' },
    ['a list'],
    () => 'a function',
    Promise.resolve('later'),
    1.5,
    '',
    Number.NaN,
  ];
  return all[Math.floor(chance * all.length)];
}

/** A resolver whose value follows from the parent, the field and the arguments. */
const resolver =
  (field: string, make: (seed: string, chances: Chances, args: object) => unknown) =>
  (parent: Item | undefined, args: object, chances: Chances): unknown => {
    const seed = `${parent?.seed ?? ''}/${field}${JSON.stringify(args)}`;
    const next = numbersOf(`resolve ${seed}`);
    const fails = next() < chances.fault;
    const value = () => {
      if (fails && next() < 0.5) throw new Error(`${field} fails`);
      return fails ? oddity(next()) : make(seed, chances, args);
    };
    return next() < chances.later ? Promise.resolve().then(value) : value();
  };

const nonNull = <T extends GraphQLOutputType>(type: T) => new GraphQLNonNull(type as never);
const item = (seed: string, chances: Chances) => itemOf(seed, chances);
const listOf =
  (make: (seed: string, chances: Chances) => unknown) =>
  (seed: string, chances: Chances): unknown[] =>
    Array.from({ length: seed.length % 4 }, (_, index) => {
      const value = make(`${seed}${index}`, chances);
      return numbersOf(`${seed} ${index}`)() < chances.later ? Promise.resolve(value) : value;
    });
const ofKind = (kind: Item['kind']) => (seed: string, chances: Chances) => ({
  ...itemOf(seed, chances),
  kind,
});

const JSON_TYPE = new GraphQLScalarType({ name: 'JSON' });
const SIZE = new GraphQLEnumType({ name: 'Size', values: { SMALL: { value: 1 }, LARGE: { value: 2 } } });
const BY = new GraphQLInputObjectType({
  name: 'By',
  isOneOf: true,
  fields: { id: { type: GraphQLID }, n: { type: GraphQLInt } },
});
const NODE = new GraphQLInterfaceType({
  name: 'Node',
  fields: { id: { type: nonNull(GraphQLID) }, note: { type: GraphQLString } },
  resolveType: ({ kind }: Item) => kind,
});
const THING: GraphQLObjectType = new GraphQLObjectType({
  name: 'Thing',
  extensions: { readOnce: true },
  interfaces: [NODE],
  fields: () => ({
    id: { type: nonNull(GraphQLID) },
    note: { type: GraphQLString },
    size: { type: SIZE },
    count: { type: nonNull(GraphQLInt) },
    json: { type: JSON_TYPE },
    tags: { type: new GraphQLList(GraphQLString) },
    ...shared(),
    label: {
      type: nonNull(GraphQLString),
      args: { upper: { type: GraphQLInt, defaultValue: 0 }, by: { type: BY } },
      resolve: resolver('label', (seed, _, args) => `${seed.length} ${JSON.stringify(args)}`),
    },
  }),
});
const OTHER: GraphQLObjectType = new GraphQLObjectType({
  name: 'Other',
  extensions: { readOnce: true },
  interfaces: [NODE],
  isTypeOf: (value) => value.kind === 'Other',
  fields: () => ({
    id: { type: nonNull(GraphQLID) },
    note: { type: GraphQLString },
    count: { type: GraphQLInt },
    ...shared(),
  }),
});
const EITHER = new GraphQLUnionType({
  name: 'Either',
  types: [THING, OTHER],
  resolveType: ({ kind }: Item) => kind,
});
const shared = () => ({
  node: { type: NODE, resolve: resolver('node', item) },
  either: { type: EITHER, resolve: resolver('either', item) },
  thing: { type: nonNull(THING), resolve: resolver('thing', ofKind('Thing')) },
  others: { type: new GraphQLList(nonNull(OTHER)), resolve: resolver('others', listOf(ofKind('Other'))) },
  nodes: {
    type: nonNull(new GraphQLList(NODE)),
    args: { first: { type: GraphQLInt } },
    resolve: resolver('nodes', listOf(item)),
  },
});
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: shared() }),
  types: [THING, OTHER],
});

/** A document that asks for things at random, with the variables `$n`, `$a` and `$b`. */
function documentOf(next: () => number): string {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)] as T;
  const condition = (): string =>
    next() < 0.15 ? ` @${pick(['skip', 'include'])}(if: ${pick(['$a', '$b', 'true', 'false'])})` : '';
  const fragments: string[] = [];
  const leaves: Readonly<Record<string, readonly string[]>> = {
    Thing: [
      'id',
      'note',
      'size',
      'count',
      'json',
      'tags',
      '__typename',
      'label',
      'label(upper: $n)',
      'label(by: { n: $n })',
    ],
    Other: ['id', 'note', 'count', '__typename'],
    Node: ['id', 'note', '__typename'],
    Either: ['__typename'],
    Query: ['__typename'],
  };
  const objects: Readonly<Record<string, string>> = {
    node: 'Node',
    either: 'Either',
    thing: 'Thing',
    others: 'Other',
    nodes: 'Node',
    'nodes(first: 2)': 'Node',
    'nodes(first: $n)': 'Node',
  };
  // Different arguments need different names.
  const aliased = (field: string): string => {
    const alias = field.replaceAll(/\W+/g, '_');
    return alias === field && next() < 0.8 ? field : `${alias}${pick(['', 'X', 'Y'])}: ${field}`;
  };
  const selection = (type: string, depth: number): string => {
    const parts = [pick(leaves[type] ?? [])].map((leaf) => `${aliased(leaf)}${condition()}`);
    for (let count = Math.floor(next() * 4); count > 0 && depth > 0; count -= 1) {
      const form = next();
      if (form < 0.5 && (type === 'Thing' || type === 'Other' || type === 'Query')) {
        const [field, inner] = pick(Object.entries(objects));
        parts.push(`${aliased(field)}${condition()} ${selection(inner, depth - 1)}`);
      } else if (form < 0.75) {
        const on = type === 'Query' ? type : pick(['Thing', 'Other', 'Node', 'Either', type]);
        parts.push(`...${next() < 0.8 ? ` on ${on}` : ''}${condition()} ${selection(on, depth - 1)}`);
      } else {
        const on = type === 'Query' ? type : pick(['Thing', 'Other', 'Node']);
        const name = `F${fragments.length}`;
        fragments.push(name);
        fragments[fragments.indexOf(name)] = `fragment ${name} on ${on} ${selection(on, depth - 1)}`;
        parts.push(`...${name}${condition()}`);
        if (next() < 0.3) parts.push(`...${name}`);
      }
    }
    return `{ ${parts.join(' ')} }`;
  };
  const body = selection('Query', 4);
  return `query ($n: Int, $a: Boolean! = true, $b: Boolean!) ${body}\n${fragments.join('\n')}`;
}

const comparable = ({ data, errors = [] }: ExecutionResult): unknown => ({
  data: JSON.stringify(data),
  errors: errors.map(({ message, path, locations }) => JSON.stringify([path, message, locations])).sort(),
});

describe('a planned query', () => {
  it.each([
    ['plain data', { fault: 0, later: 0 }, 0.95],
    ['data that comes later', { fault: 0, later: 0.3 }, 0.95],
    ['now and then something else', { fault: 0.02, later: 0.2 }, 0.2],
    ['much else', { fault: 0.2, later: 0.3 }, 0],
  ])('is answered as graphql-js answers it: %s', async (_what, chances, leastPlanned) => {
    let compared = 0;
    let planned = 0;
    for (let seed = 0; compared < 400; seed += 1) {
      const next = numbersOf(`document ${seed}`);
      const document = parse(documentOf(next));
      const ignored = /"\$\w+" is never used|is never used/;
      if (validate(schema, document).some(({ message }) => !ignored.test(message))) continue;
      compared += 1;
      let interpreted = 0;
      const run = executing((args) => {
        interpreted += 1;
        return execute(args);
      });
      const ask = (variableValues: Record<string, unknown>) => ({
        schema,
        document,
        variableValues,
        contextValue: chances,
      });
      await run(ask({ b: true }));
      for (const variables of [{ b: true }, { b: false, n: 3 }, { a: false, b: true, n: null }]) {
        // The second time it is planned.
        await run(ask(variables));
        interpreted = 0;
        const made = await run(ask(variables));
        if (interpreted === 0) planned += 1;
        const reference = await execute(ask(variables));
        expect(comparable(made), `${document.loc?.source.body}\n${JSON.stringify(variables)}`).toEqual(
          comparable(reference),
        );
      }
    }
    expect(planned / (compared * 3)).toBeGreaterThanOrEqual(leastPlanned);
  });
});

describe('graphql-js has the last word', () => {
  const odd = buildSchema(`
    scalar JSON
    scalar Even
    type Query { even(of: Even): String resolved(of: Even): String text: String json: JSON numbers: [Int!] lists: [[Int]] thing: Thing things: [Thing!]! }
    type Thing { note: String }
  `);
  const thing = odd.getType('Thing') as GraphQLObjectType;
  for (const type of [thing, odd.getQueryType()])
    Object.assign(type ?? {}, { extensions: { readOnce: true } });
  thing.isTypeOf = (value) => (value as { readonly kind?: string }).kind !== 'other';

  const even = odd.getType('Even') as GraphQLScalarType;
  even.coerceInputLiteral = () => {
    throw new Error('is odd');
  };

  Object.assign(odd.getQueryType()?.getFields()['resolved'] ?? {}, { resolve: () => 'z' });

  it.each<[what: string, document: string, rootValue: unknown]>([
    ['on an argument that cannot be coerced', '{ text even(of: 1) }', { text: 'x', even: 'y' }],
    ['on an argument of a resolver that cannot be coerced', '{ text resolved(of: 1) }', { text: 'x' }],
    ['on an error in the place of a value', '{ json text }', { json: new Error('no value'), text: 'x' }],
    ['on an object that has a then', '{ json }', { json: JSON.parse('{"then":1}') }],
    ['on a promise in the place of a value', '{ text }', { text: Promise.resolve('later') }],
    [
      'on a function in the place of a value',
      '{ text json }',
      { text: () => 'made', json: () => ({ a: 1 }) },
    ],
    ['on an object of another type', '{ thing { note } }', { thing: { kind: 'other', note: 'x' } }],
    ['on one item of another type', '{ things { note } }', { things: [{ note: 'x' }, { kind: 'other' }] }],
    ['on a list that is no array', '{ numbers }', { numbers: new Set([1, 2]) }],
    ['on a text in the place of a list', '{ numbers things { note } }', { numbers: 'two', things: 'none' }],
    ['on a null where none may be', '{ numbers things { note } }', { numbers: [1, null], things: null }],
    ['on a query without a root', '{ text thing { note } }', undefined],
    ['on lists of lists', '{ lists }', { lists: [[1, null], null, [Promise.resolve(2)]] }],
    [
      'on two conditions',
      '{ a: text @skip(if: true) @include(if: true) b: text @include(if: false) @skip(if: false) c: text @skip(if: false) @include(if: true) }',
      { text: 'x' },
    ],
    [
      'on names of prototypes',
      '{ __proto__: text constructor: text toString: text thing { __proto__: note } }',
      { text: 'x', thing: { note: 'y' } },
    ],
  ])('%s', async (_what, text, rootValue) => {
    const args = { schema: odd, document: parse(text), rootValue };
    const run = executing(execute);
    const reference = comparable(await execute(args));
    for (let time = 0; time < 3; time += 1) expect(comparable(await run(args))).toEqual(reference);
  });

  it('on a failure beside what is under way, and leaves no rejection behind', async () => {
    const fails = (message: string) => () => Promise.reject(new Error(message));
    const query = odd.getQueryType()?.getFields() ?? {};
    const document = parse('{ a: things { note } thing { note } b: things { note } }');
    const resolve = { things: query['things']?.resolve, thing: query['thing']?.resolve };
    Object.assign(query['things'] ?? {}, {
      resolve: (_root: unknown, _args: object, items: () => unknown) => items(),
    });
    Object.assign(query['thing'] ?? {}, {
      resolve: () => {
        throw new Error('fails at once');
      },
    });
    try {
      const cases = [
        fails('fails soon'),
        () => [{ note: 'x' }, fails('one item')(), 'none', fails('a later item')()],
        () => [fails('one item')(), { note: Promise.resolve('x') }],
      ];
      for (const contextValue of cases) {
        const args = { schema: odd, document, contextValue };
        const run = executing(execute);
        const reference = comparable(await execute(args));
        for (let time = 0; time < 3; time += 1) expect(comparable(await run(args))).toEqual(reference);
      }
    } finally {
      Object.assign(query['things'] ?? {}, { resolve: resolve.things });
      Object.assign(query['thing'] ?? {}, { resolve: resolve.thing });
    }
  });
});
