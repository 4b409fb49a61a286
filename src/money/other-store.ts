import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { clock } from '../common/clock.ts';
import { type MoneyOptions, sqliteRecordsIn } from './open-money.ts';
import { RETENTION_MS } from './record.ts';
import { MARKS } from './redis/marks.ts';

/** How long a file is waited for that another process has locked, as a gateway does for a moment that is ending, in ms. */
const BUSY_TIMEOUT_MS = 2_000;
/** SQLite's codes for a file without the table (SQLITE_ERROR), and for one that is no database (SQLITE_NOTADB). */
const WITHOUT_PAYMENTS: readonly unknown[] = [1, 26];

/** Returns the path of the file by which {@link otherStoreIn} finds payments in the other store, also where there is none. */
export const otherStoreFile = ({ redisUrl, dataDir }: Pick<MoneyOptions, 'redisUrl' | 'dataDir'>): string =>
  redisUrl === undefined ? join(dataDir, MARKS) : sqliteRecordsIn(dataDir);

/**
 * Finds payments whose records are still kept, and that the folder's earlier gateway has recorded in the other kind of store: in a file where
 * these options name a Redis, in Redis where they name none. The store that the options name knows none of their keys, so a
 * payment that is sent again would be made again.
 *
 * @returns the path of the file that shows it; undefined if there is none, or if that is no record of payments
 * @throws what SQLite or the operating system throws where the file cannot be read: it may show payments
 */
export async function otherStoreIn(
  options: Pick<MoneyOptions, 'redisUrl' | 'dataDir'>,
): Promise<string | undefined> {
  const since = clock.now() - RETENTION_MS;
  const path = otherStoreFile(options);
  if (options.redisUrl === undefined) {
    const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    return written !== undefined && written > since ? path : undefined;
  }
  return existsSync(path) && (await hasSent(path, since)) ? path : undefined;
}

async function hasSent(path: string, since: number): Promise<boolean> {
  const { DatabaseSync } = await import('node:sqlite');
  try {
    using db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    return db.prepare('SELECT 1 FROM intent WHERE sent_at > ? LIMIT 1').get(since) !== undefined;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && WITHOUT_PAYMENTS.includes(error.errcode))
      return false;
    throw error;
  }
}
