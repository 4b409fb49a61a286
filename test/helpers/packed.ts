import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { folder, run } from './packages.ts';

export interface PackedFiles extends AsyncDisposable {
  readonly client: string;
  readonly sandbox: string;
  readonly gateway: string;
}

/** Packs in a folder. @returns the path of the file. */
async function pack(inside: string, destination: string): Promise<string> {
  const written = await run('npm', ['pack', '--pack-destination', destination], inside);
  return join(destination, written.trim().split('\n').at(-1) ?? '');
}

/** Packs `packages/<name>` in a copy of it: a build in the package itself is not a test's to make. @returns the file's path. */
export async function packPackage(name: 'client' | 'sandbox', destination: string): Promise<string> {
  const work = await mkdtemp(join(tmpdir(), `pasarela-pack-${name}-`));
  // The copy finds the compiler, and the page that the sandbox brings along, as it does in the checkout.
  await symlink(folder('node_modules'), join(work, 'node_modules'));
  await cp(folder('docs/sandbox.md'), join(work, 'docs/sandbox.md'));
  const copy = join(work, 'packages', name);
  await cp(folder(`packages/${name}`), copy, {
    recursive: true,
    filter: (path) => !/\/(dist|node_modules)$/.test(path),
  });
  const packed = await pack(copy, destination);
  await rm(work, { recursive: true, force: true });
  return packed;
}

/** Every package of the project as npm would publish it, in a folder of its own. */
export async function packAll(): Promise<PackedFiles> {
  const work = await mkdtemp(join(tmpdir(), 'pasarela-packed-'));
  await run(process.execPath, ['scripts/build.ts', join(work, 'gateway')], folder('.'));
  const files = {
    client: await packPackage('client', work),
    sandbox: await packPackage('sandbox', work),
    gateway: await pack(join(work, 'gateway'), work),
  };
  return { ...files, [Symbol.asyncDispose]: () => rm(work, { recursive: true, force: true }) };
}

/** A folder far from the checkout, with nothing but what it installs. */
export async function emptyProject(): Promise<string> {
  const project = await mkdtemp(join(tmpdir(), 'pasarela-user-'));
  await writeFile(
    join(project, 'package.json'),
    JSON.stringify({ name: 'user', private: true, type: 'module' }),
  );
  return project;
}

/** Installs as a user does, without any option that hides a conflict. */
export const install = (project: string, packages: readonly string[]): Promise<string> =>
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...packages], project);
