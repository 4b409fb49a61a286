import type { DatabaseSync } from 'node:sqlite';
import { OPEN_COLUMNS } from './sqlite-open.ts';
import { PAYMENT_COLUMNS } from './sqlite-payments.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS intent (
    client_id   TEXT NOT NULL,
    hash        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'answered')),
    owner       TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    input_hash  TEXT NOT NULL,
    body        TEXT,
    sent_at     INTEGER,
    answer_kind TEXT,
    status      INTEGER,
    text        TEXT,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (client_id, hash)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS intent_expiry ON intent (expires_at);
  CREATE TABLE IF NOT EXISTS probes (filler BLOB NOT NULL) STRICT;
`;

/** Makes the tables of the record, and adds to those of a version before. To be called within a transaction. */
export function makeTables(db: DatabaseSync): void {
  db.exec(SCHEMA);
  addColumns(db);
}

/** What versions before did not have. They read and write the file all the same: they name the columns that they know. */
function addColumns(db: DatabaseSync): void {
  const known = db.prepare("SELECT name FROM pragma_table_info('intent')").all();
  const names = new Set(known.map(({ name }) => name));
  const added = {
    sent_clock: 'INTEGER',
    key_owner: 'TEXT',
    twin: 'TEXT',
    boot_id: 'TEXT',
    boot_ms: 'INTEGER',
    ...PAYMENT_COLUMNS,
    ...OPEN_COLUMNS,
  };
  for (const [name, type] of Object.entries(added)) {
    if (!names.has(name)) db.exec(`ALTER TABLE intent ADD COLUMN ${name} ${type}`);
  }
  db.exec('CREATE INDEX IF NOT EXISTS intent_twin ON intent (client_id, twin) WHERE twin IS NOT NULL');
}
