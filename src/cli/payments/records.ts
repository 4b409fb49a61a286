import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { readEnvironment } from '../../app/config.ts';
import { silentLogger } from '../../common/logger.ts';
import { rootReason } from '../../common/root-reason.ts';
import { openMoneyRecords, sqliteRecordsIn } from '../../money/open-money.ts';
import { otherStoreIn } from '../../money/other-store.ts';
import { type MoneyRecords, RecordsUnavailableError } from '../../money/record.ts';
import { CommandError, remark } from '../command.ts';

/** How long the command waits for a gateway that is writing, in ms. The command serves no callers, so it may block. */
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Opens the record of payments that REDIS_URL and DATA_DIR name, beside a running gateway, and closes it afterwards.
 *
 * @throws CommandError if there is none, or if it cannot be reached
 */
export async function withRecords<T>(work: (records: MoneyRecords) => Promise<T>): Promise<T> {
  const { REDIS_URL, DATA_DIR, UPSTREAM_URL } = readEnvironment();
  if (DATA_DIR === undefined && UPSTREAM_URL === undefined && REDIS_URL === undefined) {
    throw new CommandError(
      'The embedded sandbox keeps its record in a temporary folder: there is none to look at.',
    );
  }
  const redisUrl = REDIS_URL?.reveal();
  const dataDir = DATA_DIR ?? './data';
  // A record that is made here would belong to no gateway: payments that were stopped in it would go on.
  if (redisUrl === undefined && !isThere(sqliteRecordsIn(dataDir))) {
    throw new CommandError(
      `There is no record of payments in ${resolve(dataDir)}. Run this with the DATA_DIR or REDIS_URL of the gateway.`,
    );
  }
  // What is stopped there would go on in Redis.
  const marks = redisUrl === undefined ? await otherStoreIn({ redisUrl, dataDir }) : undefined;
  if (marks !== undefined) {
    throw new CommandError(
      `REDIS_URL is not set, and ${resolve(marks)} says that the gateway of this folder has its payments in Redis. Run this with the REDIS_URL of the gateway.`,
    );
  }
  const options = {
    redisUrl,
    dataDir,
    logger: silentLogger,
    busyTimeoutMs: BUSY_TIMEOUT_MS,
    isCommand: true,
  };
  const records = await openMoneyRecords(options).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`The record of payments cannot be opened: ${why}`, { cause });
  });
  try {
    const done = await work(records);
    if (await isEmpty(records)) remark(EMPTY);
    return done;
  } catch (error) {
    if (!(error instanceof RecordsUnavailableError)) throw error;
    throw new CommandError(error.message, { cause: error });
  } finally {
    await records.stop();
  }
}

/** @throws CommandError if that cannot be seen, as by another user than the gateway's */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new CommandError(
      `The record of payments cannot be opened: ${rootReason(cause)}. Run this as the user of the gateway.`,
      { cause },
    );
  }
}

/** A Redis of another environment, or another database of one, takes a stop as the gateway's own does. */
const EMPTY =
  'This record has no payment. If the gateway has made one, this is not its record: what is told here, stopped or resumed is not that of its payments. Run this with the REDIS_URL or DATA_DIR of the gateway.';

/** False also where it cannot be read: the command has said what it could do. */
const isEmpty = (records: MoneyRecords): Promise<boolean> =>
  records.clients().then(
    ({ length }) => length === 0,
    () => false,
  );

/** Returns the named client, or all clients with a journal. @throws CommandError if there is none of that name */
export async function clientsMeant(
  records: MoneyRecords,
  named: string | undefined,
): Promise<readonly string[]> {
  const clients = [...(await records.journal.clients())].sort();
  if (named === undefined) return clients;
  if (clients.includes(named)) return [named];
  throw new CommandError(`The journal has no client "${named}".`);
}
