import type { DatabaseSync } from 'node:sqlite';

/**
 * Runs work in one transaction, which locks out other processes from the first read on, and is synced once.
 *
 * @throws what the work or SQLite throws; the work is rolled back then
 */
export const transaction = <T>(database: DatabaseSync, work: () => T): T =>
  within(database, 'BEGIN IMMEDIATE', work);

/**
 * Runs work that only reads, and sees the database as it is at its first read. It locks out nobody, and waits for nobody who writes.
 *
 * @throws what the work or SQLite throws
 */
export const snapshot = <T>(database: DatabaseSync, work: () => T): T => within(database, 'BEGIN', work);

function within<T>(database: DatabaseSync, begin: string, work: () => T): T {
  try {
    database.exec(begin);
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
    // SQLite itself ends the transaction on some errors, such as a full disk. Then there is nothing to roll back.
    if (database.isOpen && database.isTransaction) database.exec('ROLLBACK');
  } catch {
    // The caller gets the error of the work, not of the rollback.
  }
}
