import type { DatabaseSync } from 'node:sqlite';
import { clock } from '../../common/clock.ts';
import { transaction } from '../../common/sqlite-transaction.ts';

interface Job {
  work(): void;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Collects the writes of one turn of the event loop into one transaction. A synced commit costs the same for one write as for
 * a hundred, and blocks the loop while it lasts. If one fails, all of them are rolled back and rejected.
 */
export class SqliteBatch {
  readonly #database: DatabaseSync;
  #jobs: Job[] = [];

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Resolves with what `work` returned once that is on disk. */
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
    try {
      transaction(this.#database, () => {
        for (const job of jobs) job.work();
      });
    } catch (error) {
      for (const job of jobs) job.reject(error);
      return;
    }
    for (const job of jobs) job.resolve();
  }
}
