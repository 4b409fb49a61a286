import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';

const SQLITE_BUSY = 5;

/**
 * Opens a database that is synced at every commit and locked to this process while open, or undefined when another
 * process has it. The lock is the operating system's: it ends with the process, however that ends.
 *
 * @throws when the file cannot be made or read
 */
export function openExclusive(path: string, schema: string): DatabaseSync | undefined {
  makePrivate(path);
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    // The lock is taken by the first write.
    database.exec('BEGIN EXCLUSIVE; COMMIT;');
    database.exec(schema);
    return database;
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

/** Makes a file, where there is none, that only this user can read: events tell of people. SQLite's own beside it follow. */
export function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
}

/** A column that the schema declares TEXT NOT NULL. */
export function text(value: SQLOutputValue | undefined): string {
  if (typeof value !== 'string') throw new TypeError(`a text column was read as ${typeof value}`);
  return value;
}

/** A column that the schema declares INTEGER NOT NULL. */
export function integer(value: SQLOutputValue | undefined): number {
  if (typeof value !== 'number') throw new TypeError(`an integer column was read as ${typeof value}`);
  return value;
}
