// Runs one lane of the tests, and says which: node scripts/tests.ts short|long [arguments of vitest]
import { spawnSync } from 'node:child_process';
import './require-redis.ts';

const LANES = {
  short:
    'The short lane. npm run test:long runs the long one: kills, outages, installed packages, and many cases.',
  long: 'The long lane. npm test runs the short one.',
};

const [lane = '', ...rest] = process.argv.slice(2);
if (lane !== 'short' && lane !== 'long') throw new Error('Wants a lane: short or long.');
const say = () => console.log(`\n${LANES[lane]}\n`);
say();
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--project', lane, ...rest],
  { stdio: 'inherit' },
);
say();
process.exit(status ?? 1);
