// npm run simulate:mutants -- [names…] [--seeds 500] [--hours 0.02] [--commit HEAD]: takes in one mistake at a time, and tells which seed finds
// it. With --commit it runs what is committed there, so that the files may be edited meanwhile.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = fileURLToPath(new URL('mutants', import.meta.url));
/** What the simulator runs on. */
const COPIED = ['package.json', 'tsconfig.json', 'src', 'packages', 'test/simulation', 'test/helpers'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '500' },
    hours: { type: 'string', default: '0.02' },
    commit: { type: 'string' },
  },
});

const first = Number(values.seed);
const end = first + Number(values.seeds);

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

const unknown = positionals.filter((asked) => !mutants.some(({ name }) => name === asked));
if (unknown.length > 0) {
  process.stderr.write(`There is no mutant ${unknown.join(', ')}.\n`);
  process.exit(2);
}

const write = (text: string): void => void process.stdout.write(`${text}\n`);

interface Run {
  /** What the simulator said. */
  readonly text: string;
  /** The first seed that failed; undefined where none did. */
  readonly failed: number | undefined;
}

/** Runs seeds in the copy until one fails. */
function simulate(copy: string, from: number, runs: number): Promise<Run> {
  const args = ['--seed', `${from}`, '--runs', `${runs}`, '--hours', values.hours, '--until-broken'];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['test/simulation/main.ts', ...args], { cwd: copy });
    let text = '';
    const hear = (chunk: Buffer): void => {
      text += chunk;
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', reject);
    child.on('close', (code) => {
      const seed = /FAILED: seed (\d+)/.exec(text)?.[1];
      // It ended, and neither did every seed hold nor one fail: it has not begun.
      if (seed === undefined && code !== 0) reject(new Error(`The simulator ended with ${code}:\n${text}`));
      resolve({ text, failed: seed === undefined ? undefined : Number(seed) });
    });
  });
}

/** Seeds that fail without any mistake, too. */
const broken = new Map<number, boolean>();

/** Runs seeds with a mistake until one fails that does not fail without it. */
async function find(copy: string, { name, patch }: Mutant): Promise<Run> {
  // A patch that no longer fits ends everything: it has to be made anew.
  const apply = (...more: string[]) => execFileSync('git', ['apply', ...more, patch], { cwd: copy });
  for (let from = first; ; ) {
    apply();
    const run = await simulate(copy, from, end - from);
    apply('--reverse');
    const { failed } = run;
    if (failed === undefined) return run;
    if (!broken.has(failed)) broken.set(failed, (await simulate(copy, failed, 1)).failed !== undefined);
    if (broken.get(failed) === false) return run;
    write(`passed over for ${name}: seed ${failed}, which fails without the mistake as well`);
    from = failed + 1;
  }
}

const copy = mkdtempSync(join(tmpdir(), 'pasarela-mutant-'));

/** Copies what the simulator runs on: the files as they are, or as they are at a commit. */
function copySources(commit: string | undefined): void {
  if (commit !== undefined) {
    const archive = execFileSync('git', ['archive', commit, ...COPIED], { cwd: ROOT, maxBuffer: 1e9 });
    execFileSync('tar', ['-x', '-C', copy], { input: archive });
    return;
  }
  for (const path of COPIED) {
    cpSync(join(ROOT, path), join(copy, path), {
      recursive: true,
      filter: (source) => !source.includes('node_modules') && !source.endsWith('/dist'),
    });
  }
}

let missed = 0;
try {
  copySources(values.commit);
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  for (const mutant of mutants) {
    const { name, what } = mutant;
    const { text, failed } = await find(copy, mutant);
    if (failed === undefined) {
      missed += 1;
      write(`NOT FOUND: ${name}. ${what}`);
      continue;
    }
    write(`found in ${failed - first + 1} seeds: ${name}. ${what}`);
    write(`    ${/BROKEN: (.*)/.exec(text)?.[1]?.slice(0, 400)}`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
write(`${mutants.length} mutants, ${missed} not found within ${values.seeds} seeds`);
process.exit(missed === 0 ? 0 : 1);
