import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

/** Each of these is one program, of which the first that is there is taken. */
const TOOLS = [['haproxy'], ['nginx'], ['redis-server', 'valkey-server'], ['openssl'], ['prometheus']];
const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  phones: { type: 'string' },
  only: { type: 'string' },
  write: { type: 'string' },
} as const;

const helpOf = (
  steps: readonly string[],
): string => `Plays a night in production through on this machine, and tells what the users saw.

Usage: npm run rehearse -- [options]

  --phones NUMBER   how many phones follow their credits; 3000 where it is not given
  --only PARTS      only the steps whose names hold one of these, comma-separated
  --write FILE      puts the report in the place of the last one in FILE
  --help            prints this

Steps: ${steps.join('; ')}.
It ends with 1 where an event is lost, a payment moves money twice, or one that was told as done has moved none; with 2 where it
cannot begin.
`;

/** What is wrong with a command line or the machine, in one sentence. */
class CannotBeginError extends Error {}

export interface CommandLine {
  readonly phones: number;
  /** Names of the steps that are played. */
  readonly steps: readonly string[];
  /** The file that gets the report. */
  readonly write: string | undefined;
}

/**
 * Reads the arguments. Ends the process where there is nothing to play: with 0 after `--help`; with 2 and one sentence for arguments that
 * are not understood, and where a program is not on the PATH.
 *
 * @param steps names of all steps
 */
export function readCommandLine(args: readonly string[], steps: readonly string[]): CommandLine {
  try {
    const { help, phones = '3000', only, write } = parse(args);
    if (help === true) {
      process.stdout.write(helpOf(steps));
      process.exit(0);
    }
    if (!/^[1-9]\d{0,5}$/.test(phones))
      throw new CannotBeginError(`--phones takes a number from 1 on, and not "${phones}".`);
    const parts = only?.split(',') ?? [''];
    const unknown = parts.filter((part) => !steps.some((name) => name.includes(part)));
    if (unknown.length > 0)
      throw new CannotBeginError(`No step is called "${unknown[0]}": there are ${steps.join('; ')}.`);
    requireTools();
    return {
      phones: Number(phones),
      steps: steps.filter((name) => parts.some((part) => name.includes(part))),
      write,
    };
  } catch (error) {
    if (!(error instanceof CannotBeginError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values;
  } catch (error) {
    // Node's own sentence names the argument.
    const [sentence] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/);
    throw new CannotBeginError(`${sentence}. --help tells what there is.`);
  }
}

const isThere = (program: string): boolean => !spawnSync(program, ['--version']).error;

function requireTools(): void {
  const missing = TOOLS.filter((programs) => !programs.some(isThere)).map(([program]) => program);
  if (missing.length === 0) return;
  throw new CannotBeginError(
    `The rehearsal needs ${missing.join(', ')} on the PATH: on Debian, apt-get install haproxy nginx-light redis-server openssl prometheus.`,
  );
}
