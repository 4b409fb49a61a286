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
import { buildSchema } from '../schema/index.ts';
import { type Command, CommandError, EXIT, print, readArguments, UsageError } from './command.ts';

/** The graph, in the forms that clients' tools read. */
export const schema: Command = {
  help: `Usage: pasarela schema [--json | --possible-types | --persisted-documents FILES…]

Prints the graph as SDL, which is what schema.graphql holds.

  --json                  as the answer to an introspection query
  --possible-types        the members of each interface and union, as Apollo Client's InMemoryCache wants them:
                          new InMemoryCache({ possibleTypes })
  --persisted-documents   a manifest of the operations in FILES (GraphQL documents): the SHA-256 of each operation's
                          text → the text, with the fragments it uses. It is what TRUSTED_DOCUMENTS names; clients send
                          the text, or its hash. Fragments may stand in any of the files.

Exit codes: 0 done; 1 a file cannot be read, or an operation does not fit the graph; 2 the command line is not understood.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      json: { type: 'boolean' },
      'possible-types': { type: 'boolean' },
      'persisted-documents': { type: 'boolean' },
    });
    if (Object.keys(values).length > 1) throw new UsageError('takes one of its options at a time');
    if (values['persisted-documents'] === true) {
      if (positionals.length === 0) throw new UsageError('--persisted-documents needs the names of files');
      print(toJson(manifest(buildSchema(), await readDocuments(positionals))));
      return EXIT.done;
    }
    if (positionals.length > 0)
      throw new UsageError(`got "${positionals.join(' ')}" without --persisted-documents`);
    const graph = buildSchema();
    if (values.json === true) print(toJson(introspectionFromSchema(graph)));
    else print(values['possible-types'] === true ? toJson(possibleTypes(graph)) : printSchema(graph));
    return EXIT.done;
  },
};

const toJson = (value: unknown): string => JSON.stringify(value, undefined, 2);

/** Each interface and union with the names of its object types. */
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
 * SHA-256 of an operation's text, in hexadecimal → the text. Each operation stands alone with the fragments it uses.
 *
 * @throws CommandError for operations that do not fit the graph, or have no name to be told apart by
 */
function manifest(graph: GraphQLSchema, documents: DocumentNode): Readonly<Record<string, string>> {
  const operations = documents.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION);
  if (operations.length === 0) throw new CommandError('The files hold no operation.');
  const errors = validate(graph, documents);
  if (errors.length > 0) throw new CommandError(errors.map(String).join('\n\n'));
  const texts = Object.values(separateOperations(documents)).map(printDocument);
  return Object.fromEntries(texts.map((text) => [sha256(text), text]));
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
