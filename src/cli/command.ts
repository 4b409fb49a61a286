import { type ParseArgsConfig, parseArgs, styleText } from 'node:util';
import { suggestion } from './suggestion.ts';

/** What the `pasarela` command's exit code says. `help` prints the same. */
export const EXIT = { done: 0, wrong: 1, usage: 2 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** One subcommand. */
export interface Command {
  /** The whole text of `pasarela <name> --help`. */
  readonly help: string;
  /** The same of `pasarela <name> <verb> --help`, for verbs that have a text of their own. */
  readonly helpOn?: Readonly<Record<string, string>>;
  /**
   * Runs it on the arguments after its name. Undefined leaves the exit code to the program that it has started.
   *
   * @throws UsageError for arguments that it does not understand, CommandError for what an operator can correct.
   */
  run(args: readonly string[]): Promise<ExitCode | undefined>;
}

/** The command line is not understood: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** An operator can correct this. The message says how, in one sentence or two. Exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/**
 * Reads a subcommand's options and arguments with `util.parseArgs`.
 *
 * @throws UsageError that names the option at fault
 */
export function readArguments<const T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')) {
      // What follows the first sentence is about arguments that begin with a dash, which none of ours does.
      const [message = error.message] = error.message.split('. ');
      throw new UsageError(`${message}${optionMeant(message, Object.keys(options))}`, { cause: error });
    }
    throw error;
  }
}

/** Names the option that was meant by one that there is not, where one is near enough. */
function optionMeant(message: string, options: readonly string[]): string {
  const unknown = /^Unknown option '(--[^']+)'$/.exec(message)?.[1];
  const meant =
    unknown === undefined
      ? ''
      : suggestion(
          unknown,
          options.map((option) => `--${option}`),
        );
  return meant === '' ? '' : `.${meant}`;
}

/**
 * What is said of the word after a subcommand that is none of its verbs.
 *
 * @param verb undefined where there is none
 */
export function notAVerb(verb: string | undefined, verbs: readonly string[]): UsageError {
  const wants = `wants ${verbs.slice(0, -1).join(', ')} or ${verbs.at(-1)}`;
  if (verb === undefined) return new UsageError(wants);
  const meant = suggestion(verb, verbs);
  return new UsageError(`there is no "${verb}"${meant === '' ? ':' : `.${meant} It`} ${wants}`);
}

/** @throws UsageError when there are arguments where the subcommand takes none */
export function refuseArguments(positionals: readonly string[]): void {
  if (positionals.length > 0) throw new UsageError(`takes no argument, and got "${positionals.join(' ')}"`);
}

/** Writes to standard output, where results go. */
export const print = (text: string): void => void process.stdout.write(`${printable(text)}\n`);

/** Colours of a line's first word: good, doubtful, bad, less important, a name. */
export type Colour = 'green' | 'yellow' | 'red' | 'dim' | 'cyan';

/** The same as `print`, with the first word in colour where standard output is a terminal; `NO_COLOR` says that none is wanted. */
export function printMarked(mark: string, colour: Colour, rest: string): void {
  const shown = styleText(colour, printable(mark), { stream: process.stdout });
  process.stdout.write(`${shown}${printable(rest)}\n`);
}

/** Writes to standard error, where progress and remarks go. */
export const remark = (text: string): void => void process.stderr.write(`${printable(text)}\n`);

/** What a terminal obeys instead of showing it: C0 and C1 but for the line feed and the tab, DEL, and marks of direction. */
const CONTROLS = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/**
 * Text that a terminal shows as it is. What is printed comes from webhooks and other services in part, and anybody may have
 * written it: a control character becomes its escape, `\\u001b`, which in a JSON text means the same character.
 */
export const printable = (text: string): string =>
  text.replace(CONTROLS, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The same, for what must not begin a line of its own. */
export const printableLine = (text: string): string =>
  printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
