import type { DatabaseSync } from 'node:sqlite';
import { OPEN_COLUMNS } from './sqlite-open-records.ts';
import { PAYMENT_COLUMNS } from './sqlite-payment-reads.ts';

/**
 * The table has rowids: one without would keep at most a quarter of a page of each row at hand, and the rest of most payments in a page
 * of its own. A hash is of its client as well (`recordName`), so that it alone tells records apart.
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
  CREATE TABLE IF NOT EXISTS probes (filler BLOB NOT NULL) STRICT;
`;

/** Columns that the first version did not have. Later ones read and write the file all the same: they name the columns that they know. */
const ADDED = {
  sent_clock: 'INTEGER',
  key_owner: 'TEXT',
  twin: 'TEXT',
  boot_id: 'TEXT',
  boot_ms: 'INTEGER',
  ...PAYMENT_COLUMNS,
  ...OPEN_COLUMNS,
} as const;

/** Makes the tables of the record, and adds to those of a version before. To be called within a transaction. */
export function makeTables(db: DatabaseSync): void {
  const isBefore = isWithoutRowid(db);
  // Its indexes go with it, for those of this version to be made.
  if (isBefore) db.exec('ALTER TABLE intent RENAME TO intent_before');
  db.exec(TABLE);
  addColumns(db);
  if (isBefore) {
    const columns = columnsOf(db, 'intent_before').join(', ');
    db.exec(`INSERT INTO intent (${columns}) SELECT ${columns} FROM intent_before; DROP TABLE intent_before`);
  }
  db.exec(SCHEMA);
}

/** Whether the table is as versions up to 0.2.0 have made it. */
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
