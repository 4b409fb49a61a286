import { createHash } from 'node:crypto';
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConstDirectiveNode, type DocumentNode, Kind, parse, print, visit } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { folder, installPackages, prepareWebExample, run } from '../helpers/packages.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';

const EXAMPLE = 'examples/web';
const MANIFEST = folder(`${EXAMPLE}/src/gql/persisted-documents.json`);

let work: string;
beforeAll(async () => {
  await Promise.all([prepareWebExample(), installPackages('test/clients')]);
  work = await mkdtemp(join(tmpdir(), 'pasarela-relay-'));
});
afterAll(async () => {
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

/** Every document of the example, from the modules that hold them. */
async function exampleDocuments(): Promise<DocumentNode> {
  const files = await readdir(folder(`${EXAMPLE}/src`), { recursive: true });
  const sources = await Promise.all(
    files
      .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('gql'))
      .map((file) => readFile(folder(`${EXAMPLE}/src/${file}`), 'utf8')),
  );
  const documents = sources.flatMap((source) =>
    [...source.matchAll(/graphql\(`(.*?)`\)/gs)].map((match) => match[1]),
  );
  return parse(documents.join('\n'));
}

/** Relay wants the module's name in front of every operation and fragment, and an alias where a spread may not match. */
function namedForRelay(document: DocumentNode, module: string): DocumentNode {
  const fragment = (name: string) => `${module}_${name}`;
  return visit(document, {
    OperationDefinition: (node) => {
      const kind = node.operation.charAt(0).toUpperCase() + node.operation.slice(1);
      return {
        ...node,
        name: { kind: Kind.NAME, value: `${module}${node.name?.value}${kind}` },
      };
    },
    FragmentDefinition: (node) => ({ ...node, name: { ...node.name, value: fragment(node.name.value) } }),
    FragmentSpread: ({ name: { value }, ...node }) => ({
      ...node,
      name: { kind: Kind.NAME, value: fragment(value) },
      directives: parseDirectives(`@alias(as: "${value}")`),
    }),
  });
}

function parseDirectives(text: string): readonly ConstDirectiveNode[] {
  const [definition] = parse(`scalar Any ${text}`).definitions;
  return definition?.kind === Kind.SCALAR_TYPE_DEFINITION ? (definition.directives ?? []) : [];
}

it('graphql-codegen accepts the schema and the example’s documents, and the example’s types hold', async () => {
  await run('npm', ['run', 'check'], folder(EXAMPLE));
});

it('relay-compiler accepts the schema and the example’s documents', async () => {
  const document = namedForRelay(await exampleDocuments(), 'example');
  const tags = document.definitions.map((definition) => `graphql\`${print(definition)}\`;`);
  await writeFile(join(work, 'example.js'), tags.join('\n'));
  await copyFile(folder('schema.graphql'), join(work, 'schema.graphql'));
  const config = { src: '.', schema: 'schema.graphql', language: 'javascript' };
  await writeFile(join(work, 'relay.config.json'), JSON.stringify(config));
  await run(folder('test/clients/node_modules/.bin/relay-compiler'), [], work);
  expect(await readdir(join(work, '__generated__'))).toHaveLength(document.definitions.length);
});

it('a gateway runs the documents of the manifest that graphql-codegen has written, by their hash, and no others', async () => {
  await using program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    TRUSTED_DOCUMENTS: MANIFEST,
  });
  const { gateway, token } = await demoAddresses(program);
  // It was written by `npm run check`.
  const manifest = JSON.parse(await readFile(MANIFEST, 'utf8')) as Record<string, string>;
  const ask = async (documentId: string) => {
    const response = await fetch(`${gateway}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ documentId }),
    });
    return response.json();
  };
  const [hash = ''] =
    Object.entries(manifest).find(([, text]) => text.startsWith('query PasarelaEventCursor')) ?? [];
  expect(await ask(hash)).toMatchObject({ data: { eventCursor: expect.any(String) } });
  const other = createHash('sha256').update('{ client { id } }').digest('hex');
  expect(await ask(other)).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
});
