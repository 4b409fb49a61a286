import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';

/**
 * Builds the page at /graphql from `workbench/` into `workbench/dist`, where each file is compressed with brotli. With
 * `--check` it only compares, and fails where what is checked in is not what the sources build.
 */
const WORKBENCH = fileURLToPath(new URL('../workbench/', import.meta.url));
const BUILT = join(WORKBENCH, 'dist');

function run(args: readonly string[], environment: NodeJS.ProcessEnv = process.env): void {
  const { status, stdout, stderr } = spawnSync('npm', ['--prefix', WORKBENCH, ...args], {
    encoding: 'utf8',
    env: environment,
  });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed:\n${stdout}${stderr}`);
}

/** The files of a fresh build, by name. */
async function build(): Promise<ReadonlyMap<string, Buffer>> {
  if (!existsSync(join(WORKBENCH, 'node_modules'))) run(['ci', '--no-audit', '--no-fund']);
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-workbench-'));
  try {
    // Packages have other files for development, and who runs this may have said that it is that, or a test.
    run(['run', 'build', '--', '--outDir', folder, '--emptyOutDir'], {
      ...process.env,
      NODE_ENV: 'production',
    });
    const names = await readdir(folder);
    return new Map(
      await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const files = await build();

if (process.argv.includes('--check')) {
  // What is compared is what brotli holds: its own bytes may differ from one version to the next.
  const committed = (await readdir(BUILT).catch(() => [])).map((name) => name.replace(/\.br$/, ''));
  const differing = [...new Set([...files.keys(), ...committed])].filter((name) => {
    const file = files.get(name);
    return file === undefined || !committed.includes(name) || !unpacked(name).equals(file);
  });
  if (differing.length > 0) {
    process.stderr.write(
      `workbench/dist is not what workbench/ builds. Run "npm run workbench" and commit it. It differs in:\n  ${differing.join('\n  ')}\n`,
    );
    process.exitCode = 1;
  }
} else {
  await rm(BUILT, { recursive: true, force: true });
  await mkdir(BUILT);
  let sum = 0;
  for (const [name, content] of files) {
    const packed = brotliCompressSync(content, {
      params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length, [constants.BROTLI_PARAM_LGWIN]: 22 },
    });
    sum += packed.length;
    await writeFile(join(BUILT, `${name}.br`), packed);
  }
  process.stdout.write(`${files.size} files, ${Math.round(sum / 1000)} kB\n`);
}

function unpacked(name: string): Buffer {
  return brotliDecompressSync(readFileSync(join(BUILT, `${name}.br`)));
}
