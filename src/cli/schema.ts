import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  concatAST,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  introspectionFromSchema,
  isAbstractType,
  Kind,
  parse,
  print as printDocument,
  printSchema,
  Source,
  separateOperations,
  validate,
} from 'graphql';
import { ConfigError } from '../app/config.ts';
import { documentsIn } from '../app/trusted-documents-file.ts';
import { buildSchema } from '../schema/index.ts';
import {
  type Command,
  CommandError,
  EXIT,
  type ExitCode,
  print,
  readArguments,
  UsageError,
} from './command.ts';
import { compareSchemas, earlierSchemaIn } from './earlier-schema.ts';
import { EVENTS_DOCUMENTS } from './events.ts';
import { FORWARD_DOCUMENTS } from './forward/forward.ts';
import { RECONCILE_DOCUMENTS } from './reconcile/gather.ts';

/** Prints the graph in the forms that clients' tools read. */
export const schema: Command = {
  help: `Usage: pasarela schema [--json | --possible-types | --persisted-documents FILES… | --command-documents | --check FILES…]

Prints the graph as SDL, which is what schema.graphql holds.

  --json                  as the answer to an introspection query
  --possible-types        the members of each interface and union, as Apollo Client's InMemoryCache wants them:
                          new InMemoryCache({ possibleTypes })
  --persisted-documents   a manifest of the operations in FILES (GraphQL documents): the SHA-256 of each operation's
                          text → the text, with the fragments it uses. It is what TRUSTED_DOCUMENTS names; clients send
                          the text, or its hash. Fragments may stand in any of the files.
  --command-documents     the same of what the commands events and reconcile send: list its output in TRUSTED_DOCUMENTS beside
                          the files of your apps, anew with each version, or a gateway with such files refuses both
  --check                 names every operation in FILES that this version of the graph breaks, and how. FILES are GraphQL
                          documents, or what TRUSTED_DOCUMENTS names: the JSON of Relay, graphql-codegen or Apollo. A file
                          that holds an earlier schema (SDL, or the answer to an introspection query) is compared with this
                          version of the graph: breaking and dangerous changes are named.

  pasarela schema --check persisted-documents.json     before an upgrade

Exit codes: 0 done; 1 a file cannot be read, an operation does not fit the graph, or a change since an
earlier schema is breaking; 2 the command line is not understood.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      json: { type: 'boolean' },
      'possible-types': { type: 'boolean' },
      'persisted-documents': { type: 'boolean' },
      'command-documents': { type: 'boolean' },
      check: { type: 'boolean' },
    });
    if (Object.keys(values).length > 1) throw new UsageError('takes one of its options at a time');
    if (values['persisted-documents'] === true) {
      if (positionals.length === 0) throw new UsageError('--persisted-documents needs the names of files');
      print(toJson(manifest(buildSchema(), await readDocuments(positionals))));
      return EXIT.done;
    }
    if (values.check === true) {
      if (positionals.length === 0) throw new UsageError('--check needs the names of files');
      return checkAll(buildSchema(), positionals);
    }
    if (positionals.length > 0)
      throw new UsageError(`got "${positionals.join(' ')}" without --persisted-documents or --check`);
    if (values['command-documents'] === true) {
      print(toJson(byHash([...EVENTS_DOCUMENTS, ...FORWARD_DOCUMENTS, ...RECONCILE_DOCUMENTS])));
      return EXIT.done;
    }
    const graph = buildSchema();
    if (values.json === true) print(toJson(introspectionFromSchema(graph)));
    else print(values['possible-types'] === true ? toJson(possibleTypes(graph)) : printSchema(graph));
    return EXIT.done;
  },
};

const toJson = (value: unknown): string => JSON.stringify(value, undefined, 2);

/** Returns each interface and union with the names of its object types. */
function possibleTypes(graph: GraphQLSchema): Readonly<Record<string, readonly string[]>> {
  const abstract = Object.values(graph.getTypeMap()).filter(isAbstractType);
  return Object.fromEntries(
    abstract.map((type) => [type.name, graph.getPossibleTypes(type).map((member) => member.name)]),
  );
}

async function readDocuments(files: readonly string[]): Promise<DocumentNode> {
  const documents = await Promise.all(
    files.map(async (file) => {
      try {
        return parse(new Source(await readFile(file, 'utf8'), file));
      } catch (cause) {
        throw new CommandError(
          cause instanceof GraphQLError ? String(cause) : `${file} cannot be read: ${String(cause)}`,
          {
            cause,
          },
        );
      }
    }),
  );
  return concatAST(documents);
}

/**
 * Returns, by the SHA-256 of an operation's text in hexadecimal, the text. Each operation stands alone, with the fragments
 * that it uses.
 *
 * @throws CommandError for operations that do not fit the graph, and for several where one has no name
 */
function manifest(graph: GraphQLSchema, documents: DocumentNode): Readonly<Record<string, string>> {
  const operations = documents.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION);
  if (operations.length === 0) throw new CommandError('The files hold no operation.');
  const errors = validate(graph, documents);
  if (errors.length > 0) throw new CommandError(errors.map(String).join('\n\n'));
  return byHash(Object.values(separateOperations(documents)).map(printDocument));
}

const byHash = (texts: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(texts.map((text) => [sha256(text), text]));

/** Compares files that hold earlier schemas, and checks the operations of all other files. */
async function checkAll(graph: GraphQLSchema, files: readonly string[]): Promise<ExitCode> {
  const earlier = files.flatMap((file) => {
    const schema = earlierSchemaIn(file);
    return schema === undefined ? [] : [{ file, schema }];
  });
  const codes = earlier.map(({ file, schema }) => compareSchemas(file, schema, graph));
  const others = files.filter((file) => earlier.every((found) => found.file !== file));
  if (others.length > 0) codes.push(await check(graph, others));
  return codes.every((code) => code === EXIT.done) ? EXIT.done : EXIT.wrong;
}

/** Prints every operation of the files that does not fit the graph, then how many do. */
async function check(graph: GraphQLSchema, files: readonly string[]): Promise<ExitCode> {
  const isManifest = (file: string): boolean => file.endsWith('.json');
  const plain = await readDocuments(files.filter((file) => !isManifest(file)));
  const fragments = plain.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  // Checked one by one, because files of several apps may hold operations, and fragments, of the same name.
  const written = plain.definitions
    .filter(({ kind }) => kind === Kind.OPERATION_DEFINITION)
    .flatMap((definition) => {
      const own = fragments.filter(({ loc }) => loc?.source === definition.loc?.source);
      const names = new Set(own.map(({ name }) => name.value));
      const others = fragments.filter(({ name }) => !names.has(name.value));
      return Object.entries(separateOperations({ ...plain, definitions: [definition, ...own, ...others] }));
    })
    .map(([name, document]) => [name === '' ? 'an operation without a name' : name, document] as const);
  const listed = files
    .filter(isManifest)
    .flatMap((file) => listedIn(file).map(([id, text]) => [`${id} of ${file}`, text] as const));
  const all = [...written, ...listed];
  if (all.length === 0) throw new CommandError('The files hold no operation.');
  const broken = all.flatMap(([name, document]) => {
    const problems = misfitsOf(graph, document);
    return problems.length === 0 ? [] : [`${name}\n${problems.map((text) => `  ${text}`).join('\n')}`];
  });
  for (const text of broken) print(text);
  print(`${all.length - broken.length} of ${all.length} operations fit the graph.`);
  return broken.length === 0 ? EXIT.done : EXIT.wrong;
}

function listedIn(file: string): ReturnType<typeof documentsIn> {
  try {
    return documentsIn(file);
  } catch (cause) {
    if (cause instanceof ConfigError) throw new CommandError(`${file} holds no documents.`, { cause });
    throw cause;
  }
}

/** Returns the errors of a document that does not fit the graph. */
function misfitsOf(graph: GraphQLSchema, document: DocumentNode | string): readonly string[] {
  try {
    const parsed = typeof document === 'string' ? parse(document) : document;
    return validate(graph, parsed).map(({ message }) => message);
  } catch (error) {
    if (error instanceof GraphQLError) return [error.message];
    throw error;
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
