import { type Hold, type MoneyRecords, PaymentsHeldError } from '../money/record.ts';
import {
  type Command,
  CommandError,
  EXIT,
  notAVerb,
  outliveReader,
  print,
  readArguments,
  refuseArguments,
} from './command.ts';
import { exportJournal } from './payments/export.ts';
import { PAYMENTS_HELP, PAYMENTS_HELP_ON } from './payments/help.ts';
import { holdText } from './payments/hold-text.ts';
import { listPayments } from './payments/list.ts';
import { withRecords } from './payments/records.ts';
import { settlePayment } from './payments/settle.ts';
import { showPayment } from './payments/show.ts';
import { verifyPayments } from './payments/verify.ts';

const RESUME_OPTIONS = { 'put-back': { type: 'boolean' } } as const;
const COMPARE_FIRST =
  'Nothing is changed: a key of a payment that is missing from the record pays again once payments go on. Compare the transactions since the time that pasarela payments status prints with what callers hold, have callers drop the keys of payments that were made, then run pasarela payments resume --put-back (docs/redis.md, "When a record was put back").';

/** What these print is all that they are run for: they end once nobody reads it. */
const PIPED: readonly string[] = ['list', 'show', 'export'];
const VERBS = ['status', 'stop', 'resume', 'list', 'show', 'settle', 'export', 'verify'];

/** Shows the payments of the record and its journal, makes gateways settle one, and stops all payments or lets them go on. */
export const payments: Command = {
  help: PAYMENTS_HELP,
  helpOn: PAYMENTS_HELP_ON,
  async run(args) {
    const [what, ...rest] = args;
    if (!PIPED.includes(String(what))) outliveReader();
    if (what === 'export') return exportJournal(rest);
    if (what === 'verify') return verifyPayments(rest);
    if (what === 'list') return listPayments(rest);
    if (what === 'show') return showPayment(rest);
    if (what === 'settle') return settlePayment(rest);
    if (what !== 'status' && what !== 'stop' && what !== 'resume') {
      throw notAVerb(what, VERBS);
    }
    const { values, positionals } = readArguments(rest, what === 'resume' ? RESUME_OPTIONS : {});
    const isCompared = 'put-back' in values && values['put-back'] === true;
    refuseArguments(positionals);
    return withRecords(async (records) => {
      if (what === 'stop') await stop(records);
      let holds = await records.held();
      let isRefused = false;
      try {
        // Also where none is told: a stop or a resumption that did not reach everything may have left some clients stopped.
        if (what === 'resume') isRefused = !(await goesOn(records, isCompared));
        // What was read before may not tell of it.
        if (isRefused) holds = await records.held();
      } finally {
        if (holds.length === 0) print('Payments are not held.');
        for (const hold of holds) print(holdText(hold));
      }
      // Somebody may have let them go on meanwhile.
      if (what === 'stop') return isStopped(holds) ? EXIT.done : EXIT.wrong;
      if (what === 'status') return holds.length === 0 ? EXIT.done : EXIT.wrong;
      if (isRefused) throw new CommandError(COMPARE_FIRST);
      if (holds.length > 0) print('They go on.');
      return EXIT.done;
    });
  },
};

/** @returns false where nothing was changed, as the record was put back and nobody has compared it */
async function goesOn(records: MoneyRecords, isCompared: boolean): Promise<boolean> {
  try {
    await records.resume(isCompared);
    return true;
  } catch (error) {
    if (error instanceof PaymentsHeldError) return false;
    throw error;
  }
}

/** @throws {CommandError} if it is not certain that they are stopped, and stay so */
async function stop(records: MoneyRecords): Promise<void> {
  try {
    await records.holdPayments();
  } catch (cause) {
    const known = await records.held().catch(() => []);
    if (!isStopped(known)) throw partly(cause);
    const advice =
      'Not all of it is written: payments of some clients may go on for up to ten seconds, and a failover may forget the stop. Stop them again until this ends with 0; it cannot while /readyz tells of a replica that is away.';
    throw new CommandError([...known.map(holdText), advice].join(' '), { cause });
  }
}

/** The stop is not written where everybody reads it, and may stand in the ledgers of some clients all the same. */
function partly(cause: unknown): CommandError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const advice =
    'Payments are not stopped, or those of some clients alone: stop them again until this ends with 0, or run pasarela payments resume.';
  return new CommandError(`${why} ${advice}`, { cause });
}

const isStopped = (holds: readonly Hold[]): boolean => holds.some(({ why }) => why === 'stopped');
