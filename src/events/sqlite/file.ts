import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { disk } from '../../common/disk.ts';
import { makePrivate } from '../../common/private-file.ts';

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/**
 * Opens a database that is synced at every commit and locked to this process while it is open. Returns undefined if another
 * process has it. The lock is the operating system's, so it ends with the process, however that ends.
 *
 * @throws when the file cannot be made or read
 */
export function openExclusive(path: string, schema: string): DatabaseSync | undefined {
  makePrivate(path);
  const database = disk.open(path);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    // The first write takes the lock. One transaction for all tables is synced once.
    database.exec(`BEGIN EXCLUSIVE; ${schema} COMMIT;`);
    return database;
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

/** Whether SQLite has thrown this because the file is damaged. */
export function isCorruption(error: unknown): boolean {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return false;
  // The lowest byte of an extended code is the code itself.
  const code = error.errcode % 256;
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** The schema's part of `probe`. */
export const PROBE_SCHEMA = 'CREATE TABLE IF NOT EXISTS probes (filler BLOB NOT NULL) STRICT;';
/** The size of the largest delivery (`ingress/body.ts`) with what is kept beside it. */
export const PROBE_BYTES = 72 * 1024;

/**
 * Writes as much as an event may take, in the caller's transaction. The bytes differ each time: SQLite does not write a page
 * that has not changed, so a failing disk would not be noticed.
 *
 * @throws when it cannot be written
 */
export function probe(database: DatabaseSync): void {
  database.exec(`INSERT OR REPLACE INTO probes (rowid, filler) VALUES (1, randomblob(${PROBE_BYTES}))`);
}

/** Returns the value of a column that the schema declares TEXT NOT NULL. */
export function text(value: SQLOutputValue | undefined): string {
  if (typeof value !== 'string') throw new TypeError(`a text column was read as ${typeof value}`);
  return value;
}

/** Returns the value of a column that the schema declares INTEGER NOT NULL. */
export function integer(value: SQLOutputValue | undefined): number {
  if (typeof value !== 'number') throw new TypeError(`an integer column was read as ${typeof value}`);
  return value;
}
