import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RecordName } from '../intent.ts';
import { RETENTION_MS } from '../record.ts';
import { type CreditRefund, ONLY_REFUND_MS, OtherRefundError } from '../record-parts.ts';
import { EXPIRED_AT_ONCE } from './claim.ts';

/** What may have moved. */
const MAY_HAVE_MOVED = `(state = 'sent' OR (state = 'answered' AND answer_kind <> 'refused'))`;

/**
 * Which record has the last refund of each credit: in `refunds` for as long as that is the only one, in `refunded` for as long as the record
 * is kept, and of one that is done whatever was sent later. To be called within a transaction.
 */
export class SqliteRefunds {
  readonly #other: StatementSync;
  readonly #found: StatementSync;
  readonly #note: readonly StatementSync[];
  readonly #expire: readonly StatementSync[];
  readonly #forget: readonly StatementSync[];

  constructor(db: DatabaseSync) {
    const ofEach = (sql: (table: string) => string) =>
      ['refunds', 'refunded'].map((table) => db.prepare(sql(table)));
    const found = (table: string, condition: string) =>
      db.prepare(`
        SELECT answer_kind FROM ${table} JOIN intent USING (client_id, hash)
        WHERE client_id = :clientId AND ${table}.original = :original AND kept_until > :now AND ${MAY_HAVE_MOVED} ${condition}`);
    this.#other = found('refunds', 'AND hash <> :hash');
    this.#found = found('refunded', '');
    this.#note = ofEach(
      (table) => `
        INSERT OR REPLACE INTO ${table} (client_id, original, hash, kept_until)
        VALUES (:clientId, :original, :hash, :keptUntil)`,
    );
    this.#expire = ofEach(
      (table) => `
        DELETE FROM ${table} WHERE rowid IN
          (SELECT rowid FROM ${table} WHERE kept_until <= ? ORDER BY kept_until LIMIT ${EXPIRED_AT_ONCE})`,
    );
    this.#forget = ofEach(
      (table) => `DELETE FROM ${table} WHERE client_id = ? AND original = lower(?) AND hash = ?`,
    );
  }

  /**
   * Notes that a record's refund of a credit is about to be sent.
   *
   * @throws {OtherRefundError} if another record has one that may have moved.
   */
  note({ clientId, hash }: RecordName, credit: string, now: number): void {
    const original = credit.toLowerCase();
    for (const expire of this.#expire) expire.run(now);
    if (this.#other.get({ clientId, original, hash, now }) !== undefined) throw new OtherRefundError();
    const [only, kept] = this.#note;
    only?.run({ clientId, original, hash, keptUntil: now + ONLY_REFUND_MS });
    if (this.find(clientId, credit, now) !== 'done')
      kept?.run({ clientId, original, hash, keptUntil: now + RETENTION_MS });
  }

  /** As `MoneyRecords` has it. */
  find(clientId: string, credit: string, now: number): CreditRefund | undefined {
    const row = this.#found.get({ clientId, original: credit.toLowerCase(), now });
    if (row === undefined) return undefined;
    return row['answer_kind'] === 'done' ? 'done' : 'open';
  }

  /** Forgets the refund of a credit whose record is given back: the key may be used next for that of another credit. */
  forget({ clientId, hash }: RecordName, credit: string): void {
    for (const forget of this.#forget) forget.run(clientId, credit, hash);
  }
}
