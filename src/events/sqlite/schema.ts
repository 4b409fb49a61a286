import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { integer, text } from './file.ts';

/**
 * Columns that files of an earlier version lack: the run of an event's position, the run of the position before it, and the
 * values for the index.
 */
const LATER_COLUMNS = [
  ['run', "TEXT NOT NULL DEFAULT ''"],
  ['prev_run', "TEXT NOT NULL DEFAULT ''"],
  ['received', 'INTEGER'],
  ['digests', 'TEXT'],
] as const;

/**
 * Takes over a file of an earlier version, in the caller's transaction. That version must be able to go on with the file
 * afterwards. It names the columns that it writes of `events`, so `events` may have more columns, each with a default. It
 * does not name those of `seen`, so `seen` may have no more.
 */
export function adaptSchema(database: DatabaseSync): void {
  const has = database.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?');
  for (const [column, type] of LATER_COLUMNS) {
    if (has.get('events', column) === undefined)
      database.exec(`ALTER TABLE events ADD COLUMN ${column} ${type}`);
  }
  if (has.get('seen', 'run') !== undefined) database.exec('ALTER TABLE seen DROP COLUMN run');
  linkEarlier(database);
}

/**
 * Links events that an earlier version has appended since this version ran. That version knows no runs, so the first event of
 * each client names no run for the event before it.
 */
function linkEarlier(database: DatabaseSync): void {
  const newest = database.prepare(`
    SELECT newest.client AS client, position FROM
      (SELECT client, max(position) AS position FROM events GROUP BY client) AS newest
    JOIN events USING (client, position) WHERE run = ''`);
  const lastRun = database.prepare(
    "SELECT position, run FROM events WHERE client = ? AND run <> '' ORDER BY position DESC LIMIT 1",
  );
  const link = database.prepare('UPDATE events SET prev_run = ? WHERE client = ? AND position = ?');
  const clients = newest.all();
  for (const row of clients) {
    const client = text(row['client']);
    const last = lastRun.get(client);
    if (last !== undefined) link.run(text(last['run']), client, integer(last['position']) + 1);
  }
  forgetTrimmedIndex(database, clients);
}

/** Has the index of a client made again if an earlier version has appended or trimmed events without it. */
function forgetTrimmedIndex(
  database: DatabaseSync,
  newest: readonly Readonly<Record<string, SQLOutputValue>>[],
): void {
  if (database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'entered'").get() === undefined) return;
  const behind = database.prepare('SELECT 1 FROM entered WHERE client = ? AND position < ?');
  const isBehind = newest.some(
    (row) => behind.get(text(row['client']), integer(row['position'])) !== undefined,
  );
  if (isBehind) database.exec('DROP TABLE entered');
}
