import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readEnvironment } from '../app/config.ts';
import { onToldToEnd } from '../app/lifecycle.ts';
import { clock } from '../common/clock.ts';
import { disk } from '../common/disk.ts';
import type { Difference } from '../money/reconciling/compare.ts';
import { signedPesos } from '../money/reconciling/movements.ts';
import { firstReadings, nextReadings, type Readings, readReadings } from '../money/reconciling/readings.ts';
import { RETENTION_DAYS, RETENTION_MS } from '../money/record.ts';
import {
  type Command,
  CommandError,
  EXIT,
  failWithoutReader,
  printable,
  readArguments,
  refuseArguments,
  remark,
  syncOut,
  UsageError,
} from './command.ts';
import { rest } from './forward/attempts.ts';
import { GatewayAwayError, type GraphClient, GraphError } from './graph.ts';
import { graphAt, isFinal } from './graph-options.ts';
import { write, written } from './payments/write.ts';
import { atOnce, gatherMovements, lookAtBalances, openPayments } from './reconcile/gather.ts';

const OPTIONS = {
  url: { type: 'string' },
  state: { type: 'string' },
  margin: { type: 'string' },
  every: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** The longest pause between two readings, in ms. A timer takes 24 days at most, and rings at once for more. */
const LONGEST_MS = 24 * 60 * 60 * 1_000;

/** Compares balances with what the gateway knows to have moved. */
export const reconcile: Command = {
  help: `Usage: pasarela reconcile [--url URL] [--state FILE] [--margin SECONDS] [--every SECONDS] [--json]

Reads the balances of all accounts, and compares their change since the last times with the credits and payments that the gateway
knows. It tells a difference that two readings after one another show: account, amount, between when, and what would explain it. It
repairs nothing. The first two runs only read; run it every hour or so, from a timer or with --every. It is no answer to what became
of one payment: a payment of unknown outcome may be in a balance or not, so that neither is a difference. A run by hand beside a timer
needs a --state of its own: on the same file it takes the reading that the timer would compare with.

  --url      address of the graph; that of the gateway of this environment where it is left out
  --state    file that keeps the readings; reconcile.json in DATA_DIR where it is left out
  --margin   by how many seconds the clocks of the gateway and of the service may differ, with the way between; 5. So long, and 5 s
             at most, a reading waits before it asks for the balances; longer where the gateway shows some that it has kept
  --every    goes on until Ctrl-C, reading so often, a day apart at most; where the gateway is away, or no token can be had, it tries again the next time
  --json     one difference a line, for machines

  pasarela reconcile --every 3600 --json >> differences.jsonl

PASARELA_TOKEN (or another way to have a token: docs/configuration.md) needs graph:read, events:read and payments:read, of a caller
that sees the whole client. What it cannot see is in docs/operations.md, "Is anything missing?".

Exit codes: 0 nothing is missing as far as it sees, which says nothing of an unknown payment, or it was one of the first two runs;
1 a difference, or the gateway cannot be asked; 2 the command line is not understood.`,
  async run(args) {
    const { values, positionals } = readArguments(args, OPTIONS);
    refuseArguments(positionals);
    failWithoutReader();
    const { DATA_DIR } = readEnvironment();
    const graph = graphAt(values.url);
    const path = values.state ?? join(DATA_DIR ?? './data', 'reconcile.json');
    const marginMs = secondsOf('--margin', values.margin ?? '5') * 1_000;
    const once = (): Promise<number> =>
      reconcileOnce(graph, path, marginMs, (...told) =>
        write(`${printable(values.json === true ? jsonOf(...told) : textOf(...told))}\n`),
      );
    if (values.every === undefined) return (await once()) === 0 ? EXIT.done : EXIT.wrong;
    const everyMs = secondsOf('--every', values.every) * 1_000;
    if (everyMs < 1_000 || everyMs > LONGEST_MS)
      throw new UsageError(`--every wants a second at least, and a day at most, and got "${values.every}"`);
    return (await reconcileEvery(everyMs, graph, once)) === 0 ? EXIT.done : EXIT.wrong;
  },
};

/**
 * Goes on until a signal. Where the gateway is away, or no token can be had, it tries again at the next time.
 *
 * @returns how many differences were told, or readings failed
 * @throws CommandError where asking again would be in vain
 */
async function reconcileEvery(
  everyMs: number,
  graph: GraphClient,
  once: () => Promise<number>,
): Promise<number> {
  const ending = new AbortController();
  onToldToEnd(() => ending.abort());
  let wrong = 0;
  while (!ending.signal.aborted) {
    try {
      wrong += await once();
    } catch (error) {
      const passes =
        error instanceof GatewayAwayError || (error instanceof GraphError && !isFinal(graph, error.code));
      if (!passes) throw error;
      remark(`${error.message} The next reading is tried all the same.`);
      wrong += 1;
    }
    await rest(everyMs, ending.signal);
  }
  return wrong;
}

/**
 * One reading, compared with those that the file keeps. A difference is told before the reading is kept: where a process dies in between,
 * the machine loses its power, or what it tells cannot be written, as on a full disk or where nobody reads it, the next run tells it again.
 *
 * @returns how many differences were told
 */
async function reconcileOnce(
  graph: GraphClient,
  path: string,
  marginMs: number,
  tell: (difference: Difference, amountUnknown: readonly string[]) => Promise<void>,
): Promise<number> {
  const kept = readState(path);
  if (kept === undefined) {
    const open = await openPayments(graph);
    await writeState(path, firstReadings(await lookAtBalances(graph, marginMs), open));
    return 0;
  }
  if (clock.now() - kept.baseline.from > RETENTION_MS) {
    throw new CommandError(
      `The readings in ${path} are of ${timeOf(kept.baseline.from)}, and the gateway no longer knows all payments since: it keeps them for ${RETENTION_DAYS} days. Delete it to begin anew.`,
    );
  }
  const look = await lookAtBalances(graph, marginMs);
  const gathered = await gatherMovements(graph, look.accounts, kept, marginMs).catch((cause: unknown) => {
    throw cause instanceof GraphError && NO_PLACE.includes(cause.code) ? placeless(cause, path) : cause;
  });
  const { readings, differences } = await nextReadings(kept, look, gathered, marginMs, atOnce);
  const { amountUnknown } = gathered;
  if (amountUnknown.length > 0)
    remark(`Payments that may have moved, amount unknown: ${amountUnknown.join(', ')}.`);
  for (const difference of differences) await tell(difference, amountUnknown);
  // That nobody reads is known only once the pipe has answered. It ends the process before the reading is kept.
  await written();
  await syncOut();
  await writeState(path, readings);
  return differences.length;
}

/** Codes of a place in the log from which on it no longer has all events, or which is none of it. */
const NO_PLACE: readonly string[] = ['EVENTS_GAP', 'CURSOR_INVALID'];

/** Without the advice of other commands, which take the place as an option. */
const placeless = (cause: GraphError, path: string): CommandError =>
  new CommandError(`${cause.message.split('\n', 1)[0]} Delete ${path} to begin anew.`, { cause });

function readState(path: string): Readings | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined;
    throw new CommandError(`${path} cannot be read: ${String(cause)}`, { cause });
  }
  try {
    return readReadings(JSON.parse(text));
  } catch (cause) {
    throw new CommandError(`${path} holds no readings of this command. Delete it to begin anew.`, { cause });
  }
}

async function writeState(path: string, state: Readings): Promise<void> {
  try {
    await disk.replace(path, JSON.stringify(state));
  } catch (cause) {
    throw new CommandError(`The readings cannot be saved in ${path}: ${String(cause)}`, { cause });
  }
}

function secondsOf(option: string, text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new UsageError(`${option} wants seconds, and got "${text}"`);
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

const textOf = ({ account, cents, from, to }: Difference, amountUnknown: readonly string[]): string => {
  const why =
    cents > 0
      ? 'a credit whose webhook never came, or a payment that the other bank has sent back'
      : 'a payment or a refund that was made elsewhere, a fee, or a chargeback';
  const own = amountUnknown.length === 0 ? '' : ', or by a payment of this gateway whose amount is unknown';
  return `Account ${account}: ${signedPesos(cents)} MXN between ${timeOf(from)} and ${timeOf(to)} that the gateway does not know. It would be explained by ${why}${own}.`;
};

const jsonOf = ({ account, cents, from, to }: Difference, amountUnknown: readonly string[]): string =>
  JSON.stringify({
    account,
    amount: signedPesos(cents),
    currency: 'MXN',
    from: timeOf(from),
    to: timeOf(to),
    amountUnknown,
  });
