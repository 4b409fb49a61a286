import { readFile, writeFile } from 'node:fs/promises';
import { type GraphQLSchema, isAbstractType, parse, printSchema, validate } from 'graphql';
import * as documents from '../packages/client/src/documents.ts';
import * as statuses from '../packages/client/src/statuses.ts';
import { buildSchema } from '../src/schema/index.ts';

/**
 * Writes what follows from the graph's types: its SDL at the root; for `packages/client` the members of its interfaces and
 * unions, and those of the package's own documents that it can serve. With `--check` it only compares, and fails where they differ.
 */
const schema = buildSchema();
const FILES = {
  'schema.graphql': `${printSchema(schema)}\n`,
  'packages/client/src/possible-types.ts': possibleTypes(schema),
  'packages/client/documents.graphql': ownDocuments(schema),
};

function possibleTypes(of: GraphQLSchema): string {
  const entries = Object.values(of.getTypeMap())
    .filter((type) => isAbstractType(type) && !type.name.startsWith('__'))
    .map((type) => {
      const members = isAbstractType(type)
        ? of.getPossibleTypes(type).map(({ name }) => `    '${name}',\n`)
        : [];
      return `  ${type.name}: [\n${members.join('')}  ],\n`;
    });
  return (
    "/** The members of the graph's interfaces and unions. `npm run schema` writes this file. */\n" +
    `export const possibleTypes: Record<string, string[]> = {\n${entries.join('')}};\n`
  );
}

function ownDocuments(of: GraphQLSchema): string {
  const texts = Object.values({ ...documents, ...statuses }).filter((value) => typeof value === 'string');
  for (const text of texts) {
    for (const { message } of validate(of, parse(text)))
      throw new Error(`packages/client sends what the graph refuses: ${message}`);
  }
  return `# What @pasarela/client sends by itself, for a gateway with TRUSTED_DOCUMENTS. \`npm run schema\` writes this file.\n\n${texts.join('\n\n')}\n`;
}

for (const [name, printed] of Object.entries(FILES)) {
  const file = new URL(`../${name}`, import.meta.url);
  if (process.argv.includes('--check')) compare(name, await readFile(file, 'utf8').catch(() => ''), printed);
  else await writeFile(file, printed);
}

function compare(name: string, committed: string, printed: string): void {
  if (committed === printed) return;
  const [was, is] = [committed.split('\n'), printed.split('\n')];
  const line = is.findIndex((text, index) => text !== was[index]);
  const at = line === -1 ? is.length : line;
  process.stderr.write(
    `${name} differs from the code. Run "npm run schema" and commit it. First difference, line ${at + 1}:\n` +
      `  committed: ${was[at] ?? '(end of file)'}\n  code:      ${is[at] ?? '(end of file)'}\n`,
  );
  process.exitCode = 1;
}
