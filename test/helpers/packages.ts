import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithThisProcess } from './redis.ts';
import { until } from './until.ts';

/** A folder of the project, by its path from the root. */
export const folder = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** TypeScript's own, without npx, which takes longer than the compiler. */
export const COMPILER = folder('node_modules/.bin/tsc');

/** Installs what a folder's own lock file names, where it is missing. Test files that run at once wait for each other. */
export async function installPackages(path: string): Promise<void> {
  const inside = folder(path);
  await alone(inside, async () => {
    // npm writes this file last; the lock file is newer once it has changed.
    const installed = statSync(join(inside, 'node_modules/.package-lock.json'), { throwIfNoEntry: false });
    const wanted = statSync(join(inside, 'package-lock.json'));
    if (installed !== undefined && installed.mtimeMs >= wanted.mtimeMs) return;
    await run('npm', ['ci', '--no-audit', '--no-fund'], inside);
  });
}

/** Installs the packages of a folder that uses packages/client, as that is now: npm built it when it installed it. */
export async function installWithClient(path: string): Promise<void> {
  await installPackages(path);
  const built = join(folder(path), 'node_modules/@pasarela/client/dist');
  await onceARun(path, 'client', () => compileClient(built));
}

/** Compiles packages/client into a folder. */
export const compileClient = (built: string): Promise<string> =>
  run(COMPILER, ['-p', 'packages/client/tsconfig.build.json', '--outDir', built], folder('.'));

const WEB = 'examples/web';

/** Installs the web example's packages and generates its types: later runs of graphql-codegen leave equal files alone. */
export async function prepareWebExample(): Promise<void> {
  await installWithClient(WEB);
  await onceARun(WEB, 'codegen', () => run('npm', ['run', 'codegen'], folder(WEB)));
}

/** Builds the web example into its `dist`. */
export async function buildWebExample(): Promise<void> {
  await installWithClient(WEB);
  await onceARun(WEB, 'build', () => run('npm', ['run', 'build'], folder(WEB)));
}

/**
 * Does something in a folder that has its packages, once for all test files of a run: whoever asks meanwhile waits, and whoever asks
 * later finds it done.
 */
async function onceARun(path: string, name: string, work: () => Promise<unknown>): Promise<void> {
  const inside = folder(path);
  // Removed with the packages, whose installation may undo the work.
  const done = join(inside, `node_modules/.pasarela-${name}`);
  const { TEST_RUN } = process.env;
  await alone(inside, async () => {
    if (TEST_RUN !== undefined && (await readFile(done, 'utf8').catch(() => '')) === TEST_RUN) return;
    await work();
    await writeFile(done, TEST_RUN ?? '');
  });
}

/** Does something in a folder while no other process of the tests does. */
async function alone(inside: string, work: () => Promise<unknown>): Promise<void> {
  const name = createHash('sha256').update(inside).digest('hex').slice(0, 16);
  const lock = join(tmpdir(), `pasarela-packages-${name}`);
  await until(async () => {
    try {
      await writeFile(lock, String(process.pid), { flag: 'wx' });
      return true;
    } catch {
      // Its owner may have been killed.
      const owner = Number(await readFile(lock, 'utf8').catch(() => ''));
      if (owner > 0 && !isRunning(owner)) await rm(lock, { force: true });
      return false;
    }
  });
  try {
    await work();
  } finally {
    await rm(lock, { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
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
