import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { digestOf, partsOf } from '../journal/journal.ts';
import type { JournalHead, JournalLine } from '../journal/store.ts';

/**
 * How many lines a payment that begins cuts off at most. It is more than a payment writes, so that a journal that is too long
 * shrinks.
 */
const CUT_AT_ONCE = 16;

/**
 * Lines hold a number for their client, and their digests as bytes, which saves 55 bytes a line. The view `journal` shows and
 * takes them in the form of the table that versions up to 0.2.0 had under this name.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal_client (number INTEGER PRIMARY KEY, client_id TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE IF NOT EXISTS journal_line (
    client INTEGER NOT NULL, ms INTEGER NOT NULL, number INTEGER NOT NULL, digest BLOB NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (client, ms, number)
  ) STRICT, WITHOUT ROWID;
  CREATE VIEW IF NOT EXISTS journal (client_id, ms, number, digest, text) AS
    SELECT client_id, ms, line.number, lower(hex(digest)), text
    FROM journal_client JOIN journal_line AS line ON line.client = journal_client.number;
  CREATE TRIGGER IF NOT EXISTS journal_added INSTEAD OF INSERT ON journal BEGIN
    INSERT INTO journal_client (client_id) VALUES (new.client_id) ON CONFLICT DO NOTHING;
    INSERT INTO journal_line SELECT number, new.ms, new.number, unhex(new.digest), new.text
      FROM journal_client WHERE client_id = new.client_id;
  END;
  CREATE TRIGGER IF NOT EXISTS journal_cut INSTEAD OF DELETE ON journal BEGIN
    DELETE FROM journal_line WHERE ms = old.ms AND number = old.number
      AND client = (SELECT number FROM journal_client WHERE client_id = old.client_id);
  END;
  CREATE TABLE IF NOT EXISTS journal_head (
    client_id TEXT PRIMARY KEY, written INTEGER NOT NULL, cut INTEGER NOT NULL, base TEXT NOT NULL, last TEXT NOT NULL,
    digest TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Makes the tables of the journal, and takes over the lines of an earlier version. A digest that somebody has spoiled becomes an
 * empty one, which `payments verify` tells. To be called within a transaction.
 */
function makeJournal(db: DatabaseSync): void {
  const found = db.prepare("SELECT type FROM pragma_table_list('journal') WHERE schema = 'main'").get();
  const isBefore = found?.['type'] === 'table';
  if (isBefore) db.exec('ALTER TABLE journal RENAME TO journal_before');
  db.exec(SCHEMA);
  if (!isBefore) return;
  db.exec(`
    INSERT INTO journal_client (client_id) SELECT DISTINCT client_id FROM journal_before;
    INSERT INTO journal_line
      SELECT journal_client.number, ms, line.number, coalesce(unhex(digest), zeroblob(0)), text
      FROM journal_before AS line JOIN journal_client USING (client_id);
    DROP TABLE journal_before;
  `);
}

const NOTHING: JournalHead = { written: 0, cut: 0, base: '', last: '', digest: '' };

/** The journals in the database of the records. Methods that write are to be called within a transaction. */
export class SqliteJournal {
  readonly #db: DatabaseSync;
  readonly #now: () => number;
  readonly #earliest: () => number;
  readonly #retentionMs: number;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * @param now ms since the epoch
   * @param earliest the same by the clock that is behind: what is too old by that may be cut off
   */
  constructor(db: DatabaseSync, now: () => number, earliest: () => number, retentionMs: number) {
    makeJournal(db);
    this.#db = db;
    this.#now = now;
    this.#earliest = earliest;
    this.#retentionMs = retentionMs;
  }

  /** Adds a line. @returns its id */
  add(clientId: string, text: string): string {
    const head = this.head(clientId);
    const id = idAfter(head.last, this.#now());
    const digest = digestOf(head.digest, { id, text });
    const [ms, number] = partsOf(id);
    this.#run('INSERT INTO journal VALUES (?, ?, ?, ?, ?)', clientId, ms, number, digest, text);
    this.#write(clientId, { ...head, written: head.written + 1, last: id, digest });
    return id;
  }

  /** Cuts off some of the lines that are too old. */
  cut(clientId: string): void {
    const old = this.#all(
      'SELECT ms, number, digest FROM journal WHERE client_id = ? AND ms < ? ORDER BY ms, number LIMIT ?',
      ...[clientId, this.#earliest() - this.#retentionMs, CUT_AT_ONCE],
    );
    const last = old.at(-1);
    if (last === undefined) return;
    for (const { ms, number } of old) {
      this.#run(
        'DELETE FROM journal WHERE client_id = ? AND ms = ? AND number = ?',
        ...[clientId, Number(ms), Number(number)],
      );
    }
    const head = this.head(clientId);
    this.#write(clientId, { ...head, cut: head.cut + old.length, base: String(last['digest']) });
  }

  clients(): string[] {
    return this.#all('SELECT client_id FROM journal_head').map((row) => String(row['client_id']));
  }

  /** Returns the time of the newest line of any client, in ms since the epoch; undefined if there is none. */
  newest(): number | undefined {
    const [row] = this.#all('SELECT max(ms) AS newest FROM journal_line');
    return row === undefined || row['newest'] === null ? undefined : Number(row['newest']);
  }

  head(clientId: string): JournalHead {
    const [row] = this.#all('SELECT * FROM journal_head WHERE client_id = ?', clientId);
    if (row === undefined) return NOTHING;
    const { written, cut, base, last, digest } = row;
    return {
      written: Number(written),
      cut: Number(cut),
      base: String(base),
      last: String(last),
      digest: String(digest),
    };
  }

  read(clientId: string, after: string | undefined, limit: number): JournalLine[] {
    const [ms, number] = after === undefined ? [-1, 0] : partsOf(after);
    return this.#all(
      'SELECT * FROM journal WHERE client_id = ? AND (ms, number) > (?, ?) ORDER BY ms, number LIMIT ?',
      ...[clientId, ms, number, limit],
    ).map(lineOf);
  }

  lines(clientId: string, ids: readonly string[]): (JournalLine | undefined)[] {
    return ids.map((id) => {
      const [row] = this.#all(
        'SELECT * FROM journal WHERE client_id = ? AND ms = ? AND number = ?',
        ...[clientId, ...partsOf(id)],
      );
      return row === undefined ? undefined : lineOf(row);
    });
  }

  #write(clientId: string, { written, cut, base, last, digest }: JournalHead): void {
    this.#run(
      'INSERT OR REPLACE INTO journal_head VALUES (?, ?, ?, ?, ?, ?)',
      ...[clientId, written, cut, base, last, digest],
    );
  }

  #run(sql: string, ...values: (string | number)[]): void {
    this.#statement(sql).run(...values);
  }

  #all(sql: string, ...values: (string | number)[]): Record<string, unknown>[] {
    return this.#statement(sql).all(...values);
  }

  #statement(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

function idAfter(last: string, now: number): string {
  const at = Math.trunc(now);
  const [ms, number] = partsOf(last);
  return last === '' || ms < at ? `${at}-0` : `${ms}-${number + 1}`;
}

const lineOf = ({ ms, number, digest, text }: Record<string, unknown>): JournalLine => ({
  id: `${Number(ms)}-${Number(number)}`,
  digest: String(digest),
  text: String(text),
});
