import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packPackage } from '../../scripts/packing.ts';
import { folder, run } from '../helpers/packages.ts';
import { startProgram } from '../helpers/program.ts';

const json = async (file: string) => JSON.parse(await readFile(file, 'utf8'));
const SANDBOX = folder('packages/sandbox');
const PAGE = 'docs/sandbox.md';

/** The five lines, and what a test would look at. */
const FIVE_LINES = `import assert from 'node:assert/strict';
import { createSandbox } from '@pasarela/sandbox';

export async function fiveLines(seed) {
  const sandbox = await createSandbox({ seed });
  const credit = await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1250.00' });
  await sandbox.advance({ minutes: 5 });
  await sandbox.fail('POST /v1/transactions/money_out', { lose: 'answer' });
  assert.equal(credit.transaction.transactionStatus, 'LIQUIDATED');
  assert.equal((await sandbox.ledger()).balanced, true);
  const docs = await fetch(sandbox.url + '/docs/guide');
  assert.match(await docs.text(), /^# The sandbox/);
  const script = await fetch(sandbox.url + '/page/console.js');
  assert.equal(script.status, 200);
  await assert.rejects(fetch(sandbox.url + '/v1/transactions/money_out', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + sandbox.accessToken },
    body: JSON.stringify({
      client_id: sandbox.clientId,
      source_instrument_id: sandbox.centralizingInstrumentId,
      destination_instrument_id: sandbox.clabeInstrumentIds[0],
      transaction_request: { external_reference: '1', description: 'Pago', amount: '1.00', currency: 'MXN' },
    }),
  }));
  assert.deepEqual((await sandbox.faults()).map(({ inForce }) => inForce), [true]);
  await sandbox.close();
}
`;

const testFile = (runner: string, seed: number) => `import { test } from '${runner}';
import { fiveLines } from './five-lines.js';
test('five lines', () => fiveLines(${seed}));
`;

const TYPED = `import { createSandbox, type RestAnswers, type RestTransaction } from '@pasarela/sandbox';

await using sandbox = await createSandbox({ seed: 7, clock: 'stepped' });
const { transaction } = await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1250.00' });
const read: RestTransaction = transaction;
read.sourceInstrument.instrumentDetail.holderName.toUpperCase();
declare const banks: RestAnswers['GET /v1/banks'];
banks.banks[0]?.institutionCode.toUpperCase();
// @ts-expect-error an amount is a string
await sandbox.credit({ clabe: '', amount: 1250 });
// @ts-expect-error no endpoint is called so
await sandbox.fail('GET /v1/bank', { lose: 'answer' });
// @ts-expect-error nothing else can be lost
await sandbox.fail('GET /v1/banks', { lose: 'money' });
`;

let work: string;
let project: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'pasarela-packed-'));
  const packed = await packPackage('sandbox', work);
  // In a folder of its own, so that it finds what its package.json names and nothing else.
  project = await mkdtemp(join(tmpdir(), 'pasarela-sandbox-user-'));
  const { devDependencies } = await json(folder('package.json'));
  await writeFile(
    join(project, 'package.json'),
    JSON.stringify({ name: 'user', private: true, type: 'module' }),
  );
  await run(
    'npm',
    [
      'install',
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
      packed,
      `@playwright/test@${devDependencies['playwright-core']}`,
    ],
    project,
  );
  for (const name of ['vitest', 'typescript', '@types'])
    await symlink(folder(`node_modules/${name}`), join(project, 'node_modules', name));
  await writeFile(join(project, 'five-lines.js'), FIVE_LINES);
});
afterAll(async () => {
  for (const made of [work, project])
    if (made !== undefined) await rm(made, { recursive: true, force: true });
});

/** Two files of a runner, which it runs at once. */
async function twoFiles(runner: string, ending: string): Promise<readonly string[]> {
  const files = [1, 2].map((number) => `${number}.${ending}`);
  await Promise.all(files.map((file, index) => writeFile(join(project, file), testFile(runner, index + 7))));
  return files;
}

it('the packed file holds what runs with its types, its page and its licence, and names its own dependencies', async () => {
  const root = join(project, 'node_modules/@pasarela/sandbox');
  expect((await readdir(root)).filter((name) => name !== 'node_modules').sort()).toEqual([
    'LICENSE',
    'README.md',
    'dist',
    'package.json',
  ]);
  const docs = await readFile(folder(PAGE), 'utf8');
  expect(await readFile(join(root, 'dist', basename(PAGE)), 'utf8')).toBe(docs);
  expect(await readFile(join(root, 'LICENSE'), 'utf8')).toBe(await readFile(folder('LICENSE'), 'utf8'));
  const [own, all] = [await json(join(root, 'package.json')), await json(folder('package.json'))];
  expect(all.dependencies).toMatchObject(own.dependencies);
  expect(all.devDependencies).toMatchObject(own.devDependencies);
  const pages = await readdir(join(SANDBOX, 'page'));
  expect((await readdir(join(root, 'dist/page'))).sort()).toEqual(
    pages.filter((file) => file !== 'tsconfig.json').sort(),
  );
  const [dist, sources] = [
    (await readdir(join(root, 'dist'), { recursive: true })).filter((file) => !file.startsWith('page')),
    await readdir(join(SANDBOX, 'src'), { recursive: true }),
  ];
  const modules = sources.filter((file) => file.endsWith('.ts')).map((file) => file.replace(/ts$/, 'js'));
  expect(dist.filter((file) => file.endsWith('.js')).sort()).toEqual(modules.sort());
});

it.each([PAGE, 'packages/sandbox/README.md'])('%s prints the five lines that are tried', async (page) => {
  const [, block = ''] = /```ts\n(.*?)```/s.exec(await readFile(folder(page), 'utf8')) ?? [];
  const lines = block.split('\n').filter((line) => line !== '');
  expect(lines).toHaveLength(6);
  for (const line of lines) expect(FIVE_LINES).toContain(line.replace('{ seed: 7 }', '{ seed }'));
});

it('the five lines work in two files at once of node:test', async () => {
  const files = await twoFiles('node:test', 'node.js');
  expect(await run(process.execPath, ['--test', ...files], project)).toMatch(/pass 2\n/);
});

it('the five lines work in two files at once of vitest', async () => {
  await twoFiles('vitest', 'vitest.test.js');
  const vitest = folder('node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--root', project, '--dir', project, 'vitest.test', '--no-color'];
  expect(await run(process.execPath, args, project, { NO_COLOR: '1' })).toMatch(/Tests +2 passed/);
});

it('the five lines work in two files at once of Playwright', async () => {
  await twoFiles('@playwright/test', 'spec.js');
  const playwright = join(project, 'node_modules/@playwright/test/cli.js');
  const args = [playwright, 'test', '--workers', '2', '--reporter', 'line', 'spec.js'];
  expect(await run(process.execPath, args, project)).toMatch(/2 passed/);
});

it.each(['nodenext', 'bundler'])('it is typed under %s resolution', async (resolution) => {
  await writeFile(join(project, `${resolution}.ts`), TYPED);
  const options = {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
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

it('says under an old Node which one it needs, and how to get one', async () => {
  const old = "Object.defineProperty(process.versions, 'node', { value: '22.18.0' })";
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(old)}` };
  const said =
    /^The sandbox runs on Node 22\.19 or later; this is 22\.18\.0[\s\S]*npm install --save-dev node@26$/m;
  const bin = join(project, 'node_modules/@pasarela/sandbox/dist/bin.js');
  await expect(run(process.execPath, [bin], project, env)).rejects.toThrow(said);
  await writeFile(
    join(project, 'old.js'),
    "import { createSandbox } from '@pasarela/sandbox';\nawait createSandbox().catch(({ message }) => console.log(message));\n",
  );
  expect(await run(process.execPath, ['old.js'], project, env)).toMatch(said);
});

it('says under Bun, whose webhooks would not arrive, that it needs Node', async () => {
  const bun = "Object.defineProperty(process.versions, 'bun', { value: '9.8.7' })";
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(bun)}` };
  const bin = join(project, 'node_modules/@pasarela/sandbox/dist/bin.js');
  await expect(run(process.execPath, [bin], project, env)).rejects.toThrow(
    /^The sandbox runs on Node 22\.19 or later; this is Bun 9\.8\.7\./m,
  );
});

it('npx starts it alone, with its options and its help, until a signal', async () => {
  const help = await run('npx', ['@pasarela/sandbox', '--help'], project);
  const bin = join(project, 'node_modules/.bin/pasarela-sandbox');
  await using program = startProgram(bin, { SANDBOX_SEED: '7' }, ['--port', '0', '--speed', '0']);
  const [, url = ''] = await program.says(/A page +(http:\S+)/);
  const { clock } = (await (await fetch(`${url}/sandbox`)).json()) as { clock: { speed: number } };
  expect(clock.speed).toBe(0);
  await using second = startProgram(bin, {}, ['--port', new URL(url).port]);
  await second.says(/is in use by another process. Choose another --port/);
  expect(await second.exited()).toBe(1);
  await using wrong = startProgram(bin, { SANDBOX_SPEED: 'fast' });
  await wrong.says(/--speed: got "fast", wants a number from 0 to 100000/);
  expect(await wrong.exited()).toBe(2);
  const { stdout } = await promisify(execFile)(process.execPath, [bin, '--help']);
  expect(help).toContain(stdout.trim());
  expect(stdout.match(/^ {2}--[a-z-]+/gm)).toEqual(
    ['port', 'speed', 'seed', 'customers', 'hosts', 'webhook-hosts', 'help'].map((name) => `  --${name}`),
  );
  expect(await program.end('SIGTERM')).toBe(0);
});
