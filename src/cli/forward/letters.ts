import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { clock } from '../../common/clock.ts';
import { disk } from '../../common/disk.ts';
import { parseAsWritten } from '../../common/long-numbers.ts';
import { makePrivate } from '../../common/private-file.ts';
import { rootReason } from '../../common/root-reason.ts';
import { transaction } from '../../common/sqlite-transaction.ts';
import { integer, text } from '../../events/sqlite/file.ts';
import { CommandError } from '../command.ts';
import type { ForwardedEvent } from './receiver.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS receiver (one INTEGER PRIMARY KEY CHECK (one = 1), shown_as TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS attempts (
    event_id TEXT NOT NULL, event TEXT NOT NULL, attempts INTEGER NOT NULL, refusals INTEGER NOT NULL,
    first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, next_at INTEGER, problem TEXT NOT NULL,
    is_dead INTEGER NOT NULL, is_wanted INTEGER NOT NULL,
    cursor TEXT GENERATED ALWAYS AS (json_extract(event, '$.cursor')) VIRTUAL UNIQUE
  ) STRICT;
  CREATE TABLE IF NOT EXISTS trouble (
    one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL, problem TEXT NOT NULL, has_ended INTEGER NOT NULL
  ) STRICT;
`;
/** The key of files of 0.2.0, which reads and writes the later ones too: its statements do not see a generated column. */
const EARLIER_KEY = 'event_id TEXT PRIMARY KEY';
/** `is_wanted` of an event for which an operator has asked, before and while that attempt is made; otherwise it is 0. */
const WANTED = 1;
const BEGUN = 2;
/** How long a process waits for another one that is writing, in milliseconds. */
const BUSY_TIMEOUT_MS = 2_000;

/** An event that its receiver has not taken yet. Times are milliseconds since 1970. */
export interface Letter {
  readonly event: ForwardedEvent;
  readonly attempts: number;
  /** Attempts that the receiver has refused by an answer. */
  readonly refusals: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** When it is tried again automatically; null if it was given up. */
  readonly nextAt: number | null;
  readonly problem: string;
  /** True if it was put aside, so that the events after it go on. */
  readonly isDead: boolean;
  /** True if an operator has asked for another attempt. */
  readonly isWanted: boolean;
}

/** Why nothing comes to a receiver, whichever event is next. */
export interface Trouble {
  /** In milliseconds since 1970. */
  readonly since: number;
  readonly problem: string;
  /** True if the command has ended for the receiver, false if it tries on. */
  readonly hasEnded: boolean;
}

/**
 * The events that one receiver has not taken: the one that is being tried, and those that were given up (dead letters). It is
 * written only when a delivery fails. Its key is the event's cursor: two events may have one id. The forwarding command and the operator's commands open the same file.
 */
export class Letters {
  readonly #path: string;
  readonly #database: DatabaseSync;

  /** @throws {CommandError} where the file cannot be made or read, as on a full disk */
  constructor(path: string, shownAs?: string) {
    this.#path = path;
    try {
      makePrivate(path);
      this.#database = disk.open(path, BUSY_TIMEOUT_MS);
      this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
      transaction(this.#database, () => prepare(this.#database));
      if (shownAs !== undefined) {
        this.#database.prepare('INSERT OR REPLACE INTO receiver VALUES (1, ?)').run(shownAs);
      }
    } catch (error) {
      throw unusable(path, error);
    }
  }

  get shownAs(): string {
    const [row] = this.#read('SELECT shown_as FROM receiver');
    return row === undefined ? '' : text(row['shown_as']);
  }

  find(cursor: string): Letter | undefined {
    const [row] = this.#read('SELECT * FROM attempts WHERE cursor = ?', [cursor]);
    return row === undefined ? undefined : letterOf(row);
  }

  /** Returns all letters, the oldest first. */
  all(): readonly Letter[] {
    return this.#read('SELECT * FROM attempts ORDER BY first_at, rowid').map(letterOf);
  }

  /** Returns the event that is being tried, or was when the command ended. */
  tried(): Letter | undefined {
    return this.all().find(({ isDead }) => !isDead);
  }

  /** Returns the dead letters that an operator wants to be tried again. */
  wanted(): readonly Letter[] {
    return this.#read('SELECT * FROM attempts WHERE is_dead AND is_wanted ORDER BY first_at, rowid').map(
      letterOf,
    );
  }

  put({
    event,
    attempts,
    refusals,
    firstAt,
    lastAt,
    nextAt,
    problem,
    isDead,
  }: Omit<Letter, 'isWanted'>): void {
    const values = [attempts, refusals, firstAt, lastAt, nextAt, problem, isDead ? 1 : 0];
    // An operator may have asked for another attempt while this one was under way.
    const isWanted = `EXISTS (SELECT 1 FROM attempts WHERE cursor = ? AND is_wanted = ${WANTED})`;
    this.#write(`INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ${isWanted})`, [
      event.id,
      JSON.stringify(event),
      ...values,
      event.cursor,
    ]);
  }

  /**
   * The attempt that an operator has asked for begins; {@link put} or {@link taken} ends it. Where the command dies within it, it is still
   * asked for.
   */
  begin(cursor: string): void {
    this.#write(`UPDATE attempts SET is_wanted = ${BEGUN} WHERE cursor = ? AND is_wanted = ${WANTED}`, [
      cursor,
    ]);
  }

  taken(cursor: string): void {
    this.#write('DELETE FROM attempts WHERE cursor = ?', [cursor]);
  }

  /**
   * Makes dead letters of what an earlier command was trying, but for the event at which this one begins: another log or place does
   * not bring it again.
   */
  leaveBehind(cursor: string): void {
    const left = this.#read('SELECT 1 FROM attempts WHERE NOT is_dead AND cursor <> ? LIMIT 1', [cursor]);
    if (left.length > 0)
      this.#write('UPDATE attempts SET is_dead = 1, next_at = NULL WHERE NOT is_dead AND cursor <> ?', [
        cursor,
      ]);
  }

  get trouble(): Trouble | undefined {
    const [row] = this.#read('SELECT since, problem, has_ended FROM trouble');
    return row === undefined
      ? undefined
      : {
          since: integer(row['since']),
          problem: text(row['problem']),
          hasEnded: row['has_ended'] === 1,
        };
  }

  /** Keeps a trouble until {@link answered}. Of one that goes on, `since` stays. */
  tell(problem: string, hasEnded: boolean): void {
    this.#note(() => {
      const { since = clock.now() } = this.trouble ?? {};
      this.#write('INSERT OR REPLACE INTO trouble VALUES (1, ?, ?, ?)', [since, problem, hasEnded ? 1 : 0]);
    });
  }

  answered(): void {
    this.#note(() => {
      if (this.trouble !== undefined) this.#write('DELETE FROM trouble', []);
    });
  }

  /** On a full disk there is none: the command has said the same in a line, and needs it for no event. */
  #note(write: () => void): void {
    try {
      write();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
  }

  /** @throws {CommandError} where the file cannot be read: the command ends for this receiver alone */
  #read(sql: string, values: readonly SQLInputValue[] = []): readonly Row[] {
    try {
      return this.#database.prepare(sql).all(...values);
    } catch (error) {
      throw unusable(this.#path, error);
    }
  }

  /** @throws {CommandError} where nothing can be written, as on a full disk */
  #write(sql: string, values: readonly SQLInputValue[]): void {
    try {
      this.#database.prepare(sql).run(...values);
    } catch (error) {
      throw new CommandError(`What ${this.shownAs} has not taken cannot be saved: ${rootReason(error)}.`);
    }
  }

  /**
   * Asks for another attempt.
   *
   * @param eventIds undefined for all
   * @returns how many events that is
   * @throws {CommandError} where nothing can be written, as on a full disk
   */
  want(eventIds: readonly string[] | undefined): number {
    const wanted = new Set(eventIds ?? this.all().map(({ event }) => event.id));
    try {
      const mark = this.#database.prepare(`UPDATE attempts SET is_wanted = ${WANTED} WHERE event_id = ?`);
      return transaction(this.#database, () =>
        [...wanted].reduce((count, eventId) => count + Number(mark.run(eventId).changes), 0),
      );
    } catch (error) {
      throw unusable(this.#path, error);
    }
  }

  close(): void {
    this.#database.close();
  }
}

const unusable = (path: string, error: unknown): CommandError =>
  new CommandError(`The file of the attempts, ${path}, cannot be used: ${rootReason(error)}.`);

function prepare(database: DatabaseSync): void {
  const found = database.prepare("SELECT sql FROM sqlite_schema WHERE name = 'attempts'").get();
  const isEarlier = found !== undefined && text(found['sql']).includes(EARLIER_KEY);
  if (isEarlier) database.exec('ALTER TABLE attempts RENAME TO earlier');
  database.exec(SCHEMA);
  if (isEarlier)
    database.exec('INSERT INTO attempts SELECT * FROM earlier ORDER BY rowid; DROP TABLE earlier');
}

type Row = ReturnType<ReturnType<DatabaseSync['prepare']>['all']>[number];

const letterOf = (row: Row): Letter => ({
  // `put` has written it.
  event: parseAsWritten(text(row['event'])) as ForwardedEvent,
  attempts: integer(row['attempts']),
  refusals: integer(row['refusals']),
  firstAt: integer(row['first_at']),
  lastAt: integer(row['last_at']),
  nextAt: row['next_at'] === null ? null : integer(row['next_at']),
  problem: text(row['problem']),
  isDead: row['is_dead'] === 1,
  isWanted: row['is_wanted'] !== 0,
});
