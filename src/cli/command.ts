import { fdatasync, fstatSync, writeSync } from 'node:fs';
import { type ParseArgsConfig, parseArgs, promisify, styleText } from 'node:util';
import { suggestion } from './suggestion.ts';

/** The exit codes of the `pasarela` command. `help` prints the same. */
export const EXIT = { done: 0, wrong: 1, usage: 2 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** One subcommand. */
export interface Command {
  /** The whole text of `pasarela <name> --help`. */
  readonly help: string;
  /** The text of `pasarela <name> <verb> --help`, for verbs that have one of their own. */
  readonly helpOn?: Readonly<Record<string, string>>;
  /**
   * Runs it with the arguments after its name. If it resolves with undefined, the program that it has started sets the exit
   * code.
   *
   * @throws UsageError for arguments that it does not understand, CommandError for errors that an operator can correct.
   */
  run(args: readonly string[]): Promise<ExitCode | undefined>;
}

/** What `--help` prints of a command behind this verb; of all of the command where there is none, or it has no text of its own. */
export const helpBehind = ({ help, helpOn = {} }: Pick<Command, 'help' | 'helpOn'>, verb = ''): string =>
  (Object.hasOwn(helpOn, verb) ? helpOn[verb] : undefined) ?? help;

/** The command line is not understood: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** An error that an operator can correct. The message says how, in one sentence or two. Exit code 1. */
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
    const { tokens, ...read } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
      tokens: true,
    });
    refuseRepeats(tokens, options);
    return read;
  } catch (error) {
    if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')) {
      // The sentences after the first are about arguments that begin with a dash. An id of a payment may stand as it is.
      const [message = error.message] = error.message.split('. ');
      throw new UsageError(`${message}${optionMeant(message, Object.keys(options))}`, { cause: error });
    }
    throw error;
  }
}

/**
 * Refuses an option that stands twice and takes one value. parseArgs takes the last one alone: `--state UNKNOWN --state IN_FLIGHT` would
 * show no payment that is unknown, and `events forward --types MONEY_IN --types CEP` would post no credit.
 */
function refuseRepeats(
  tokens: readonly { readonly kind: string; readonly name?: string; readonly value?: string | undefined }[],
  options: NonNullable<ParseArgsConfig['options']>,
): void {
  const seen = new Set<string>();
  for (const { name, value } of tokens) {
    if (name === undefined || value === undefined || options[name]?.multiple === true) continue;
    if (seen.has(name))
      throw new UsageError(
        `--${name} stands twice, and takes one value; where that may be a list, write commas: --${name} A,B`,
      );
    seen.add(name);
  }
}

/** Names the option that was probably meant by an unknown one, if one is similar enough. */
function optionMeant(message: string, options: readonly string[]): string {
  const unknown = /^Unknown option '(--[^']+)'$/.exec(message)?.[1];
  const meant =
    unknown === undefined
      ? ''
      : suggestion(
          unknown,
          [...options, 'help'].map((option) => `--${option}`),
        );
  return meant === '' ? '' : `.${meant}`;
}

/**
 * Returns the error for a word after a subcommand that is none of its verbs.
 *
 * @param verb undefined if there is no word
 */
export function notAVerb(verb: string | undefined, verbs: readonly string[]): UsageError {
  const wants = `wants ${verbs.slice(0, -1).join(', ')} or ${verbs.at(-1)}`;
  if (verb === undefined) return new UsageError(wants);
  const meant = suggestion(verb, verbs);
  return new UsageError(`there is no "${verb}"${meant === '' ? ':' : `.${meant} It`} ${wants}`);
}

/** @throws UsageError if there are arguments, which the subcommand does not take */
export function refuseArguments(positionals: readonly string[]): void {
  if (positionals.length > 0) throw new UsageError(`takes no argument, and got "${positionals.join(' ')}"`);
}

const STANDARD_OUTPUT = 1;
const sync = promisify(fdatasync);

const unwritable = (cause: unknown): CommandError =>
  new CommandError(
    `Standard output cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
    { cause },
  );

/** Whether standard output is a file, and neither a terminal nor a pipe. */
function isFile(): boolean {
  const found = fstatSync(STANDARD_OUTPUT);
  return !process.stdout.isTTY && !found.isFIFO() && !found.isSocket();
}

/**
 * Writes a text to standard output as it is, and whole. (Node's stream of a file takes a write that a full disk has cut short for a whole
 * one, and the command would end with 0.)
 *
 * @returns false where the reader of a pipe has to come to it first
 * @throws CommandError where a file takes no more
 */
export function writeOut(text: string): boolean {
  if (!isFile()) return process.stdout.write(text);
  try {
    for (let rest = Buffer.from(text); rest.length > 0; )
      rest = rest.subarray(writeSync(STANDARD_OUTPUT, rest));
    return true;
  } catch (cause) {
    throw unwritable(cause);
  }
}

/**
 * Resolves once the disk has what was written to standard output, where that is a file: in a loss of power a place that is saved behind it
 * must not outlast it.
 *
 * @throws CommandError where the disk does not take it
 */
export async function syncOut(): Promise<void> {
  if (!fstatSync(STANDARD_OUTPUT).isFile()) return;
  await sync(STANDARD_OUTPUT).catch((cause: unknown) => {
    throw unwritable(cause);
  });
}

/** With which code the command ends where nobody reads what it prints; undefined where it goes on. */
let withoutReader: ExitCode | undefined = EXIT.done;

/** Has the command go on where nobody reads what it prints, as its exit code says what it has done. What it prints then is dropped. */
export function outliveReader(): void {
  withoutReader = undefined;
}

/** Has the command end with 1 where nobody reads what it prints, as that it prints anything says that something is wrong. */
export function failWithoutReader(): void {
  withoutReader = EXIT.wrong;
}

/**
 * Ends the process with 0 where nobody reads what it prints, such as `head`, unless it is to {@link outliveReader} or to
 * {@link failWithoutReader}.
 */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (withoutReader !== undefined) process.exit(withoutReader);
  });
}

/** Writes to standard output, where results go. */
export const print = (text: string): void => void writeOut(`${printable(text)}\n`);

/** Colours of a line's first word: good, doubtful, bad, less important, a name. */
export type Colour = 'green' | 'yellow' | 'red' | 'dim' | 'cyan';

/** The same as `print`, with the first word in colour if standard output is a terminal and `NO_COLOR` is not set. */
export function printMarked(mark: string, colour: Colour, rest: string): void {
  const shown = styleText(colour, printable(mark), { stream: process.stdout });
  writeOut(`${shown}${printable(rest)}\n`);
}

/** Returns a line with its first such word in colour if standard output is a terminal and `NO_COLOR` is not set. */
export function coloured(line: string, word: string, colour: Colour): string {
  // Neither has a control character left.
  const shown = styleText(colour, word, { stream: process.stdout });
  return `${printable(line).replace(word, () => shown)}\n`;
}

/** Writes to standard error, where progress and remarks go. */
export const remark = (text: string): void => void process.stderr.write(`${printable(text)}\n`);

/**
 * Characters that a terminal obeys instead of showing them: C0 and C1 except for the line feed and the tab, DEL, and marks of
 * direction.
 */
const CONTROLS = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/**
 * Returns text that a terminal shows as it is. Printed text comes in part from webhooks and other services, so anybody may
 * have written it. A control character becomes its escape, `\\u001b`, which in a JSON text means the same character.
 */
export const printable = (text: string): string =>
  text.replace(CONTROLS, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The same for text that must stay on one line. */
export const printableLine = (text: string): string =>
  printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
