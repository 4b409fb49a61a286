import type { DatabaseSync } from 'node:sqlite';
import type { TakenReadings } from '../reconciling/reading-store.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS readings (
    client_id TEXT PRIMARY KEY, due_at INTEGER NOT NULL, owner TEXT NOT NULL, text TEXT
  ) STRICT`;

/** The readings of balances in the database of `openSqliteRecords`. Each step is to run in a transaction. */
export class SqliteReadings {
  readonly #db: DatabaseSync;
  readonly #now: () => number;

  /** @param now by the running clock */
  constructor(db: DatabaseSync, now: () => number) {
    db.exec(SCHEMA);
    this.#db = db;
    this.#now = now;
  }

  take(clientId: string, owner: string, leaseMs: number): TakenReadings | undefined {
    const now = this.#now();
    const row = this.#db
      .prepare(
        `INSERT INTO readings (client_id, due_at, owner) VALUES (:clientId, :until, :owner)
         ON CONFLICT DO UPDATE SET due_at = excluded.due_at, owner = excluded.owner WHERE due_at <= :now
         RETURNING text`,
      )
      .get({ clientId, owner, now, until: Math.round(now + leaseMs) });
    if (row === undefined) return undefined;
    return { text: typeof row['text'] === 'string' ? row['text'] : undefined };
  }

  keep(clientId: string, owner: string, text: string | undefined, dueMs: number): boolean {
    const { changes } = this.#db
      .prepare(
        `UPDATE readings SET due_at = :dueAt, text = coalesce(:text, text)
         WHERE client_id = :clientId AND owner = :owner`,
      )
      .run({ clientId, owner, text: text ?? null, dueAt: Math.round(this.#now() + dueMs) });
    return Number(changes) === 1;
  }
}
