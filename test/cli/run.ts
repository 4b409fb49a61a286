import { execFile } from 'node:child_process';
import { programOf } from '../helpers/entry.ts';
import { folder } from '../helpers/packages.ts';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const [PROGRAM = '', ...FIRST] = programOf('src/cli/pasarela.ts');

/** Runs the command with a standard output that nobody reads. @returns the exit code */
export function unread(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<number | null> {
  const { PATH = '' } = process.env;
  return new Promise((resolve) => {
    const command = [folder(PROGRAM), ...FIRST, ...args];
    const child = execFile(process.execPath, command, { env: { PATH, ...environment } }, () =>
      resolve(child.exitCode),
    );
    child.stdout?.destroy();
  });
}

/**
 * Runs the `pasarela` command to its end, as a person would: in a process of its own, told everything by its environment.
 *
 * @param fileBlocks no file that it writes may be larger, in blocks of the shell's `ulimit`
 */
export function pasarela(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  fileBlocks = 'unlimited',
): Promise<Ran> {
  const { PATH = '', HOME = '' } = process.env;
  const options = { env: { PATH, HOME, ...environment }, timeout: 300_000, maxBuffer: 32 * 1024 * 1024 };
  return new Promise((resolve) => {
    const command = [process.execPath, folder(PROGRAM), ...FIRST, ...args];
    const child = execFile(
      'sh',
      ['-c', `ulimit -f ${fileBlocks}; exec "$@"`, 'sh', ...command],
      options,
      (_error, stdout, stderr) => {
        resolve({ code: child.exitCode ?? -1, stdout, stderr });
      },
    );
  });
}
