import { readFile } from 'node:fs/promises';
import {
  findSchemaChanges,
  buildSchema as fromSdl,
  type GraphQLNamedType,
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
    const contract = fromSdl(
      await readFile(new URL('../fixtures/contract.graphql', import.meta.url), 'utf8'),
    );
    const changes = findSchemaChanges(contract, schema)
      .filter(({ type }) => !ADDITIONS.has(type))
      .map(({ type, description }) => `${type}: ${description}`);
    expect(changes).toEqual([]);
  });

  it('describes every type, field, argument, input field and enum value', () => {
    const missing = Object.values(schema.getTypeMap())
      .filter(({ name }) => !name.startsWith('__'))
      .flatMap(undescribed);
    expect(missing).toEqual([]);
  });

  it('says who specifies each of its scalars, but for the two that nobody does at an address that stays', () => {
    const unspecified = Object.values(schema.getTypeMap())
      .filter((type) => isScalarType(type) && !isSpecifiedScalarType(type) && !type.specifiedByURL)
      .map(({ name }) => name);
    expect(unspecified.sort()).toEqual(['Clabe', 'MoneyAmount']);
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
          return !(typeof options === 'object' && options !== null && 'authScopes' in options);
        }),
    );
    expect(open.map(({ name }) => name)).toEqual([]);
  });
});
