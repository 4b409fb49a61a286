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

type Field = GraphQLField<unknown, unknown>;

/** What a document selects of the graph. */
export interface Exhaustion {
  readonly schema: GraphQLSchema;
  /** The arguments of a field that requires some, in parentheses. */
  argumentsOf(field: string): string;
  selects(owner: GraphQLObjectType, field: Field): boolean;
}

/** For each root field of the graph a document that selects everything beneath it, some levels deep. */
export function exhaustiveDocuments(of: Exhaustion, depth: number): string[] {
  const query = of.schema.getQueryType();
  if (query == null) return [];
  const fields = Object.values(query.getFields()).filter((field) => of.selects(query, field));
  return fields.map((field) => `query Everything { ${selection(of, field, depth)} }`);
}

function selection(of: Exhaustion, field: Field, depth: number): string {
  const { schema } = of;
  const type = getNamedType(field.type);
  const required = field.args.some((argument) => argument.type.toString().endsWith('!'));
  const head = required ? `${field.name}${of.argumentsOf(field.name)}` : field.name;
  if (isLeafType(type)) return head;
  const possible: readonly GraphQLObjectType[] = isObjectType(type)
    ? [type]
    : isUnionType(type) || isInterfaceType(type)
      ? schema.getPossibleTypes(type)
      : [];
  const fragments = possible.map((object) => `... on ${object.name} { ${inner(of, object, depth)} }`);
  return isObjectType(type)
    ? `${head} { ${inner(of, type, depth)} }`
    : `${head} { __typename ${fragments.join(' ')} }`;
}

function inner(of: Exhaustion, type: GraphQLObjectType, depth: number): string {
  const fields = Object.values(type.getFields()).filter(
    (field) => of.selects(type, field) && (depth > 0 || isLeafType(getNamedType(field.type))),
  );
  // Aliases keep fields apart that have one name and different types in the members of a union.
  return [
    '__typename',
    ...fields.map((field) => `${type.name}_${field.name}: ${selection(of, field, depth - 1)}`),
  ].join(' ');
}
