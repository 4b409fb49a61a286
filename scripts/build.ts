// Builds `dist`: the package `pasarela`, as npm publishes it and the image holds it. It has no dependencies: everything that the
// gateway and its sandbox use is in it.
//
//   npm run build [-- another folder]
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';
import { isolatedDeclarationSync } from 'rolldown/experimental';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'));

/** Two folders deep, as the sources are that find the page and package.json by their own place. */
const CHUNKS = 'lib/chunks';
/** The types of `pasarela/testing`: the module, and the one that its types import. */
const TYPED = ['src/app/testing.ts', 'src/app/sandbox-access.ts'];

/** What the sandbox shows under `/docs`. */
const SANDBOX_PAGE = 'docs/sandbox.md';
/** What npm shows of the package. */
const PAGE = 'docs/package.md';

/** What `package.json` says of the project, and of its package too. */
const SHARED = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'repository',
  'homepage',
  'bugs',
  'publishConfig',
  'type',
];

/** The sandbox reads one package by `createRequire`, for a quicker start (packages/sandbox/src/start.ts): it is bundled like all others. */
const bundleWhatIsRequired: Plugin = {
  name: 'bundle-what-is-required',
  transform: {
    filter: { id: /packages\/sandbox\/src\/start\.ts$/ },
    handler(code, _id, { magicString }) {
      const call = 'createRequire(import.meta.url)(';
      const at = code.indexOf(call);
      if (at < 0 || magicString === undefined) throw new Error(`start.ts has no ${call}`);
      return { code: magicString.overwrite(at, at + call.length, 'require(') };
    },
  },
};

const PACKAGES = /[\\/]node_modules[\\/]/;

/** What an escape would say something else for: text that is given as it is written, and what a backslash stands before. */
const NOT_TO_ESCAPE = /(?:String\.raw`[^`]*|\\)[\u0100-\uffff]/;

/**
 * Writes escapes for what Latin-1 does not have. One such character has V8 keep a whole module, here up to a megabyte, in two bytes
 * a character for as long as the process lives.
 */
async function writeInOneByte(file: string): Promise<void> {
  const code = await readFile(file, 'utf8');
  if (NOT_TO_ESCAPE.test(code)) throw new Error(`${file} has a character that cannot be escaped.`);
  const escaped = code.replace(
    /[\u0100-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  if (escaped !== code) await writeFile(file, escaped);
}

/** Leaves a map out: Node takes the lengths of all lines of a file that has one, as it loads it. */
async function dropMap(file: string): Promise<void> {
  const code = await readFile(file, 'utf8');
  await writeFile(file, code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'));
  await rm(`${file}.map`);
}

/** Writes the modules. @returns the files that they were made of. */
async function bundle(): Promise<readonly string[]> {
  const bundled = await rolldown({
    cwd: ROOT,
    input: { pasarela: 'src/cli/bin.js', testing: 'src/app/packed-testing.js' },
    platform: 'node',
    resolve: { alias: { undici$: join(ROOT, 'scripts/undici.mjs') } },
    plugins: [bundleWhatIsRequired],
    experimental: { nativeMagicString: true },
    // A bundle that warns may lack what it warns of.
    onLog: (level, log) => {
      if (level === 'warn') throw new Error(log.message);
    },
  });
  const { output } = await bundled.write({
    dir: DIST,
    format: 'esm',
    sourcemap: true,
    sourcemapExcludeSources: true,
    entryFileNames: 'lib/[name].js',
    // A chunk of packages would bear the names of all entries that load it.
    chunkFileNames: ({ name }) => `${CHUNKS}/${name.startsWith('packages~') ? 'packages' : '[name]'}.js`,
    // Packages lie in chunks of their own, which need no map.
    codeSplitting: { groups: [{ name: 'packages', test: PACKAGES, entriesAware: true }] },
    comments: false,
    // Tests make gateways of a chunk in their own process: they find what it exports by its name.
    minifyInternalExports: false,
  });
  await bundled.close();
  for (const chunk of output) {
    if (chunk.type !== 'chunk') continue;
    await writeInOneByte(join(DIST, chunk.fileName));
    if (chunk.moduleIds.length > 0 && chunk.moduleIds.every((file) => PACKAGES.test(file)))
      await dropMap(join(DIST, chunk.fileName));
  }
  return output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []));
}

/** Writes the pages about the gateway. A link to what the package does not hold leads to the repository. */
async function addPages(repository: string): Promise<void> {
  const folders = ['docs', 'docs/clients'];
  const files = await Promise.all(folders.map((folder) => readdir(join(ROOT, folder))));
  const pages = folders.flatMap((folder, index) =>
    (files[index] ?? []).filter((file) => file.endsWith('.md')).map((file) => `${folder}/${file}`),
  );
  // npm shows one of them from the root of the package, where the others lie in a folder.
  const placeOf = (page: string): string => (page === PAGE ? 'README.md' : page);
  await mkdir(join(DIST, 'docs/clients'), { recursive: true });
  for (const page of pages) {
    const text = await readFile(join(ROOT, page), 'utf8');
    const linked = text.replace(/\]\((?!https?:|#)([^)\s#]+)/g, (_link, target: string) => {
      const meant = posix.join(posix.dirname(page), target);
      if (!pages.includes(meant)) return `](${repository}/blob/main/${meant}`;
      return `](${posix.relative(posix.dirname(placeOf(page)), placeOf(meant))}`;
    });
    await writeFile(join(DIST, placeOf(page)), linked);
  }
}

/** What is needed beside the modules: the page at `/graphql`, the sandbox's documentation, types, and what npm shows. */
async function addFiles(): Promise<void> {
  const project = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  await addPages(project.repository.url.replace(/^git\+|\.git$/g, ''));
  await cp(join(ROOT, 'workbench/dist'), join(DIST, 'workbench/dist'), { recursive: true });
  await cp(join(ROOT, SANDBOX_PAGE), join(DIST, 'lib', basename(SANDBOX_PAGE)));
  await cp(join(ROOT, 'packages/sandbox/page'), join(DIST, 'lib/page'), {
    recursive: true,
    filter: (path) => !path.endsWith('.json'),
  });
  await cp(join(ROOT, 'LICENSE'), join(DIST, 'LICENSE'));
  for (const file of TYPED) {
    const { code, errors } = isolatedDeclarationSync(file, await readFile(join(ROOT, file), 'utf8'));
    if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join(', ')}`);
    await writeFile(
      join(DIST, 'lib', basename(file).replace(/\.ts$/, '.d.ts')),
      code.replace(/(from "\.\/[\w-]+)\.ts"/g, '$1.js"'),
    );
  }
  const described = {
    ...Object.fromEntries(SHARED.map((name) => [name, project[name]])),
    engines: { node: `>=${Number.parseInt(project.devDependencies.node, 10)}` },
    bin: { pasarela: 'lib/pasarela.js' },
    exports: {
      './testing': { types: './lib/testing.d.ts', default: './lib/testing.js' },
      './package.json': './package.json',
    },
  };
  await writeFile(join(DIST, 'package.json'), `${JSON.stringify(described, null, 2)}\n`);
}

/** The licences of the packages that are in the bundle: most ask to be handed on with it. */
async function addLicences(modules: readonly string[]): Promise<void> {
  const folders = new Set(
    modules.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file.replaceAll('\\', '/')) ?? []),
  );
  const sections = await Promise.all([...folders].sort().map(licenceOf));
  await writeFile(
    join(DIST, 'THIRD-PARTY-LICENSES.txt'),
    `# Packages that are part of this one\n\n${[...new Set(sections)].join('\n')}`,
  );
}

async function licenceOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
  const quoted = text.trim().replace(/^/gm, '    ');
  return `## ${name} ${version}\n\n${license}\n${quoted === '' ? '' : `\n${quoted}\n`}`;
}

await rm(DIST, { recursive: true, force: true });
await mkdir(dirname(join(DIST, CHUNKS)), { recursive: true });
const modules = await bundle();
await addFiles();
await addLicences(modules);
