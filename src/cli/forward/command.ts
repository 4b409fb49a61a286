import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readEnvironment } from '../../app/config.ts';
import { onToldToEnd } from '../../app/lifecycle.ts';
import { EVENT_TYPES } from '../../events/log.ts';
import {
  CommandError,
  EXIT,
  type ExitCode,
  print,
  printableLine,
  readArguments,
  refuseArguments,
  remark,
  UsageError,
} from '../command.ts';
import { CursorFile } from '../cursor-file.ts';
import { GraphError } from '../graph.ts';
import { graphAt, readTypes } from '../graph-options.ts';
import { forward, lettersFileOf, stateFileOf } from './forward.ts';
import { type Letter, Letters, type Trouble } from './letters.ts';
import { receiverAt, receiverId } from './receivers.ts';

/** The whole text of `pasarela events forward --help`. */
export const FORWARD_HELP = `Usage: pasarela events forward --to URL… [--types …] [--from CURSOR|oldest] [--schedule PAUSES] [--state FILE] [--url URL]
       pasarela events forward status [--json]
       pasarela events forward retry RECEIVER [EVENT…]

Brings each event to a receiver, in order and at least once, signed with FORWARD_SECRET. It saves the cursor once the receiver
has answered with a 2xx, and goes on after it when it is started again. A receiver or gateway that is away is tried again,
with growing pauses; events that are missing end it with EVENTS_GAP.

  --to        address of the receiver; file:///folder writes a file of JSON lines for each day. Several may be named: each has
              its own place, and none waits for another
  --types     of ${EVENT_TYPES.join(', ')}, comma-separated; default all
  --from      where to begin, if no place is saved: after this cursor, or with "oldest" at the oldest event that the log has.
              Default: what comes from now on
  --schedule  pauses after each refusal of an event, such as 10s,1m,10m,1h. After the last one the event is put aside as a dead
              letter, and those after it go on. A receiver that cannot be reached, or answers 429, 502, 503 or 504, refuses
              nothing. Default: an event is tried for as long as it takes, which is right where money is booked
  --state     file that holds the cursor of the only receiver; default one for each receiver in DATA_DIR, else in this folder
  --url       address of the graph; default that of the gateway on this machine, from HOST and PORT

  status      what each receiver of DATA_DIR has not taken: the event that is being tried, and dead letters; and since when the
              gateway or the token fails, or the command has ended for this receiver
  retry       has the running command try these events of a receiver, or all that status shows: the one that it is at within
              half a second, dead letters before it reads on. RECEIVER is its address, or its id as status prints it

Examples:

  pasarela events forward --to https://ledger.example.mx/hook --types MONEY_IN --from oldest
  pasarela events forward --to https://push.example.mx/events --types CEP --schedule 10s,1m,10m,1h
  pasarela events forward --to file:///var/lib/pasarela/events
  pasarela events forward status --json | jq '.[].letters'

The token is that of PASARELA_TOKEN; or of PASARELA_TOKEN_FILE, which is read each time; or what PASARELA_TOKEN_COMMAND prints; or
issued by PASARELA_TOKEN_URL for PASARELA_TOKEN_CLIENT_ID and PASARELA_TOKEN_CLIENT_SECRET (OAuth 2.0 client credentials).
The last two are fetched again before they end, and whenever one is refused.

Exit codes: 0 done, or ended by a signal; 1 the gateway cannot be asked, events are missing, or there is nothing to retry;
2 the command line is not understood.`;

/** `pasarela events forward` and its two commands for operators. */
export async function runForward(args: readonly string[]): Promise<ExitCode> {
  const [verb, ...rest] = args;
  if (verb === 'status') return status(rest);
  if (verb === 'retry') return retry(rest);
  return run(args);
}

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readArguments(args, {
    to: { type: 'string', multiple: true },
    types: { type: 'string' },
    from: { type: 'string' },
    schedule: { type: 'string' },
    state: { type: 'string' },
    url: { type: 'string' },
  });
  refuseArguments(positionals);
  const addresses = [...new Set(values.to ?? [''])];
  if (addresses.length > 1 && values.state !== undefined) {
    throw new UsageError('--state holds the place of one receiver, and --to names several');
  }
  const { FORWARD_SECRET, DATA_DIR = '.' } = readEnvironment();
  if (FORWARD_SECRET === undefined && addresses.some((to) => /^https?:/.test(to))) {
    throw new CommandError('FORWARD_SECRET is not set: the receiver tells by it that events are from here.');
  }
  const schedule = values.schedule === undefined ? undefined : values.schedule.split(',').map(readPause);
  const types = readTypes(values.types);
  const receivers = addresses.map((to) => receiverAt(to, FORWARD_SECRET?.reveal()));
  const graph = graphAt(values.url);
  const given = new Set(receivers.map(({ id }) => stateFileOf(DATA_DIR, id)));
  const formerFiles =
    values.state === undefined ? cursorFilesIn(DATA_DIR).filter((file) => !given.has(file)) : [];
  const stop = new AbortController();
  onToldToEnd(() => stop.abort());
  const ended = receivers.map(async (receiver) => {
    const stateFile = values.state ?? stateFileOf(DATA_DIR, receiver.id);
    let letters: Letters | undefined;
    try {
      letters = new Letters(lettersFileOf(DATA_DIR, receiver.id), receiver.shownAs);
      const from = values.from ?? null;
      await forward({ graph, types, receiver, letters, schedule, from, stateFile, formerFiles }, stop.signal);
      return true;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      tellEnd(error, stateFile);
      letters?.tell(error.message.split('\n', 1)[0] ?? '', true);
      return false;
    } finally {
      letters?.close();
    }
  });
  const isDone = (await Promise.all(ended)).every((ending) => ending);
  // `exit`, because the subscription may still be open.
  process.exit(isDone ? EXIT.done : EXIT.wrong);
}

function tellEnd(error: CommandError, stateFile: string): void {
  const again = error.message.replace('--after', '--from');
  const isPlace = error instanceof GraphError && ['EVENTS_GAP', 'CURSOR_INVALID'].includes(error.code);
  remark(isPlace ? `${again}\nDelete ${stateFile} first: the cursor in it counts.` : again);
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** Returns a pause such as `30s`, `10m` or `1h` in milliseconds. */
function readPause(text: string): number {
  const [, number, unit = ''] = /^\s*(\d{1,6})([smh])\s*$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (number === undefined || factor === undefined) {
    throw new UsageError(`--schedule got "${text}", wants pauses such as 10s,1m,10m,1h`);
  }
  return Number(number) * factor;
}

const LETTERS_FILE = /^forward-([0-9a-f]{12})\.sqlite$/;

function status(args: readonly string[]): ExitCode {
  const { values, positionals } = readArguments(args, { json: { type: 'boolean' } });
  refuseArguments(positionals);
  const { DATA_DIR = '.' } = readEnvironment();
  const found = idsIn(DATA_DIR).map((id) => {
    const letters = new Letters(lettersFileOf(DATA_DIR, id));
    try {
      const { shownAs: to, trouble } = letters;
      return { receiver: id, to, cursor: cursorOf(DATA_DIR, id), trouble, letters: letters.all() };
    } finally {
      letters.close();
    }
  });
  if (values.json === true) {
    print(
      JSON.stringify(
        found.map(({ trouble = null, ...one }) => ({
          ...one,
          trouble: trouble && { ...trouble, since: instant(trouble.since) },
          letters: one.letters.map(shown),
        })),
        undefined,
        2,
      ),
    );
    return EXIT.done;
  }
  if (found.length === 0) print(`No receiver is known in ${DATA_DIR}.`);
  for (const { receiver, to, cursor, trouble, letters } of found) {
    const dead = letters.filter(({ isDead }) => isDead).length;
    print(printableLine(`${receiver}  ${to}  after ${cursor ?? '(--state)'}  dead letters: ${dead}`));
    if (trouble !== undefined) print(printableLine(`  ${troubleLine(trouble)}`));
    for (const letter of letters) print(printableLine(`  ${lineOf(letter)}`));
  }
  return EXIT.done;
}

const CURSOR_FILE = /^forward-[0-9a-f]{12}\.cursor$/;

/** Returns the files with places of receivers; none where the folder is not there yet. */
const cursorFilesIn = (folder: string): readonly string[] =>
  existsSync(folder)
    ? namesIn(folder)
        .filter((name) => CURSOR_FILE.test(name))
        .map((name) => join(folder, name))
    : [];

const idsIn = (folder: string): readonly string[] =>
  namesIn(folder).flatMap((name) => LETTERS_FILE.exec(name)?.[1] ?? []);

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    throw new CommandError(`${folder} cannot be read: ${String(cause)}`, { cause });
  }
}

const cursorOf = (folder: string, id: string): string | undefined =>
  new CursorFile(stateFileOf(folder, id)).cursor;

const shown = ({ event, firstAt, lastAt, nextAt, ...rest }: Letter) => ({
  id: event.id,
  type: event.type,
  cursor: event.cursor,
  ...rest,
  firstAt: instant(firstAt),
  lastAt: instant(lastAt),
  nextAt: nextAt === null ? null : instant(nextAt),
});

const instant = (milliseconds: number): string => new Date(milliseconds).toISOString();

const troubleLine = ({ since, problem, hasEnded }: Trouble): string =>
  `${hasEnded ? 'ended' : 'tries'} since ${instant(since)}: ${problem}`;

function lineOf({ event, attempts, lastAt, nextAt, problem, isDead, isWanted }: Letter): string {
  const what = isDead ? 'dead' : 'tried';
  const next = nextAt === null ? '' : `, next ${instant(nextAt)}`;
  const wanted = isWanted ? ', to be retried' : '';
  return `${what.padEnd(6)}${event.id}  ${event.type}  ${attempts} attempts, last ${instant(lastAt)}${next}${wanted}: ${problem}`;
}

function retry(args: readonly string[]): ExitCode {
  const { positionals } = readArguments(args, {});
  const [receiver, ...eventIds] = positionals;
  if (receiver === undefined) throw new UsageError('retry wants the address or the id of a receiver');
  const { DATA_DIR = '.' } = readEnvironment();
  const id = [receiver, receiverId(receiver)].find((candidate) => idsIn(DATA_DIR).includes(candidate));
  if (id === undefined)
    throw new CommandError(`${join(DATA_DIR, 'forward-….sqlite')}: no such receiver is known.`);
  const letters = new Letters(lettersFileOf(DATA_DIR, id));
  try {
    const count = letters.want(eventIds.length === 0 ? undefined : eventIds);
    if (count === 0)
      throw new CommandError('There is no such event to retry: see pasarela events forward status.');
    print(
      `${count} event${count === 1 ? '' : 's'} to be tried again, by the command that forwards to ${letters.shownAs}.`,
    );
    return EXIT.done;
  } finally {
    letters.close();
  }
}
