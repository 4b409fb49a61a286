import type { DatabaseSync } from 'node:sqlite';
import { RETRY_WINDOW_MS } from '../backoff.ts';
import type { RecordName } from '../intent.ts';
import { readSummary } from '../order-summary.ts';
import type { OpenPayment, TakenPayment } from '../settling/open-records.ts';
import { type RowClock, storedAnswer } from './sqlite-payment-reads.ts';

/** Columns of `intent` for the settling of open payments. Null in a record of an earlier version. */
export const OPEN_COLUMNS = {
  upstream_key: 'TEXT',
  original: 'TEXT',
  epoch: 'INTEGER',
  due_at: 'INTEGER',
  tries: 'INTEGER',
  seen: 'TEXT',
} as const;

/** Later than any time. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * The condition for an open payment. Earlier versions write no `due_at`. A payment that they settle leaves the index by
 * itself.
 */
const IS_OPEN = `sent_at IS NOT NULL AND asked IS NOT NULL AND (state <> 'answered' OR answer_kind = 'unknown')`;

const SCHEMA = `CREATE INDEX IF NOT EXISTS intent_due ON intent (client_id, coalesce(due_at, 0)) WHERE ${IS_OPEN}`;

/** Finds and takes open payments in the database of `openSqliteRecords`, which has these columns. Each step is to run in a transaction. */
export class SqliteOpen {
  readonly #db: DatabaseSync;
  readonly #clock: RowClock;

  constructor(db: DatabaseSync, clock: RowClock) {
    db.exec(SCHEMA);
    this.#db = db;
    this.#clock = clock;
  }

  due(clientId: string, limit: number): RecordName[] {
    const rows = this.#db
      .prepare(
        `SELECT hash FROM intent
         WHERE client_id = :clientId AND coalesce(due_at, 0) <= :now AND expires_at > :now AND ${IS_OPEN}
         ORDER BY coalesce(due_at, 0) LIMIT :limit`,
      )
      .all({ clientId, now: this.#clock.now(), limit });
    return rows.map(({ hash }) => ({ clientId, hash: String(hash) }));
  }

  take(name: RecordName, owner: string, leaseMs: number, isAsked: boolean): OpenPayment | undefined {
    const now = this.#clock.now();
    const row = this.#db
      .prepare(
        `SELECT *, (SELECT epoch FROM ledger) AS now_epoch FROM intent
         WHERE client_id = :clientId AND hash = :hash AND expires_at > :now AND ${IS_OPEN}
           AND (coalesce(due_at, 0) <= :now OR (:isAsked AND due_at > :now + 2 * :leaseMs))`,
      )
      .get({ ...name, now, leaseMs, isAsked: isAsked ? 1 : 0 });
    if (row === undefined) return undefined;
    const lease = Number(row['lease_until']);
    const isAnswered = row['state'] === 'answered';
    const sending = this.#clock.sending(row);
    const mayBeSent = !isAnswered && row['upstream_key'] !== null && sending.ageMs < RETRY_WINDOW_MS;
    const dueAt = Number(row['due_at']);
    if (dueAt > now && dueAt !== NEVER && mayBeSent) return undefined;
    if (!isAnswered && lease > now) {
      this.#setDue(name, lease);
      return undefined;
    }
    const inputHash = String(row['input_hash']);
    const asked = readSummary(row['asked'], inputHash);
    if (asked === null) {
      this.#setDue(name, NEVER);
      return undefined;
    }
    // A payment that is only looked for stays with the call that sent it, which may yet find that nothing had left; and no
    // caller has to wait for it.
    const isSending = `state = 'sent' AND upstream_key IS NOT NULL`;
    this.#db
      .prepare(
        `UPDATE intent SET due_at = :until, tries = coalesce(tries, 0) + 1,
           owner = CASE WHEN ${isSending} THEN :owner ELSE owner END,
           lease_until = CASE WHEN ${isSending} THEN :until ELSE lease_until END
         WHERE client_id = :clientId AND hash = :hash`,
      )
      .run({ ...name, until: now + leaseMs, owner });
    const isCurrent = row['epoch'] !== null && row['epoch'] === row['now_epoch'];
    return {
      name,
      asked,
      inputHash,
      body: String(row['body'] ?? ''),
      ...sending,
      upstreamKey: isCurrent && row['upstream_key'] !== null ? String(row['upstream_key']) : null,
      original: row['original'] === null ? null : String(row['original']),
      closed: isAnswered ? storedAnswer(row) : null,
      tries: Number(row['tries'] ?? 0),
      keyOwner: row['key_owner'] === null ? null : String(row['key_owner']),
      twin: row['twin'] === null ? null : String(row['twin']),
      // What an earlier version sent has no epoch.
      isCurrent: (row['epoch'] ?? 0) === row['now_epoch'],
    };
  }

  putOff({ name, tries }: TakenPayment, dueMs: number | undefined, seen: string): void {
    const dueAt = dueMs === undefined ? NEVER : Math.round(this.#clock.now() + dueMs);
    this.#db
      .prepare(
        `UPDATE intent SET due_at = :dueAt, seen = :seen, lease_until = 0
         WHERE client_id = :clientId AND hash = :hash AND tries = :taken AND ${IS_OPEN}`,
      )
      .run({ ...name, taken: tries + 1, dueAt, seen });
  }

  hasten({ clientId, hash }: RecordName): void {
    this.#db
      .prepare(
        `UPDATE intent SET due_at = 0, tries = 0, epoch = (SELECT epoch FROM ledger)
         WHERE client_id = ? AND hash = ? AND ${IS_OPEN}`,
      )
      .run(clientId, hash);
  }

  #setDue({ clientId, hash }: RecordName, dueAt: number): void {
    this.#db
      .prepare('UPDATE intent SET due_at = ? WHERE client_id = ? AND hash = ?')
      .run(dueAt, clientId, hash);
  }
}
