// Builds `dist`, and runs against it every test that starts the gateway, the sandbox or the command as a program:
//
//   npm run test:dist [-- a filter of vitest]
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What starts programs: each test that imports it, itself or through a helper, is run. */
const STARTS_PROGRAMS = join('test', 'helpers', 'entry.ts');

const reached = new Map<string, boolean>();

/** Whether a module imports, at any remove, what starts programs. */
function reaches(file: string): boolean {
  const known = reached.get(file);
  if (known !== undefined) return known;
  // A circle of imports leads nowhere new.
  reached.set(file, false);
  const imports = [...readFileSync(file, 'utf8').matchAll(/from '(\.[^']+)'/g)].map(([, path = '']) =>
    join(dirname(file), path),
  );
  const answer = imports.some(
    (path) => path === STARTS_PROGRAMS || (path.startsWith('test') && existsSync(path) && reaches(path)),
  );
  reached.set(file, answer);
  return answer;
}

/** Tests that need a browser, and tests of what is packed, which build by themselves. */
const own = ['test/e2e/', 'test/deploy/', 'test/packages/'];
const tests = globSync('test/**/*.test.ts', { exclude: ['**/node_modules/**'] })
  .filter((file) => !own.some((folder) => file.startsWith(folder)) && reaches(file))
  .sort();
const [filter = ''] = process.argv.slice(2);
const chosen = tests.filter((file) => file.includes(filter));
if (chosen.length === 0) throw new Error(`No test that starts a program has "${filter}" in its path.`);

execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' });
execFileSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--project', 'integration', ...chosen],
  {
    stdio: 'inherit',
    env: { ...process.env, TEST_ENTRY: 'dist' },
  },
);
