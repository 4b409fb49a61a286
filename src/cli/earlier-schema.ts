import { readFileSync } from 'node:fs';
import {
  BreakingChangeType,
  buildClientSchema,
  buildSchema as buildFrom,
  DangerousChangeType,
  findSchemaChanges,
  type GraphQLSchema,
  isTypeSystemDefinitionNode,
  parse,
  printSchema,
  type SchemaChange,
} from 'graphql';
import { z } from 'zod';
import { CommandError, EXIT, type ExitCode, print } from './command.ts';

const Introspection = z.object({ __schema: z.looseObject({}) });

/**
 * Returns the schema in a file, as SDL or as the answer to an introspection query; undefined for a file of anything else.
 *
 * @throws CommandError if it cannot be read, or is an invalid schema
 */
export function earlierSchemaIn(file: string): GraphQLSchema | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CommandError(`${file} cannot be read: ${String(cause)}`, { cause });
  }
  const build = file.endsWith('.json') ? ofIntrospection(text) : ofSdl(text);
  try {
    return build?.();
  } catch (cause) {
    throw new CommandError(`${file} holds no valid schema: ${String(cause)}`, { cause });
  }
}

function ofIntrospection(text: string): (() => GraphQLSchema) | undefined {
  const answer = z.union([Introspection, z.object({ data: Introspection })]).safeParse(jsonIn(text)).data;
  if (answer === undefined) return undefined;
  const found = '__schema' in answer ? answer : answer.data;
  // graphql-js checks the rest, and reports errors.
  return () => buildClientSchema(found as unknown as Parameters<typeof buildClientSchema>[0]);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // It is no schema. Whoever reads it as something else reports errors.
    return undefined;
  }
}

function ofSdl(text: string): (() => GraphQLSchema) | undefined {
  try {
    const { definitions } = parse(text, { noLocation: true });
    return definitions.some(isTypeSystemDefinitionNode) ? () => buildFrom(text) : undefined;
  } catch {
    // The same holds here.
    return undefined;
  }
}

const isOf = (types: Readonly<Record<string, string>>, { type }: SchemaChange): boolean =>
  Object.values(types).includes(type);

const asText = (schema: GraphQLSchema): GraphQLSchema => buildFrom(printSchema(schema));

/** Prints what has changed since an earlier schema, and whether it breaks documents that fitted it. */
export function compareSchemas(file: string, earlier: GraphQLSchema, graph: GraphQLSchema): ExitCode {
  // Both are compared as text, because white space at the end of a description, for example, is no change.
  const changes = findSchemaChanges(asText(earlier), asText(graph));
  const breaking = changes.filter((change) => isOf(BreakingChangeType, change));
  const dangerous = changes.filter(
    (change) => !breaking.includes(change) && isOf(DangerousChangeType, change),
  );
  for (const { type, description } of breaking) print(`breaking  ${type}: ${description}`);
  for (const { type, description } of dangerous) print(`dangerous ${type}: ${description}`);
  const others = changes.length - breaking.length - dangerous.length;
  print(
    `Since ${file}: ${breaking.length} breaking, ${dangerous.length} dangerous and ${others} other changes.`,
  );
  return breaking.length === 0 ? EXIT.done : EXIT.wrong;
}
