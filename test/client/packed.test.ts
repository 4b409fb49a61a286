import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packPackage } from '../../scripts/packing.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { COMPILER, folder, installPackages, run } from '../helpers/packages.ts';

const PACKAGES = 'test/packed';
/** The most that an entry may weigh beside what it stands on, compressed. */
const OWN_BYTES: Readonly<Record<string, number>> = {
  apollo: 6_565,
  fetch: 4_935,
  'graphql-sse': 5_550,
  'indexed-db': 1_270,
  react: 4_975,
  'react-native': 310,
  relay: 5_640,
  request: 3_505,
  schema: 750,
  svelte: 4_170,
  testing: 4_540,
  urql: 5_795,
};
/** What an app loads of the package, and the most that it may weigh, compressed. */
const WEIGHTS: Readonly<Record<string, readonly [string, number]>> = {
  // Following, with every store: the core of the package, which stays below 5 KB.
  core: [
    `export { follow, isGap, keyValueStore, memoryStore, Refused, sharedStore, typed, watch } from '@pasarela/client';
    export { indexedDbStore } from '@pasarela/client/indexed-db';`,
    5_120,
  ],
  feed: [
    "export { follow, isGap, keyValueStore, memoryStore, typed, watch } from '@pasarela/client';",
    4_425,
  ],
  payment: ["export { forget, intentStore, pay, typed, unsettled } from '@pasarela/client';", 4_220],
  // The whole of what an app loads to follow.
  socket: [
    "export { follow } from '@pasarela/client'; export { createSocket } from '@pasarela/client/graphql-ws';",
    10_500,
  ],
  // Both together, which no app has to load at once.
  whole: ["export * from '@pasarela/client';", 7_175],
  ...Object.fromEntries(
    Object.entries(OWN_BYTES).map(([entry, most]) => [
      entry,
      [`export * from '@pasarela/client/${entry}';`, most] as const,
    ]),
  ),
};

/** An app: follows a feed by the two bindings that need no framework, and pays. It ends once it has seen a credit by each. */
const APP = `import { follow, isGap, memoryIntents, memoryStore, pay, typed } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { createSocket } from '@pasarela/client/graphql-ws';
import { possibleTypes } from '@pasarela/client/schema';
import WebSocket from 'ws';

const url = process.env.GATEWAY;
const token = () => process.env.TOKEN;
const MoneyIn = typed('subscription ($after: Cursor) { moneyIn(after: $after) { cursor paymentConcept } }');
const socket = createSocket({ url, token, webSocketImpl: WebSocket });

async function first(source) {
  const feed = follow(source, MoneyIn, { store: memoryStore() });
  feed.onChange(() => feed.status === 'live' && console.log('live'));
  for await (const credit of feed) return isGap(credit) ? 'gap' : credit.paymentConcept;
}
async function main() {
const seen = await Promise.all([first(socket), first(createFetch({ url, token }))]);
const Pay = typed('mutation ($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) { __typename } }');
const outcome = await pay(socket, Pay, JSON.parse(process.env.INPUT), { store: memoryIntents() });
console.log(JSON.stringify({ seen, paid: outcome.status, unions: Object.keys(possibleTypes).length > 5 }));
process.exit();
}
void main();
`;

let work: string;
let packed: string;
let gateway: RunningGateway;

beforeAll(async () => {
  await installPackages(PACKAGES);
  work = await mkdtemp(folder(`${PACKAGES}/run-`));
  packed = await packPackage('client', work);
  gateway = await startGateway({ config: PATIENT });
});
afterAll(async () => {
  await gateway?.stop();
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

/** A project of its own that has installed the packed file, and finds everything else in the folder above. */
async function project(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const inside = join(work, name);
  await mkdir(inside);
  await writeFile(join(inside, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }));
  for (const [file, text] of Object.entries(files)) await writeFile(join(inside, file), text);
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', packed], inside);
  return inside;
}

/** Runs the app in a Node, lets a credit arrive once its feeds are live, and tells what it has seen. */
async function runApp(node: string, file: string, cwd: string): Promise<unknown> {
  const { sandbox } = gateway;
  const world = await control(sandbox, 'GET', '/sandbox');
  const input = {
    sourceInstrumentId: world.centralizingInstrumentId,
    destinationInstrumentId: world.clabeInstrumentIds[0],
  };
  let isOver = false;
  const output = run(node, [file], cwd, {
    GATEWAY: gateway.graphql,
    TOKEN: sandbox.accessToken,
    INPUT: JSON.stringify(input),
  }).finally(() => {
    isOver = true;
  });
  // What comes before the feeds have begun is not theirs to show: credits come until each has shown one.
  while (!isOver) {
    await control(sandbox, 'POST', '/sandbox/spei-credits', {
      clabe: world.accounts[0].clabe,
      amount: '1.00',
      concept: 'packed',
    });
  }
  return JSON.parse((await output).trim().split('\n').at(-1) ?? '');
}

const GOOD = { seen: ['packed', 'packed'], paid: 'done', unions: true };
const bin = (name: string) => folder(`${PACKAGES}/node_modules/.bin/${name}`);

it('the packed file holds built JavaScript with its declarations, the documents, its page, and nothing else', async () => {
  const inside = await project('listing', {});
  const root = join(inside, 'node_modules/@pasarela/client');
  expect((await readdir(root)).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'dist',
    'documents.graphql',
    'package.json',
  ]);
  const { exports, dependencies, scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  expect(dependencies).toBeUndefined();
  // npm warns of what would run where a file is installed.
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare'])
    expect(scripts).not.toHaveProperty(name);
  for (const entry of Object.values<string | { types: string; default: string }>(exports)) {
    const files = typeof entry === 'string' ? [entry] : [entry.types, entry.default];
    for (const file of files) expect(await readFile(join(root, file), 'utf8')).not.toBe('');
  }
});

describe.concurrent('a project that installs the packed file', () => {
  it('follows and pays on Node 20', async () => {
    const inside = await project('node20', { 'app.js': APP });
    expect(await run(bin('node'), ['--version'], inside)).toMatch(/^v20\./);
    expect(await runApp(bin('node'), 'app.js', inside)).toEqual(GOOD);
  });

  it('is bundled by Vite, and no entry weighs more than it may', async () => {
    const inside = await project('vite', {
      'app.js': APP,
      ...Object.fromEntries(Object.entries(WEIGHTS).map(([name, [code]]) => [`${name}.js`, code])),
      'vite.config.js': `export default {
        build: { lib: { entry: ['app.js'], formats: ['es'] }, minify: true, target: 'es2022',
          rollupOptions: { external: ['ws'], output: { preserveModules: false } } } };`,
    });
    await run(process.execPath, [folder(`${PACKAGES}/node_modules/vite/bin/vite.js`), 'build'], inside);
    expect(await runApp(process.execPath, 'dist/app.js', inside)).toEqual(GOOD);
    const tooHeavy: Record<string, number> = {};
    for (const [name, [, most]] of Object.entries(WEIGHTS)) {
      const bytes = gzipSync(await bundleOf(name, inside)).length;
      if (bytes > most) tooHeavy[name] = bytes;
    }
    expect(tooHeavy).toEqual({});
  });

  it('is bundled by Metro', async () => {
    const inside = await project('metro', {
      'app.js': APP.replace("import WebSocket from 'ws';\n", '').replace(', webSocketImpl: WebSocket', ''),
      // React Native's own preset, and what graphql 17 needs besides.
      'babel.config.cjs': `module.exports = {
        presets: [${JSON.stringify(folder(`${PACKAGES}/node_modules/@react-native/babel-preset`))}],
        plugins: [${JSON.stringify(folder(`${PACKAGES}/node_modules/@babel/plugin-transform-export-namespace-from`))}],
      };`,
      'metro.config.cjs': `module.exports = {
        projectRoot: __dirname,
        watchFolders: [${JSON.stringify(folder(PACKAGES))}],
        resolver: { nodeModulesPaths: [${JSON.stringify(folder(`${PACKAGES}/node_modules`))}], useWatchman: false },
              };`,
    });
    await run(
      process.execPath,
      [
        folder(`${PACKAGES}/node_modules/metro/src/cli.js`),
        'build',
        'app.js',
        '--config',
        'metro.config.cjs',
        '--out',
        'bundle.cjs',
      ],
      inside,
    );
    expect(await runApp(process.execPath, 'bundle.cjs', inside)).toEqual(GOOD);
  });

  it.each(['bundler', 'nodenext'])(
    'is typed under %s resolution: a document’s result and variables, and a gap that has to be dealt with',
    async (resolution) => {
      const inside = await project(resolution, { 'app.ts': TYPED, 'tsconfig.json': tsconfig(resolution) });
      await run(COMPILER, ['-p', join(inside, 'tsconfig.json')], folder('.'));
    },
  );
});

/** What apps have beside the package. */
const BESIDE = '/^(@apollo|@urql|graphql$|graphql-sse|react|relay-runtime|rxjs|wonka)/';

/** One entry alone, minified, as an app that uses all of it would have it. */
async function bundleOf(name: string, inside: string): Promise<string> {
  const only = `export default { build: { outDir: 'only', emptyOutDir: false, minify: true, target: 'es2022', modulePreload: false,
    rollupOptions: { input: '${name}.js', external: ${BESIDE}, preserveEntrySignatures: 'strict', output: { entryFileNames: '${name}.js' } } } };`;
  await writeFile(join(inside, 'only.config.js'), only);
  const vite = folder(`${PACKAGES}/node_modules/vite/bin/vite.js`);
  await run(process.execPath, [vite, 'build', '--config', 'only.config.js'], inside);
  return readFile(join(inside, `only/${name}.js`), 'utf8');
}

const tsconfig = (moduleResolution: string) =>
  JSON.stringify({
    compilerOptions: {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      module: moduleResolution === 'bundler' ? 'preserve' : moduleResolution,
      moduleResolution,
      target: 'es2022',
      lib: ['es2022', 'dom'],
      types: [],
      skipLibCheck: false,
    },
    include: ['app.ts'],
  });

const TYPED = `import { follow, isGap, memoryIntents, pay, type Source, typed } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import type { Scalars } from '@pasarela/client/schema';

// Firebase's: whatever it is given that is not false makes it ask for another token.
declare const getIdToken: (refresh?: boolean) => Promise<string>;
createFetch({ url: '', token: ({ refused }) => getIdToken(refused) });
// @ts-expect-error it would refresh before each request
createFetch({ url: '', token: getIdToken });

declare const source: Source;
interface Credit { readonly cursor: string; readonly amount: { readonly amount: Scalars['MoneyAmount'] } }
const MoneyIn = typed<{ readonly moneyIn: Credit }, { readonly after?: string | null; readonly ownerId?: string | null }>('');
const NoCursor = typed<{ readonly moneyIn: { readonly id: string } }, { readonly after?: string | null }>('');
type Result =
  | { readonly __typename: 'CreateMoneyOutSuccess'; readonly transaction: { readonly id: string } }
  | { readonly __typename: 'OutcomeUnknown'; readonly safeToRetry: boolean };
const PayOut = typed<{ readonly createMoneyOut: Result }, { readonly input: { readonly idempotencyKey: string; readonly amount: string } }>('');

export async function check() {
  for await (const credit of follow(source, MoneyIn, { variables: { ownerId: 'x' } })) {
    // @ts-expect-error a gap has no amount
    credit.amount;
    if (!isGap(credit)) credit.amount.amount.toUpperCase();
  }
  // @ts-expect-error the feed sets after itself
  follow(source, MoneyIn, { variables: { after: 'x' } });
  // @ts-expect-error events that select no cursor cannot be followed
  follow(source, NoCursor);
  const outcome = await pay(source, PayOut, { amount: '1.00' }, { store: memoryIntents() });
  if (outcome.status === 'done') outcome.result.transaction.id.toUpperCase();
  // @ts-expect-error only what is done has a result
  outcome.result;
  // @ts-expect-error the amount is missing
  await pay(source, PayOut, {}, { store: memoryIntents() });
}
`;
