import { access, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { folder, installPackages, run } from '../helpers/packages.ts';
import { emptyProject, install, type PackedFiles, packAll } from '../helpers/packed.ts';

/** Where publint and attw are: pinned beside the other tools of projects that install what is packed. */
const TOOLS = 'test/packed';
const NAMES = ['client', 'sandbox', 'gateway'] as const;
/** For code generators, which read it as a file: nothing imports it. */
const NO_MODULE = 'documents.graphql';

const json = async (path: string) => JSON.parse(await readFile(folder(path), 'utf8'));

/** @returns the page of the repository that `package.json` names: the one place that says where the project lives. */
const homeOf = ({ repository }: { readonly repository: { readonly url: string } }) =>
  repository.url.replace(/^git\+|\.git$/g, '');

let packed: PackedFiles;
beforeAll(async () => {
  await installPackages(TOOLS);
  packed = await packAll();
});
afterAll(() => packed[Symbol.asyncDispose]());

describe.each(NAMES)('the packed %s', (name) => {
  it('is well formed for npm and its readers, says publint', async () => {
    const tool = folder(`${TOOLS}/node_modules/publint/src/cli.js`);
    expect(await run(process.execPath, [tool, 'run', packed[name], '--strict'], folder('.'))).toMatch(
      /All good!/,
    );
  });

  it('has types that fit its modules, for nodenext and for bundlers, says attw', async () => {
    const tool = folder(`${TOOLS}/node_modules/@arethetypeswrong/cli/dist/index.js`);
    // It fails where it has a finding. The packages are ES modules alone.
    const args = [tool, packed[name], '--profile', 'esm-only', '--exclude-entrypoints', NO_MODULE];
    await run(process.execPath, args, folder('.'));
  });
});

it.each(NAMES)('no link of a page in the packed %s leads out of it', async (name) => {
  const project = await emptyProject();
  await install(project, [packed[name]]);
  const { repository, name: own } = await json(
    name === 'gateway' ? 'package.json' : `packages/${name}/package.json`,
  );
  const root = join(project, 'node_modules', own);
  const pages = (await readdir(root, { recursive: true })).filter((file) => file.endsWith('.md'));
  expect(pages).toContain('README.md');
  const published = `${homeOf({ repository })}/blob/main/`;
  for (const page of pages) {
    const text = await readFile(join(root, page), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!#)([^)\s#]+)/g)) {
      if (target.startsWith(published)) await access(folder(target.slice(published.length)));
      else if (!/^https?:/.test(target)) await access(join(root, dirname(page), target));
    }
  }
  await rm(project, { recursive: true, force: true });
});

it('npm pack says in the checkout itself where the package is, whose sources no Node runs from node_modules', async () => {
  const packing = run('npm', ['pack', '--dry-run'], folder('.'));
  await expect(packing).rejects.toThrow('npm run build && npm pack ./dist');
});

it('the packages are published from one repository, in one version, under one licence, with provenance', async () => {
  const project = await json('package.json');
  const home = homeOf(project);
  expect(project).toMatchObject({ homepage: `${home}#readme`, bugs: `${home}/issues` });
  for (const name of ['client', 'sandbox']) {
    const own = await json(`packages/${name}/package.json`);
    expect(own).toMatchObject({ version: project.version, license: project.license, bugs: project.bugs });
    expect(own.repository).toEqual({ ...project.repository, directory: `packages/${name}` });
    expect(own.homepage).toBe(`${home}/tree/main/packages/${name}#readme`);
    expect(own.publishConfig).toEqual({ access: 'public', provenance: true });
    expect(own.private).toBeUndefined();
    // What a build takes is what the project is tested with.
    expect({ ...project.dependencies, ...project.devDependencies }).toMatchObject({
      ...own.dependencies,
      ...own.devDependencies,
    });
    const licence = await readFile(folder(`packages/${name}/LICENSE`), 'utf8');
    expect(licence).toBe(await readFile(folder('LICENSE'), 'utf8'));
  }
});

it('the chart and the image come from the repository that package.json names', async () => {
  const home = homeOf(await json('package.json'));
  const text = (path: string) => readFile(folder(path), 'utf8');
  const image = home.replace(/^https:\/\/github\.com/, 'ghcr.io');
  expect(parse(await text('charts/pasarela/Chart.yaml'))).toMatchObject({ home, sources: [home] });
  expect(parse(await text('charts/pasarela/values.yaml'))).toMatchObject({ image: { repository: image } });
  expect(await text('deploy/kubernetes/pasarela.yaml')).toContain(`image: ${image}:`);
  // The workflow pushes charts under the owner, not under the repository.
  const chart = `oci://${dirname(image)}/charts/pasarela`;
  expect(await text('docs/kubernetes.md')).toContain(`${chart} --version `);
});

it.each([
  ['graphql-ws', ['graphql', 'graphql-ws']],
  ['graphql-sse', ['graphql@16', 'graphql-sse']],
  ['Apollo Client and React', ['@apollo/client', 'graphql', 'graphql-ws', 'react', 'rxjs']],
  ['urql', ['@urql/core', 'graphql', 'graphql-ws', 'wonka']],
  ['Relay and React', ['relay-runtime', 'graphql', 'graphql-ws', 'react']],
])('the packed client stands beside %s without a conflict of peers', async (_, beside) => {
  const { dependencies, devDependencies } = await json('package.json');
  const known = { ...dependencies, ...devDependencies };
  const project = await emptyProject();
  // Resolved as an install is, and not fetched.
  await run(
    'npm',
    [
      'install',
      '--package-lock-only',
      '--strict-peer-deps',
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
      packed.client,
      ...beside.map((name) => (known[name] === undefined ? name : `${name}@${known[name]}`)),
    ],
    project,
  );
  const lock = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8'));
  expect(lock.packages['node_modules/@pasarela/client']).toBeDefined();
  await rm(project, { recursive: true, force: true });
});
