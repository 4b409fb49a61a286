import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RecordName } from '../intent.ts';
import { RETENTION_MS } from '../record.ts';
import { type CreditRefund, ONLY_REFUND_MS, OtherRefundError } from '../record-parts.ts';
import { EXPIRED_AT_ONCE } from './claim.ts';

/** Which records have sent a refund of each credit. To be called within a transaction. */
export class SqliteRefunds {
  readonly #others: StatementSync;
  readonly #note: StatementSync;
  readonly #expire: StatementSync;
  readonly #forget: StatementSync;

  constructor(db: DatabaseSync) {
    this.#others = db.prepare(`
      SELECT answer_kind FROM refunds JOIN intent USING (client_id, hash)
      WHERE client_id = :clientId AND refunds.original = :original AND hash <> :hash AND kept_until > :after
        AND (state = 'sent' OR (state = 'answered' AND answer_kind <> 'refused'))`);
    this.#note = db.prepare(`
      INSERT OR REPLACE INTO refunds (client_id, original, hash, kept_until)
      VALUES (:clientId, :original, :hash, :keptUntil)`);
    this.#expire = db.prepare(`
      DELETE FROM refunds WHERE rowid IN
        (SELECT rowid FROM refunds WHERE kept_until <= ? ORDER BY kept_until LIMIT ${EXPIRED_AT_ONCE})`);
    this.#forget = db.prepare('DELETE FROM refunds WHERE client_id = ? AND original = lower(?) AND hash = ?');
  }

  /**
   * Notes that a record's refund of a credit is about to be sent.
   *
   * @throws {OtherRefundError} if another record has sent one within {@link ONLY_REFUND_MS} that may have moved.
   */
  note({ clientId, hash }: RecordName, credit: string, now: number): void {
    const original = credit.toLowerCase();
    this.#expire.run(now);
    const after = now + RETENTION_MS - ONLY_REFUND_MS;
    if (this.#others.get({ clientId, original, hash, after }) !== undefined) throw new OtherRefundError();
    this.#note.run({ clientId, original, hash, keptUntil: now + RETENTION_MS });
  }

  /** As `MoneyRecords` has it. */
  find(clientId: string, credit: string, now: number): CreditRefund | undefined {
    const rows = this.#others.all({ clientId, original: credit.toLowerCase(), hash: '', after: now });
    if (rows.length === 0) return undefined;
    return rows.some((row) => row['answer_kind'] === 'done') ? 'done' : 'open';
  }

  /** Forgets the refund of a credit whose record is given back: the key may be used next for that of another credit. */
  forget({ clientId, hash }: RecordName, credit: string): void {
    this.#forget.run(clientId, credit, hash);
  }
}
