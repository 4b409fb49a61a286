import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const folder = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Packs what is in a folder, as npm would publish it. @returns the file's path */
export async function packIn(inside: string, destination: string): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--pack-destination', destination], {
    cwd: inside,
  });
  return join(destination, stdout.trim().split('\n').at(-1) ?? '');
}

/**
 * Packs `packages/<name>` in a copy of it. Packing builds, and changes the manifest for a moment: whoever installs the package from the
 * checkout meanwhile would have half of it.
 *
 * @returns the file's path
 */
export async function packPackage(name: 'client' | 'sandbox', destination: string): Promise<string> {
  const work = await mkdtemp(join(tmpdir(), `pasarela-pack-${name}-`));
  try {
    // The copy finds the compiler, and the page that the sandbox brings along, as it does in the checkout.
    await symlink(folder('node_modules'), join(work, 'node_modules'));
    await cp(folder('docs/sandbox.md'), join(work, 'docs/sandbox.md'));
    const copy = join(work, 'packages', name);
    await cp(folder(`packages/${name}`), copy, {
      recursive: true,
      filter: (path) => !/\/(dist|node_modules)$/.test(path),
    });
    return await packIn(copy, destination);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
