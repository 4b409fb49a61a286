// npm run simulate:mutants -- [names…] [--seeds 500] [--hours 0.02]: takes in one mistake at a time, and tells which seed finds it.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = fileURLToPath(new URL('mutants', import.meta.url));
/** What the simulator runs on. */
const COPIED = ['package.json', 'tsconfig.json', 'src', 'packages', 'test/simulation'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '500' },
    hours: { type: 'string', default: '0.02' },
  },
});

interface Mutant {
  readonly name: string;
  readonly patch: string;
  /** What is broken, in a sentence. */
  readonly what: string;
}

const mutants: readonly Mutant[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.patch'))
  .sort()
  .map((file) => {
    const patch = join(FOLDER, file);
    const [what = ''] = readFileSync(patch, 'utf8').split('\n', 1);
    return { name: file.slice(0, -'.patch'.length), patch, what };
  })
  .filter(({ name }) => positionals.length === 0 || positionals.includes(name));

const write = (text: string): void => void process.stdout.write(`${text}\n`);

/** Runs seeds in a copy until one fails. @returns what the simulator said, and whether one did. */
function simulate(copy: string): Promise<{ readonly text: string; readonly isFound: boolean }> {
  const args = ['--seed', values.seed, '--runs', values.seeds, '--hours', values.hours, '--until-broken'];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['test/simulation/main.ts', ...args], { cwd: copy });
    let text = '';
    const hear = (chunk: Buffer): void => {
      text += chunk;
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', reject);
    child.on('close', () => resolve({ text, isFound: text.includes('FAILED: seed') }));
  });
}

const copy = mkdtempSync(join(tmpdir(), 'pasarela-mutant-'));
let missed = 0;
try {
  for (const path of COPIED) {
    cpSync(join(ROOT, path), join(copy, path), {
      recursive: true,
      filter: (source) => !source.includes('node_modules') && !source.endsWith('/dist'),
    });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  for (const { name, patch, what } of mutants) {
    const apply = (...more: string[]) => execFileSync('git', ['apply', ...more, patch], { cwd: copy });
    // A patch that no longer fits ends everything: it has to be made anew.
    apply();
    const { text, isFound } = await simulate(copy);
    apply('--reverse');
    const seed = /FAILED: seed (\d+)/.exec(text)?.[1];
    const found = /BROKEN: (.*)/.exec(text)?.[1] ?? text.trim().split('\n').slice(-8).join('\n');
    if (!isFound) missed += 1;
    write(
      `${isFound ? `found in ${Number(seed) - Number(values.seed) + 1} seeds` : 'NOT FOUND'}: ${name}. ${what}`,
    );
    if (isFound) write(`    ${found.slice(0, 400)}`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
write(`${mutants.length} mutants, ${missed} not found within ${values.seeds} seeds`);
process.exit(missed === 0 ? 0 : 1);
