// Runs tests, and says which: node scripts/tests.ts short|long|whole|e2e [arguments of vitest]
import { execFileSync, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const RUNS = {
  short: {
    project: 'short',
    entry: 'sources',
    what: 'The short lane, on the sources. npm run test:long runs the long one: kills, outages, installed packages, and many cases.',
  },
  long: { project: 'long', entry: 'dist', what: 'The long lane, on dist. npm test runs the short one.' },
  whole: { project: 'integration', entry: 'dist', what: 'Both lanes, on dist.' },
  e2e: { project: 'e2e', entry: 'sources', what: 'The tests in a browser, on the sources.' },
} as const;

const [name = '', ...rest] = process.argv.slice(2);
const isRun = (text: string): text is keyof typeof RUNS => Object.hasOwn(RUNS, text);
if (!isRun(name)) throw new Error(`Wants one of ${Object.keys(RUNS).join(', ')}.`);
const { project, entry, what } = RUNS[name];
if (name !== 'e2e') await import('./require-redis.ts');
const say = () => console.log(`\n${what}\n`);
say();
if (entry === 'dist') execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' });
// Most of the long lane is waiting for servers that fail over: more files at a time fit beside each other than in the others. The short lane
// has no browser beside it.
const most = { short: 3, long: 5, whole: undefined, e2e: undefined }[name];
const workers = most === undefined ? [] : [`--maxWorkers=${Math.max(most, availableParallelism())}`];
// Every file of tests runs in a process of its own, and so does each process that a test starts, and each loads the sources again:
// this keeps what V8 has compiled of them.
const NODE_COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/tests', import.meta.url));
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--project', project, ...workers, ...rest],
  { stdio: 'inherit', env: { ...process.env, TEST_ENTRY: entry, NODE_COMPILE_CACHE } },
);
say();
process.exit(status ?? 1);
