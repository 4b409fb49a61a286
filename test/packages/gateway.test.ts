import { readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { folder, run } from '../helpers/packages.ts';
import { emptyProject, install, type PackedFiles, packAll } from '../helpers/packed.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';

const json = async (file: string) => JSON.parse(await readFile(file, 'utf8'));

let packed: PackedFiles;
let project: string;
let bin: string;
beforeAll(async () => {
  packed = await packAll();
  project = await emptyProject();
  await install(project, [packed.gateway, packed.sandbox]);
  bin = join(project, 'node_modules/pasarela/lib/pasarela.js');
});
afterAll(async () => {
  await packed[Symbol.asyncDispose]();
  await rm(project, { recursive: true, force: true });
});

it('the packed gateway needs no other package, and brings the licences of those that are in it', async () => {
  const root = join(project, 'node_modules/pasarela');
  expect((await readdir(root)).sort()).toEqual([
    'LICENSE',
    'README.md',
    'THIRD-PARTY-LICENSES.txt',
    'docs',
    'lib',
    'package.json',
    'workbench',
  ]);
  const [own, all] = [await json(join(root, 'package.json')), await json(folder('package.json'))];
  expect(own).toMatchObject({ name: all.name, version: all.version, license: all.license });
  expect(own.dependencies).toBeUndefined();
  const licences = await readFile(join(root, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  for (const [name, version] of Object.entries(all.dependencies))
    expect(licences).toContain(`## ${name} ${version}\n`);
});

it('npx pasarela tells its version, and shows the demo with its page and the sandbox’s documentation', async () => {
  const { version } = await json(folder('package.json'));
  expect(await run('npx', ['pasarela', '--version'], project)).toContain(`pasarela ${version}`);
  await using program = startProgram(bin, { PORT: '0', SANDBOX_PORT: '0' }, ['serve']);
  const { gateway, sandbox, token } = await demoAddresses(program);
  const page = await (await fetch(`${gateway}/graphql`, { headers: { accept: 'text/html' } })).text();
  const [, script = ''] = /src="([^"]+\.js)"/.exec(page) ?? [];
  expect((await fetch(new URL(script, `${gateway}/graphql`))).status).toBe(200);
  const guide = await (await fetch(`${sandbox}/docs/guide`)).text();
  expect(guide).toBe(await readFile(folder('docs/sandbox.md'), 'utf8'));
  for (const name of (await readdir(folder('packages/sandbox/page'))).filter((file) =>
    /\.(js|css)$/.test(file),
  ))
    expect((await fetch(`${sandbox}/page/${name}`)).status, name).toBe(200);
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: '{ client { accounts { nodes { clabe } } } }' }),
  });
  expect((await answer.json()) as object).not.toHaveProperty('errors');
  expect(await program.end('SIGTERM')).toBe(0);
});

it('npx runs the packed file in an empty folder, as README.md says while the package is not published', async () => {
  const empty = await emptyProject();
  const { version } = await json(folder('package.json'));
  const told = await run('npx', ['--yes', '-p', packed.gateway, 'pasarela', '--version'], empty);
  expect(told).toContain(`pasarela ${version}`);
  await rm(empty, { recursive: true });
});

it('no module of the package is kept in two bytes a character, as one beyond Latin-1 would have it', async () => {
  const chunks = join(project, 'node_modules/pasarela/lib/chunks');
  const names = (await readdir(chunks)).filter((name) => name.endsWith('.js'));
  expect(names.length).toBeGreaterThan(10);
  const wide = await Promise.all(
    names.map(async (name) => /[\u0100-\uffff]/.test(await readFile(join(chunks, name), 'utf8'))),
  );
  expect(names.filter((_name, index) => wide[index])).toEqual([]);
});

it('the project’s own code has maps, and packages have none, as each would cost every start', async () => {
  const chunks = join(project, 'node_modules/pasarela/lib/chunks');
  const files = await readdir(chunks);
  for (const name of files.filter((file) => file.endsWith('.js'))) {
    const code = await readFile(join(chunks, name), 'utf8');
    const isMapped = code.includes('\n//# sourceMappingURL=');
    expect(isMapped, name).toBe(files.includes(`${name}.map`));
    if (/^\/\/ (src|packages)\//m.test(code)) expect(isMapped, name).toBe(true);
    if (name.startsWith('packages')) expect(isMapped, name).toBe(false);
  }
});

it('a stack trace names the lines of the sources', async () => {
  // The first thing that the command writes fails.
  const failing = "process.stdout.write = () => { throw new Error('cannot write'); }";
  await using program = startProgram(
    bin,
    { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(failing)}` },
    ['--version'],
  );
  expect(await program.exited()).toBe(1);
  const [, line = ''] = /src\/cli\/pasarela\.ts:(\d+):\d+\)/.exec(program.output()) ?? [];
  const lines = (await readFile(folder('src/cli/pasarela.ts'), 'utf8')).split('\n');
  expect(lines[Number(line) - 1]).toContain('process.stdout.write');
  expect(program.output()).not.toContain('lib/chunks');
});

const THREE_LINES = `import { createSandbox } from '@pasarela/sandbox';
import { createGateway } from 'pasarela/testing';

const sandbox = await createSandbox({ seed: 7 });
const gateway = await createGateway({ sandbox });
await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1250.00', concept: 'Three lines' });
const response = await fetch(gateway.url, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: \`Bearer \${gateway.token}\` },
  body: JSON.stringify({ query: '{ events(last: 1) { nodes { ... on MoneyInEvent { paymentConcept } } } }' }),
});
console.log(await response.text());
await gateway.close();
await sandbox.close();
`;

/** What Playwright and others make of it in a project without `"type": "module"`. */
const REQUIRED = `(async () => {
${THREE_LINES.replace(/^import (.*) from (.*);$/gm, 'const $1 = require($2);')}})();
`;

it.each([
  ['three-lines.js', THREE_LINES],
  ['three-lines.cjs', REQUIRED],
])(
  'pasarela/testing starts a gateway on a sandbox in %s, from the packed files alone',
  async (file, text) => {
    await writeFile(join(project, file), text);
    const written = await run(process.execPath, [file], project);
    expect(JSON.parse(written)).toMatchObject({
      data: { events: { nodes: [{ paymentConcept: 'Three lines' }] } },
    });
  },
);

it('pasarela/testing says under an old Node what to do', async () => {
  const old = "Object.defineProperty(process.versions, 'node', { value: '20.19.0' })";
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(old)}` };
  await writeFile(join(project, 'import-alone.js'), "import 'pasarela/testing';\n");
  await expect(run(process.execPath, ['import-alone.js'], project, env)).rejects.toThrow(
    /Pasarela runs on Node 26 or later[\s\S]*npm install --save-dev node@26/,
  );
});

it.each(['nodenext', 'bundler'])('pasarela/testing is typed under %s resolution', async (resolution) => {
  for (const name of ['typescript', '@types'])
    await symlink(folder(`node_modules/${name}`), join(project, 'node_modules', name)).catch(() => undefined);
  await writeFile(
    join(project, `${resolution}.ts`),
    `${THREE_LINES}// @ts-expect-error a gateway stands on a sandbox\nawait createGateway({});\n`,
  );
  const options = {
    strict: true,
    noEmit: true,
    module: resolution === 'bundler' ? 'preserve' : 'nodenext',
    moduleResolution: resolution,
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable', 'dom'],
    types: ['node'],
    skipLibCheck: false,
  };
  const file = join(project, `tsconfig.${resolution}.json`);
  await writeFile(file, JSON.stringify({ compilerOptions: options, include: [`${resolution}.ts`] }));
  await run(process.execPath, [folder('node_modules/typescript/bin/tsc'), '-p', file], project);
});
