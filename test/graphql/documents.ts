import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type DocumentNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isUnionType,
  OperationTypeNode,
  parse,
  validate,
} from 'graphql';

/** A text in quotation marks of any kind, and a code block of Markdown. */
const LITERAL = /`([^`]+)`|'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"/g;
const FOLDERS = ['test', 'src', 'docs', 'examples', 'bench/lib'];

/** Every text of the project that is a valid document of queries, wherever it stands. */
export function documentsOfTheSuite(schema: GraphQLSchema): string[] {
  const found = new Set<string>();
  for (const folder of FOLDERS) {
    for (const file of filesOf(folder)) {
      for (const match of readFileSync(file, 'utf8').matchAll(LITERAL)) {
        const text = match.slice(1).find((part) => part !== undefined) ?? '';
        if (isQueryDocument(text, schema)) found.add(text);
      }
    }
  }
  return [...found];
}

function filesOf(folder: string): string[] {
  try {
    return (
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(ts|js|html|md|graphql)$/.test(entry.name))
        // Of the project, not of what it uses: an installed example has tens of thousands of files.
        .filter((entry) => !entry.parentPath.includes('node_modules'))
        .map((entry) => join(entry.parentPath, entry.name))
    );
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

function isQueryDocument(text: string, schema: GraphQLSchema): boolean {
  if (!text.includes('{')) return false;
  let document: DocumentNode;
  try {
    document = parse(text);
  } catch {
    return false;
  }
  const operations = document.definitions.filter((it) => it.kind === 'OperationDefinition');
  return (
    operations.length === 1 &&
    operations[0]?.operation === OperationTypeNode.QUERY &&
    validate(schema, document).length === 0
  );
}

/** For each root field of the graph a document that selects everything beneath it, some levels deep. */
export function exhaustiveDocuments(
  schema: GraphQLSchema,
  argumentsOf: (field: string) => string,
  depth: number,
): string[] {
  const query = schema.getQueryType();
  const fields = Object.values(query?.getFields() ?? {});
  return fields.map((field) => `query Everything { ${selection(schema, field, argumentsOf, depth)} }`);
}

function selection(
  schema: GraphQLSchema,
  field: GraphQLField<unknown, unknown>,
  argumentsOf: (field: string) => string,
  depth: number,
): string {
  const type = getNamedType(field.type);
  const given = argumentsOf(field.name);
  const required = field.args.some((argument) => argument.type.toString().endsWith('!'));
  const head = required ? `${field.name}${given}` : field.name;
  if (isLeafType(type)) return head;
  const possible: readonly GraphQLObjectType[] = isObjectType(type)
    ? [type]
    : isUnionType(type) || isInterfaceType(type)
      ? schema.getPossibleTypes(type)
      : [];
  const fragments = possible.map(
    (object) => `... on ${object.name} { ${inner(schema, object, argumentsOf, depth)} }`,
  );
  return isObjectType(type)
    ? `${head} { ${inner(schema, type, argumentsOf, depth)} }`
    : `${head} { __typename ${fragments.join(' ')} }`;
}

function inner(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  argumentsOf: (field: string) => string,
  depth: number,
): string {
  const fields = Object.values(type.getFields()).filter(
    (field) => depth > 0 || isLeafType(getNamedType(field.type)),
  );
  // Aliases keep fields apart that have one name and different types in the members of a union.
  return [
    '__typename',
    ...fields.map(
      (field) => `${type.name}_${field.name}: ${selection(schema, field, argumentsOf, depth - 1)}`,
    ),
  ].join(' ');
}
