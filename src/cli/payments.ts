import { readEnvironment } from '../app/config.ts';
import type { Variables } from '../app/variables.ts';
import { silentLogger } from '../common/logger.ts';
import { openMoneyRecords } from '../money/open.ts';
import { type Hold, type MoneyRecords, StoreUnavailableError } from '../money/record.ts';
import { type Command, CommandError, EXIT, print, readArguments, UsageError } from './command.ts';

/** Tells whether payments are held, and lets them go on. */
export const payments: Command = {
  help: `Usage: pasarela payments status
       pasarela payments resume

The record of payments keeps one key from paying twice. Where the gateway notices that it has been put back to an earlier state
(a backup, a Redis that was flushed, a folder that was moved), it holds all payments: a key of the time between would pay again.

  status   whether payments are held, since when, and how many at least are missing from the record
  resume   lets payments go on. Before that, compare the transactions of the time between with what callers hold

Both read REDIS_URL and DATA_DIR, as the gateway has them, and run beside it. It goes on within ten seconds.

Exit codes: 0 payments are not held, or go on; 1 they are held, or the record cannot be reached; 2 the command line is not
understood.`,
  async run(args) {
    const { positionals } = readArguments(args, {});
    const [what, ...others] = positionals;
    if ((what !== 'status' && what !== 'resume') || others.length > 0) {
      throw new UsageError('wants "status" or "resume"');
    }
    const records = await open(readEnvironment());
    try {
      const hold = await records.held();
      if (hold === undefined) {
        print('Payments are not held.');
        return EXIT.done;
      }
      print(textOf(hold));
      if (what === 'status') return EXIT.wrong;
      await records.resume();
      print('They go on.');
      return EXIT.done;
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      throw new CommandError(error.message, { cause: error });
    } finally {
      await records.stop();
    }
  },
};

function open({ REDIS_URL, DATA_DIR, UPSTREAM_URL }: Variables): Promise<MoneyRecords> {
  if (DATA_DIR === undefined && UPSTREAM_URL === undefined && REDIS_URL === undefined) {
    throw new CommandError(
      'The embedded sandbox keeps its record in a temporary folder: there is none to look at.',
    );
  }
  const redisUrl = REDIS_URL?.reveal();
  return openMoneyRecords({ redisUrl, dataDir: DATA_DIR ?? './data', logger: silentLogger });
}

const textOf = ({ since, missing }: Hold): string =>
  `Payments have been held since ${new Date(since).toISOString()}. Missing from the record: ${
    missing === 0 ? 'an unknown number' : `${missing} or more`
  }.`;
