import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithThisProcess } from './redis.ts';

/** A folder of the project, by its path from the root. */
export const folder = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Installs what a folder's own lock file names, where it is missing. */
export async function installPackages(path: string): Promise<void> {
  const inside = folder(path);
  // npm writes this file last.
  if (existsSync(join(inside, 'node_modules/.package-lock.json'))) return;
  await run('npm', ['ci', '--no-audit', '--no-fund'], inside);
}

/**
 * Runs a command to its end.
 *
 * @returns what it wrote.
 * @throws Error with what it wrote, when it fails.
 */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...environment } });
  endWithThisProcess(child);
  let written = '';
  const collect = (chunk: Buffer) => {
    written += chunk.toString();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${written}`);
  return written;
}
