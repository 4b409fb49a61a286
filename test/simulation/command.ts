import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** For how many hours a seed is run that nobody has tried. */
export const FRESH_HOURS = 0.008;

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

/** Runs the simulator as its command does. @returns its exit code, and all that it said */
export const simulate = (
  ...args: readonly string[]
): Promise<{ readonly code: unknown; readonly text: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, text: stdout + stderr }),
    );
  });

/** Returns a number that is the commit's own. */
export const seedOfCommit = (): number =>
  Number.parseInt(execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).slice(0, 7), 16);
