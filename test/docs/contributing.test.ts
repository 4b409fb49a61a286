import { execFile } from 'node:child_process';
import { matchesGlob } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { LONG_LANE } from '../lanes.ts';
import { blocks, ROOT, readPage } from './pages.ts';

const run = promisify(execFile);

let page: string;
let commands: readonly string[];
beforeAll(async () => {
  page = await readPage('CONTRIBUTING.md');
  commands = blocks(page, 'sh').flatMap(({ text }) => text.trim().split('\n'));
});

/** Each needs the network, takes minutes, runs until it is ended, or changes files; what it names must exist all the same. */
const NOT_HERE = ['npm ci', 'npm start', 'npm run setup:redis', 'npm test', 'npm run check', 'npm run fix'];

it('the code of the example is the code of the project', async () => {
  // A sketch is of what the project does not have yet.
  const examples = blocks(page, 'ts').filter(({ argument }) => argument !== 'sketch');
  expect(examples.map(({ argument }) => argument)).toEqual(
    expect.arrayContaining(['src/upstream/banks.ts', 'src/resolvers/bank.ts', 'src/schema/bank.ts']),
  );
  for (const { argument, text } of examples) expect(await readPage(argument)).toContain(text.trimEnd());
});

it('every file that is named exists', async () => {
  const prose = page.replace(/^```.*?^```$/gms, '');
  const named = [...prose.matchAll(/`((?:src|test|docs|packages|scripts)\/[\w/.-]+\.\w+)`/g)].map(
    ([, file = '']) => file,
  );
  expect(named.length).toBeGreaterThan(20);
  for (const file of named) expect((await readPage(file)).length, file).toBeGreaterThan(0);
});

it('a table that names the lane of a test names its own', () => {
  const rows = [...page.matchAll(/^\| `(test\/[\w/.-]+)` \| (short|long) \|/gm)];
  expect(rows.length).toBeGreaterThan(10);
  for (const [, file = '', lane] of rows) {
    const isLong = LONG_LANE.some((pattern) => matchesGlob(file, pattern));
    expect(lane, file).toBe(isLong ? 'long' : 'short');
  }
});

it('every command that is named exists', async () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(await readPage('package.json'));
  const named = [...page.matchAll(/npm run ([\w:]+)/g)].map(([, script = '']) => script);
  expect(named).toContain('check');
  for (const script of named) expect(Object.keys(scripts)).toContain(script);
  expect(commands).toEqual(expect.arrayContaining(NOT_HERE));
});

// Each starts npx, and a test run of its own.
it('every other command runs as printed', async () => {
  const here = commands.filter((command) => !NOT_HERE.includes(command));
  expect(here).not.toEqual([]);
  for (const command of here) {
    // A run of vitest within a run of vitest must not take itself for one of its workers.
    const { PATH = '', HOME = '' } = process.env;
    await run('bash', ['-c', command], { cwd: fileURLToPath(ROOT), env: { PATH, HOME } });
  }
});
