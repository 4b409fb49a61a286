import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { clock } from './clock.ts';

/** A `now` writes the clock where this much has passed since the last one, in milliseconds. A process that is killed loses what has passed since then. */
const STEP_MS = 1000;

/**
 * A clock that a database keeps, for what must not end early: leases, and how long something is remembered. It advances while
 * a process has the database open, by the processor's own clock, and never by the clock of the machine, which an operator or
 * NTP may set. So it never runs fast: what is kept for 7 days is kept for 7 days at least, and longer by the time in which no
 * process ran. It begins with the time of the machine, and holds milliseconds.
 *
 * Processes that share the database share the clock; what it shows them differs by up to a second.
 */
export class RunningClock {
  readonly #monotonic: () => number;
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  /** The clock's time when `#monotonic` showed `#since`. */
  #base: number;
  #since: number;

  /**
   * @param now milliseconds since 1970, for a database that has no clock yet
   * @param monotonic milliseconds since any moment, never set
   */
  constructor(
    database: DatabaseSync,
    now: () => number = () => clock.now(),
    monotonic: () => number = () => clock.monotonic(),
  ) {
    database.exec('CREATE TABLE IF NOT EXISTS clock (milliseconds INTEGER NOT NULL) STRICT');
    database
      .prepare('INSERT INTO clock (rowid, milliseconds) VALUES (1, ?) ON CONFLICT DO NOTHING')
      .run(Math.trunc(now()));
    this.#monotonic = monotonic;
    this.#read = database.prepare('SELECT milliseconds FROM clock');
    this.#write = database.prepare('UPDATE clock SET milliseconds = ?');
    this.#base = this.#stored();
    this.#since = monotonic();
  }

  /** Returns the time. To be called within a transaction that writes. */
  now(): number {
    const { stored, time } = this.#look();
    if (time - stored >= STEP_MS) this.#write.run(time);
    return time;
  }

  /** Returns the time for what only reads. */
  peek(): number {
    return this.#look().time;
  }

  #look(): { readonly stored: number; readonly time: number } {
    const stored = this.#stored();
    const monotonic = this.#monotonic();
    const own = this.#base + Math.trunc(monotonic - this.#since);
    if (stored <= own) return { stored, time: own };
    this.#base = stored;
    this.#since = monotonic;
    return { stored, time: stored };
  }

  #stored(): number {
    return Number(this.#read.get()?.['milliseconds']);
  }
}
