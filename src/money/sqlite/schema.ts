import type { DatabaseSync } from 'node:sqlite';
import { OPEN_COLUMNS } from './sqlite-open-records.ts';
import { PAYMENT_COLUMNS } from './sqlite-payment-reads.ts';

/**
 * The table has rowids. Without them a page would hold at most a quarter page of each row, and the rest of most payments
 * would need another page. A hash includes its client (`recordName`), so it alone identifies a record.
 */
const TABLE = `
  CREATE TABLE IF NOT EXISTS intent (
    client_id   TEXT NOT NULL,
    hash        TEXT NOT NULL UNIQUE,
    state       TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'answered')),
    owner       TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    input_hash  TEXT NOT NULL,
    body        TEXT,
    sent_at     INTEGER,
    answer_kind TEXT,
    status      INTEGER,
    text        TEXT,
    expires_at  INTEGER NOT NULL
  ) STRICT`;

const SCHEMA = `
  CREATE INDEX IF NOT EXISTS intent_expiry ON intent (expires_at);
  CREATE INDEX IF NOT EXISTS intent_twin ON intent (client_id, twin) WHERE twin IS NOT NULL;
  CREATE TABLE IF NOT EXISTS refunds (
    client_id  TEXT NOT NULL,
    original   TEXT NOT NULL,
    hash       TEXT NOT NULL,
    kept_until INTEGER NOT NULL,
    PRIMARY KEY (original, hash)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS refunds_expiry ON refunds (kept_until);
  CREATE TABLE IF NOT EXISTS probes (filler BLOB NOT NULL) STRICT;
`;

/** Columns that the first version lacked. All versions can read and write the file: they name the columns that they know. */
const ADDED = {
  sent_clock: 'INTEGER',
  key_owner: 'TEXT',
  twin: 'TEXT',
  passed_by: 'TEXT',
  boot_id: 'TEXT',
  boot_ms: 'INTEGER',
  ...PAYMENT_COLUMNS,
  ...OPEN_COLUMNS,
} as const;

/** Makes the tables of the record, and adds columns to those of an earlier version. To be called within a transaction. */
export function makeTables(db: DatabaseSync): void {
  const isBefore = isWithoutRowid(db);
  // Its indexes are renamed with it, so that this version can make its own.
  if (isBefore) db.exec('ALTER TABLE intent RENAME TO intent_before');
  db.exec(TABLE);
  addColumns(db);
  if (isBefore) {
    const columns = columnsOf(db, 'intent_before').join(', ');
    db.exec(`INSERT INTO intent (${columns}) SELECT ${columns} FROM intent_before; DROP TABLE intent_before`);
  }
  db.exec(SCHEMA);
}

/** True if the table has the form that versions up to 0.2.0 made. */
function isWithoutRowid(db: DatabaseSync): boolean {
  const found = db.prepare("SELECT wr FROM pragma_table_list('intent') WHERE schema = 'main'").get();
  return found?.['wr'] === 1;
}

function addColumns(db: DatabaseSync): void {
  const known = new Set(columnsOf(db, 'intent'));
  for (const [name, type] of Object.entries(ADDED)) {
    if (!known.has(name)) db.exec(`ALTER TABLE intent ADD COLUMN ${name} ${type}`);
  }
}

const columnsOf = (db: DatabaseSync, table: string): string[] =>
  db
    .prepare('SELECT name FROM pragma_table_info(?)')
    .all(table)
    .map(({ name }) => String(name));
