import type { DatabaseSync } from 'node:sqlite';

/**
 * Runs work in one transaction. It locks out other processes from the first read on, and is synced once.
 *
 * @throws what the work or SQLite throws; nothing of the work is kept then
 */
export function transaction<T>(database: DatabaseSync, work: () => T): T {
  try {
    database.exec('BEGIN IMMEDIATE');
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function rollBack(database: DatabaseSync): void {
  try {
    // SQLite itself ends the transaction on some errors, a full disk among them; then there is nothing to roll back.
    if (database.isOpen && database.isTransaction) database.exec('ROLLBACK');
  } catch {
    // The cause is what the caller is told of.
  }
}
