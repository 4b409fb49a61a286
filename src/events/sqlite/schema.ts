import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { integer, text } from './file.ts';

/** Columns that files of an earlier version lack: the run of an event's position, that of the one before it, and what the index wants. */
const LATER_COLUMNS = [
  ['run', "TEXT NOT NULL DEFAULT ''"],
  ['prev_run', "TEXT NOT NULL DEFAULT ''"],
  ['received', 'INTEGER'],
  ['digests', 'TEXT'],
] as const;

/**
 * Takes over a file of an earlier version, in the caller's transaction. That version has to go on with the file afterwards: it names
 * the columns that it writes of `events`, and not those of `seen`. So the one may have more columns, each with a default, and
 * the other none.
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
 * Links what an earlier version has appended since this one was here: it knows no runs, so that its first event of each client names
 * none as that of the event before it.
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

/** An index that does not go up to what an earlier version has appended holds what it has trimmed, too. It is made once more. */
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
