import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RecordName } from '../intent.ts';
import { ONLY_REFUND_MS, OtherRefundError } from '../record-parts.ts';
import { EXPIRED_AT_ONCE } from './claim.ts';

/** Which record has the last refund of each credit, for as long as that is the only one. To be called within a transaction. */
export class SqliteRefunds {
  readonly #other: StatementSync;
  readonly #note: StatementSync;
  readonly #expire: StatementSync;
  readonly #forget: StatementSync;

  constructor(db: DatabaseSync) {
    this.#other = db.prepare(`
      SELECT 1 FROM refunds JOIN intent USING (client_id, hash)
      WHERE client_id = :clientId AND refunds.original = :original AND hash <> :hash AND kept_until > :now
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
   * @throws {OtherRefundError} if another record has one that may have moved.
   */
  note({ clientId, hash }: RecordName, credit: string, now: number): void {
    const original = credit.toLowerCase();
    this.#expire.run(now);
    if (this.#other.get({ clientId, original, hash, now }) !== undefined) throw new OtherRefundError();
    this.#note.run({ clientId, original, hash, keptUntil: now + ONLY_REFUND_MS });
  }

  /** Forgets the refund of a credit whose record is given back: the key may be used next for that of another credit. */
  forget({ clientId, hash }: RecordName, credit: string): void {
    this.#forget.run(clientId, credit, hash);
  }
}
