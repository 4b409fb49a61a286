import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = 'test/simulation/mutants';

it('each mistake that the simulation is tried with fits the sources as they are', async () => {
  const patches = (await readdir(`${ROOT}${FOLDER}`)).filter((name) => name.endsWith('.patch'));
  expect(patches.length).toBeGreaterThan(25);
  for (const name of patches) await run('git', ['apply', '--check', `${FOLDER}/${name}`], { cwd: ROOT });
});
