import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packIn, packPackage } from '../../scripts/packing.ts';
import { folder, run } from './packages.ts';

export interface PackedFiles extends AsyncDisposable {
  readonly client: string;
  readonly sandbox: string;
  readonly gateway: string;
}

/** Every package of the project as npm would publish it, in a folder of its own. */
export async function packAll(): Promise<PackedFiles> {
  const work = await mkdtemp(join(tmpdir(), 'pasarela-packed-'));
  await run(process.execPath, ['scripts/build.ts', join(work, 'gateway')], folder('.'));
  const files = {
    client: await packPackage('client', work),
    sandbox: await packPackage('sandbox', work),
    gateway: await packIn(join(work, 'gateway'), work),
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
