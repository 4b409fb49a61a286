import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Program, startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';

const REHEARSAL = 'test/scenarios/rehearse/rehearse.ts';
const LONG = { timeout: 300_000 };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-rehearsal-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const rehearse = (args: readonly string[], environment: Readonly<Record<string, string>> = {}): Program =>
  startProgram(REHEARSAL, environment, args);

describe('npm run rehearse says in one sentence, and ends with 2,', () => {
  it.each([
    [['--fones', '3'], /^Unknown option '--fones'\. --help tells what there is\.\n$/],
    [['failover'], /^Unexpected argument 'failover'\. --help tells what there is\.\n$/],
    [['--phones', 'many'], /^--phones takes a number from 1 on, and not "many"\.\n$/],
    [['--only', 'failover,dusk'], /^No step is called "dusk": there are quiet; .*\.\n$/],
  ])('that it does not understand %j', LONG, async (args, sentence) => {
    await using program = rehearse(args);
    expect(await program.exited()).toBe(2);
    expect(program.output()).toMatch(sentence);
  });

  it('which programs are missing', LONG, async () => {
    await symlink(process.execPath, join(folder, 'node'));
    await using program = rehearse(['--phones', '3'], { PATH: folder });
    expect(await program.exited()).toBe(2);
    expect(program.output()).toMatch(
      /^The rehearsal needs haproxy, nginx, redis-server, openssl, prometheus on the PATH: .*\.\n$/,
    );
  });
});

it('npm run rehearse -- --help tells the options and the steps, and ends with 0', LONG, async () => {
  await using program = rehearse(['--help']);
  expect(await program.exited()).toBe(0);
  expect(program.output()).toMatch(/^Usage: npm run rehearse -- \[options\]$/m);
  expect(program.output()).toMatch(/^Steps: quiet; .*a store put back\.$/m);
});

/** Processes of this machine whose command line or environment names a folder. */
async function processesOf(name: string): Promise<readonly string[]> {
  const all = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const texts = await Promise.all(
    all.map((pid) =>
      Promise.all(
        ['cmdline', 'environ'].map((file) => readFile(join('/proc', pid, file), 'utf8').catch(() => '')),
      ),
    ),
  );
  return texts.filter((both) => both.join().includes(name)).map(([command = '']) => command);
}

/** Where file systems are mounted within a folder. */
async function mountsIn(name: string): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mounts', 'utf8')).split('\n');
  return lines.map((line) => line.split(' ')[1] ?? '').filter((path) => path.startsWith(name));
}

const unmounted = (path: string): Promise<boolean> =>
  promisify(execFile)('umount', [path]).then(
    () => true,
    () => false,
  );

describe('a rehearsal that is ended by', () => {
  it.each([
    ['SIGINT', 'once all is there', 130],
    ['SIGTERM', 'while its first servers start', 143],
    ['SIGKILL', 'once all is there', null],
  ] as const)('%s %s leaves no server behind', LONG, async (signal, moment, code) => {
    const own = await mkdtemp(join(folder, 'ended-'));
    await using program = rehearse(['--phones', '4', '--only', 'quiet'], { TMPDIR: own });
    if (moment === 'once all is there') await program.says(/4 phones are there/);
    else await until(async () => (await processesOf(own)).some((one) => one.includes('--appendonly')));
    expect(await program.end(signal)).toBe(code);
    await until(async () => (await processesOf(own)).length === 0);
    const mounted = await mountsIn(own);
    // The kernel may still be closing the files of the processes that have gone.
    for (const path of mounted) await until(() => unmounted(path));
    // Nobody is asked before a SIGKILL.
    if (code === null) return;
    expect(mounted).toEqual([]);
    // A Redis that has not begun to answer leaves its folder.
    if (moment === 'once all is there') expect(await readdir(own)).toEqual([]);
  });
});
