import type { DatabaseSync } from 'node:sqlite';
import { MARK } from '../search.ts';

/**
 * `names` leads from a digest to the events that have the name. `blocks` holds, for 256 positions in a row, when the earliest
 * and the latest of their events was received, and how many bytes they take. `entered` holds the position up to which a
 * client's events are in both. `gone` holds, of trimmed events, up to which position they reach, and when the latest of them
 * was received.
 */
const INDEX_SCHEMA = `
  CREATE TABLE IF NOT EXISTS names (
    name TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (name, position)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS blocks (
    client TEXT NOT NULL, block INTEGER NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL,
    bytes INTEGER NOT NULL, PRIMARY KEY (client, block)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS gone (
    client TEXT PRIMARY KEY, position INTEGER NOT NULL, latest INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS entered (client TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/** A condition on a row of `events`: an earlier version wrote fewer of its names, or none. */
export const LACKS_NAMES = `(received IS NULL OR digests IS NULL OR substr(digests, 1, 1) <> '${MARK}')`;

/** An index of those rows. An earlier version keeps it up to date, as it does every index of the file. */
const LACKING_SCHEMA = `
  CREATE INDEX IF NOT EXISTS events_lacking_names ON events (client, position) WHERE ${LACKS_NAMES};
`;

/**
 * Takes over the index of an earlier version, or makes one. An index that does not say how far it goes, or that lacks names,
 * is made again.
 */
export function adaptIndex(database: DatabaseSync): void {
  database.exec(LACKING_SCHEMA);
  const isThere = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'entered'").get() !== undefined;
  if (!isThere || holdsUnnamed(database)) {
    database.exec(`
      DROP TABLE IF EXISTS names; DROP TABLE IF EXISTS blocks; DROP TABLE IF EXISTS entered;
      DROP INDEX IF EXISTS events_unindexed;`);
  }
  database.exec(INDEX_SCHEMA);
  // An earlier version has entered the mark as if it were a name.
  database.prepare('DELETE FROM names WHERE name = ?').run(MARK);
}

/** True if an event was entered without all of its names. */
const holdsUnnamed = (database: DatabaseSync): boolean =>
  database
    .prepare(
      `SELECT 1 FROM entered WHERE EXISTS (
         SELECT 1 FROM events WHERE client = entered.client AND events.position <= entered.position AND ${LACKS_NAMES})`,
    )
    .get() !== undefined;
