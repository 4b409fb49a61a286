import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { clock } from '../../common/clock.ts';
import { transaction } from '../../common/sqlite-transaction.ts';

interface Job {
  work(): void;
  resolve(): void;
  reject(error: unknown): void;
}

const SQLITE_FULL = 13;

/** The file of a database, and the one that holds its last commits. */
const SUFFIXES = ['', '-wal'];

/**
 * Collects the writes of one turn of the event loop into one transaction. A synced commit costs the same for one write as for
 * a hundred, and blocks the loop while it lasts. If one fails, all of them are rolled back and rejected. Where the disk has no room
 * for all of them, each gets a transaction of its own, so that a small one does not fail for a large one. All are rejected where the
 * file was deleted, moved or replaced: SQLite would write on into a file without a name, which ends with the process.
 */
export class SqliteBatch {
  readonly #database: DatabaseSync;
  /** What identifies the files, by their paths. None of these inodes can be another file's while the database is open. */
  readonly #files = new Map<string, string>();
  #jobs: Job[] = [];

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.assertInPlace();
  }

  /** Resolves with what `work` returned once that is on disk. It may be called twice: what the first call wrote is rolled back then. */
  run<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let result: T;
      if (this.#jobs.length === 0) clock.setImmediate(() => this.#flush());
      this.#jobs.push({
        work: () => {
          result = work();
        },
        resolve: () => resolve(result),
        reject,
      });
    });
  }

  #flush(): void {
    const jobs = this.#jobs;
    this.#jobs = [];
    this.#commit(jobs);
  }

  #commit(jobs: readonly Job[]): void {
    try {
      this.assertInPlace();
      transaction(this.#database, () => {
        for (const job of jobs) job.work();
      });
    } catch (error) {
      if (jobs.length > 1 && isFull(error)) for (const job of jobs) this.#commit([job]);
      else for (const job of jobs) job.reject(error);
      return;
    }
    for (const job of jobs) job.resolve();
  }

  /** Throws where a file of the database was deleted, moved or replaced. */
  assertInPlace(): void {
    const path = this.#database.location();
    if (path === null) return;
    for (const file of SUFFIXES.map((suffix) => path + suffix)) {
      const found = statSync(file, { throwIfNoEntry: false });
      const now = found === undefined ? '' : `${found.dev} ${found.ino}`;
      if (now !== (this.#files.get(file) ?? now))
        throw new Error(
          `${file} was deleted, moved or replaced while this process had it open: put that file back, or start the gateway again`,
        );
      if (now !== '') this.#files.set(file, now);
    }
  }
}

const isFull = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && error.errcode === SQLITE_FULL;
