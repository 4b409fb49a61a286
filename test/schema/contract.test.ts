import { readFile } from 'node:fs/promises';
import {
  findSchemaChanges,
  buildSchema as fromSdl,
  type GraphQLNamedType,
  type GraphQLScalarType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  isSpecifiedScalarType,
  printSchema,
  validateSchema,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { buildSchema } from '../../src/schema/index.ts';

const schema = buildSchema();

const readContract = async (): Promise<GraphQLSchema> =>
  fromSdl(await readFile(new URL('../fixtures/contract.graphql', import.meta.url), 'utf8'));

/** Changes that take nothing from a client of the contract. */
const ADDITIONS = new Set([
  'TYPE_ADDED',
  'FIELD_ADDED',
  // `... on UserError` survives it.
  'TYPE_ADDED_TO_UNION',
  'OPTIONAL_ARG_ADDED',
  'OPTIONAL_INPUT_FIELD_ADDED',
  'DESCRIPTION_CHANGED',
]);

/** Coordinates without a description, of one type. */
function undescribed(type: GraphQLNamedType): string[] {
  const missing = type.description ? [] : [type.name];
  if (isEnumType(type)) {
    for (const value of type.getValues()) if (!value.description) missing.push(`${type.name}.${value.name}`);
  }
  if (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type)) {
    for (const field of Object.values(type.getFields())) {
      if (!field.description) missing.push(`${type.name}.${field.name}`);
      for (const arg of 'args' in field ? field.args : []) {
        if (!arg.description) missing.push(`${type.name}.${field.name}(${arg.name}:)`);
      }
    }
  }
  return missing;
}

describe('the graph', () => {
  it('is a valid schema', () => {
    expect(validateSchema(schema)).toEqual([]);
  });

  it('has everything of the public contract, with the same types and nullability, and takes nothing from it', async () => {
    const changes = findSchemaChanges(await readContract(), schema)
      .filter(({ type }) => !ADDITIONS.has(type))
      .map(({ type, description }) => `${type}: ${description}`);
    expect(changes).toEqual([]);
  });

  it('promises each of its changes to apps', async () => {
    const changes = (of: GraphQLSchema) => Object.keys(of.getMutationType()?.getFields() ?? {}).toSorted();
    expect(changes(await readContract()), 'test/fixtures/contract.graphql').toEqual(changes(schema));
  });

  it('describes every type, field, argument, input field and enum value', () => {
    const missing = Object.values(schema.getTypeMap())
      .filter(({ name }) => !name.startsWith('__'))
      .flatMap(undescribed);
    expect(missing).toEqual([]);
  });

  it('says where each of its scalars is specified, on a page of its own where nobody else does', async () => {
    const scalars = Object.values(schema.getTypeMap()).filter(
      (type) => isScalarType(type) && !isSpecifiedScalarType(type),
    ) as GraphQLScalarType[];
    expect(scalars.length).toBeGreaterThan(8);
    expect(scalars.filter(({ specifiedByURL }) => !specifiedByURL).map(({ name }) => name)).toEqual([]);
    const own = scalars.filter(({ specifiedByURL }) => specifiedByURL?.includes('/docs/graph.md#'));
    expect(own.map(({ name }) => name).sort()).toEqual(['Clabe', 'MoneyAmount']);
    const page = await readFile(new URL('../../docs/graph.md', import.meta.url), 'utf8');
    for (const { name, specifiedByURL } of own) {
      expect(specifiedByURL).toMatch(new RegExp(`#${name.toLowerCase()}$`));
      expect(page).toMatch(new RegExp(`^### ${name}$`, 'm'));
    }
  });

  it('has Cursor as the type of every cursor', () => {
    const named = Object.values(schema.getTypeMap()).flatMap((type) =>
      'getFields' in type
        ? Object.values(type.getFields()).flatMap((field) => [field, ...('args' in field ? field.args : [])])
        : [],
    );
    const cursors = named.filter(({ name }) => /^(after|before|cursor|\w+Cursor)$/.test(name));
    expect(cursors.length).toBeGreaterThan(20);
    expect([...new Set(cursors.map(({ type }) => String(getNamedType(type))))]).toEqual(['Cursor']);
  });

  it('is printed in schema.graphql as it is', async () => {
    const committed = await readFile(new URL('../../schema.graphql', import.meta.url), 'utf8');
    expect(committed).toBe(`${printSchema(schema)}\n`);
  });

  it('asks for a right, or for the api key, on every root field', () => {
    const open = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap(
      (root) =>
        Object.values(root?.getFields() ?? {}).filter((field) => {
          const options = field.extensions['pothosOptions'];
          return !(typeof options === 'object' && options !== null && 'rights' in options);
        }),
    );
    expect(open.map(({ name }) => name)).toEqual([]);
  });
});
