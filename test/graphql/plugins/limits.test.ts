import { buildSchema, type ExecutionResult, parse } from 'graphql';
import { expect, it, vi } from 'vitest';
import { useLimits } from '../../../src/graphql/plugins/limits.ts';
import { DEFAULT_PAGE, MAX_PAGE } from '../../../src/resolvers/connection.ts';

const SCHEMA = buildSchema(`
  type Query { items(first: Int): ItemConnection! named(ids: [ID!]!): [Item]! }
  type ItemConnection { nodes: [Item!]! }
  type Item { id: ID! name: String }
`);

/** Executes one document again and again; each answer is refused for its cost, or not. */
function executing(text: string, cost: number) {
  const limits = { tokens: 1_000, depth: 10, aliases: 10, directives: 10, cost };
  const document = parse(text);
  const plugin = useLimits(limits);
  return (variableValues: Readonly<Record<string, unknown>>, isIdentified = true): 'executed' | 'refused' => {
    let execute: () => ExecutionResult = () => ({ data: {} });
    const setExecuteFn = (fn: typeof execute): void => {
      execute = fn;
    };
    const contextValue = { identity: { isIdentified }, report: { noteCost: () => undefined } };
    const args = { schema: SCHEMA, document, variableValues, contextValue };
    // Only these members of the hook's payload are used, and of what it returns.
    const hook = plugin.onExecute as unknown as (
      payload: object,
    ) => { onExecuteDone?: () => void } | undefined;
    const done = hook({ args, setExecuteFn });
    const { errors } = execute();
    done?.onExecuteDone?.();
    if (errors !== undefined) {
      expect(errors[0]?.extensions['code']).toBe('TOO_COMPLEX');
      if (text.includes('first')) expect(errors[0]?.message).toContain('Ask for fewer items with "first".');
    }
    return errors === undefined ? 'executed' : 'refused';
  };
}

it.each([
  ['depth', 3, '{ items { nodes { id } } }'],
  ['aliases', 2, '{ a: __typename b: __typename }'],
  ['directives', 2, '{ __typename @skip(if: false) @include(if: true) }'],
] as const)('a document may have a limit’s %s in full, and no more', (name, had, text) => {
  const refusedAt = (most: number): boolean => {
    const limits = { tokens: 1_000, depth: 10, aliases: 10, directives: 10, cost: 1_000, [name]: most };
    let isRefused = false;
    // Only these members of the hook's payload are used.
    const hook = useLimits(limits).onValidate as unknown as (payload: object) => void;
    const setResult = () => {
      isRefused = true;
    };
    hook({ params: { schema: SCHEMA, documentAST: parse(text) }, setResult });
    return isRefused;
  };
  expect([refusedAt(had), refusedAt(had - 1)]).toEqual([false, true]);
});

it('an operation may cost as much as is allowed, and no more', () => {
  const [text, cost] = ['query ($ids: [ID!]!) { named(ids: $ids) { id } }', 7];
  const ids = Array.from({ length: cost }, (_, number) => `${number}`);
  expect([executing(text, cost)({ ids }), executing(text, cost - 1)({ ids })]).toEqual([
    'executed',
    'refused',
  ]);
});

it('a page size that is left out has its default, and one that is null has not, whichever was asked first', () => {
  const text = `query ($first: Int = ${MAX_PAGE}) { items(first: $first) { nodes { id name } } }`;
  // Between what a page that nobody has written the size of costs, and the largest one.
  const between = (DEFAULT_PAGE + MAX_PAGE) / 2 + 5;
  for (const order of [
    [{ first: null }, {}, { first: null }, {}],
    [{}, { first: null }, {}, { first: null }],
  ]) {
    const execute = executing(text, between);
    expect(order.map((variables) => execute(variables))).toEqual(
      order.map((variables) => ('first' in variables ? 'executed' : 'refused')),
    );
  }
});

it('what one size of a page costs says nothing of another', () => {
  const execute = executing('query ($first: Int) { items(first: $first) { nodes { id name } } }', 50);
  const sizes = [10, MAX_PAGE, 10, '10', MAX_PAGE];
  expect(sizes.map((first) => execute({ first }))).toEqual([
    'executed',
    'refused',
    'executed',
    'executed',
    'refused',
  ]);
});

it('what a list of ids costs says nothing of a longer one, nor what is no list of one that is', () => {
  const execute = executing('query ($ids: [ID!]!) { named(ids: $ids) { id name } }', 50);
  const many = Array.from({ length: MAX_PAGE }, (_, number) => `${number}`);
  const asked = [['a'], many, ['b'], { of: MAX_PAGE }, MAX_PAGE, many];
  expect(asked.map((ids) => execute({ ids }))).toEqual([
    'executed',
    'refused',
    'executed',
    'executed',
    'executed',
    'refused',
  ]);
});

it('a text among the variables may be longer than an object may have fields', () => {
  const execute = executing('query ($note: String) { named(ids: ["a"]) { id name } }', 50);
  const wide = Object.fromEntries(Array.from({ length: 101 }, (_, number) => [`f${number}`, number]));
  const asked = ['a'.repeat(101), ['a'.repeat(101)], null, wide, [wide]];
  expect(asked.map((note) => execute({ note }))).toEqual([
    'executed',
    'executed',
    'executed',
    'refused',
    'refused',
  ]);
});

it('what an operation costs is kept for whoever asks it next, once a known caller has', () => {
  const execute = executing('query ($first: Int) { items(first: $first) { nodes { id name } } }', 50);
  const measured = vi.spyOn(SCHEMA, 'getQueryType');
  const timesOf = (isIdentified: boolean): number => {
    measured.mockClear();
    expect(execute({ first: 10 }, isIdentified)).toBe('executed');
    return measured.mock.calls.length;
  };
  const times = timesOf(false);
  expect(times).toBeGreaterThan(0);
  expect([timesOf(false), timesOf(true), timesOf(true), timesOf(false)]).toEqual([times, times, 0, 0]);
  measured.mockRestore();
});
