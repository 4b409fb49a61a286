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

it('the command runs the simulator on a copy that has the mistake, and says whether a seed has found it', async () => {
  const args = ['test/simulation/mutants.ts', 'upstream-key-of-each-try', '--seeds', '1', '--hours', '0.002'];
  // It ends with 1 where no seed has.
  const { stdout, stderr } = await run(process.execPath, args, { cwd: ROOT }).catch((error) => error);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^1 mutants, [01] not found within 1 seeds$/m);
});
