import type { StatementSync } from 'node:sqlite';
import type { RecordName } from '../intent.ts';
import {
  answeredLine,
  type NextLine,
  nextLine,
  nothingMovedLine,
  retriedLine,
  sentLine,
} from '../journal/journal.ts';
import { stampOf } from '../lived-time.ts';
import { RETENTION_MS } from '../record.ts';
import type { CreditRefund, SentDetails, StoredAnswer } from '../record-parts.ts';
import { FIRST_DUE_MS } from '../settling/open-records.ts';
import { leaseEnd, type SqliteParts } from './claim.ts';
import { SqliteRefunds } from './refunds.ts';

const NO_DETAILS: SentDetails = { upstreamKey: null, original: null };

/** Columns of an open payment, which an answer that settles it clears. */
const NO_LONGER_NEEDED = Object.entries({
  owner: "''",
  lease_until: '0',
  sent_clock: 'NULL',
  boot_id: 'NULL',
  boot_ms: 'NULL',
  epoch: 'NULL',
  due_at: 'NULL',
  tries: 'NULL',
  seen: 'NULL',
})
  .map(
    ([column, empty]) =>
      `${column} = CASE WHEN excluded.answer_kind = 'unknown' THEN ${column} ELSE ${empty} END`,
  )
  .join(', ');

/** The steps after a claim, in the database of `openSqliteRecords`. To be called within a transaction. */
export class SqliteSteps {
  readonly #parts: SqliteParts;
  readonly #read: StatementSync;
  readonly #markSent: StatementSync;
  readonly #renew: StatementSync;
  readonly #answer: StatementSync;
  readonly #another: StatementSync;
  readonly #countAgain: StatementSync;
  readonly #release: StatementSync;
  readonly #refunds: SqliteRefunds;

  constructor(parts: SqliteParts) {
    const { db } = parts;
    this.#parts = parts;
    this.#refunds = new SqliteRefunds(db);
    this.#read = db.prepare('SELECT * FROM intent WHERE client_id = ? AND hash = ?');
    this.#markSent = db.prepare(`
      UPDATE intent SET state = 'sent', body = :body, sent_at = :wall, sent_clock = :sentClock, expires_at = :expiresAt,
        boot_id = :bootId, boot_ms = :bootMs, attempts = coalesce(attempts, 1), upstream_key = :upstreamKey, original = :original,
        due_at = :dueAt, epoch = (SELECT epoch FROM ledger)
      WHERE client_id = :clientId AND hash = :hash AND owner = :owner AND state IN ('claimed', 'sent')`);
    this.#renew = db.prepare(`
      UPDATE intent SET lease_until = ? WHERE client_id = ? AND hash = ? AND owner = ? AND state <> 'answered'`);
    this.#answer = db.prepare(`
      INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, answer_kind, status, text, expires_at,
        settled_at, sent_at, transaction_id)
      VALUES (:clientId, :hash, 'answered', '', 0, :inputHash, :kind, :status, :text, :expiresAt, :settledAt, :settledAt, :transactionId)
      ON CONFLICT DO UPDATE SET sent_at = coalesce(sent_at, excluded.sent_at),
        state = excluded.state, answer_kind = excluded.answer_kind, status = excluded.status, text = excluded.text,
        expires_at = excluded.expires_at, body = CASE WHEN excluded.answer_kind = 'unknown' THEN body END,
        original = CASE WHEN excluded.answer_kind = 'unknown' THEN original END, upstream_key = NULL,
        settled_at = excluded.settled_at, transaction_id = excluded.transaction_id, ${NO_LONGER_NEEDED}
      WHERE (state <> 'answered' OR answer_kind = 'unknown') AND input_hash = excluded.input_hash`);
    this.#another = db.prepare(
      'SELECT 1 FROM intent WHERE client_id = ? AND transaction_id = ? AND hash <> ? LIMIT 1',
    );
    this.#countAgain = db.prepare(
      `UPDATE intent SET attempts = coalesce(attempts, 1) + 1
      WHERE client_id = ? AND hash = ? AND (state <> 'answered' OR answer_kind = 'unknown')`,
    );
    this.#release = db.prepare(`
      DELETE FROM intent WHERE client_id = ? AND hash = ? AND owner = ? AND state <> 'answered'`);
  }

  /**
   * @returns true if the record is the owner's
   * @throws {OtherRefundError} as in `MoneyRecords`. What was written is to be rolled back.
   */
  markSent(name: RecordName, owner: string, body: string, details = NO_DETAILS): boolean {
    const { clientId, hash } = name;
    const { clock, clocks } = this.#parts;
    const sentClock = clock.now();
    const expiresAt = sentClock + RETENTION_MS;
    const kept = { body, ...details, ...stampOf(clocks), sentClock, dueAt: sentClock + FIRST_DUE_MS };
    const wasSent = this.#read.get(clientId, hash)?.['state'] === 'sent';
    const { changes } = this.#markSent.run({ clientId, hash, owner, ...kept, expiresAt });
    if (Number(changes) !== 1) return false;
    if (details.original !== null) this.#refunds.note(name, details.original, sentClock);
    if (!wasSent) this.#goOn(name, sentLine);
    return true;
  }

  renew({ clientId, hash }: RecordName, owner: string, leaseMs: number): void {
    this.#renew.run(leaseEnd(this.#parts.clock.now(), leaseMs), clientId, hash, owner);
  }

  /**
   * A record that no longer says when it was sent gets the time of its end, as a search finds what was sent.
   *
   * @param beginAgain makes the record where there is none
   * @returns false, and writes nothing, if another record has the transaction, or as `StoredAnswer.onlyOf` says
   */
  answer(
    name: RecordName,
    inputHash: string,
    told: StoredAnswer,
    {
      transactionId,
      code,
    }: { readonly transactionId: string | undefined; readonly code: string | undefined },
    beginAgain: (() => void) | undefined,
  ): boolean {
    const { clientId, hash } = name;
    const { clock, clocks } = this.#parts;
    const { kind, status, text, onlyOf } = told;
    const expiresAt = clock.now() + RETENTION_MS;
    const settledAt = kind === 'unknown' ? null : clocks.now();
    const named = { settledAt, transactionId: transactionId?.toLowerCase() ?? null };
    const row = this.#read.get(clientId, hash);
    const before = row?.['answer_kind'];
    const isSettled = before === 'done' || before === 'refused';
    if (onlyOf !== undefined && row?.['input_hash'] === inputHash) {
      const isTaken = row['state'] === 'sent' && row['owner'] !== onlyOf;
      if (isTaken || (isSettled && before !== kind)) return false;
    }
    const isAnothers = this.#another.get(clientId, named.transactionId, hash) !== undefined;
    if (isAnothers && !isSettled) return false;
    if (row === undefined) beginAgain?.();
    const values = { clientId, hash, inputHash, kind, status, text, expiresAt, ...named };
    const isNews = Number(this.#answer.run(values).changes) === 1 && before !== kind;
    if (isNews) this.#goOn(name, answeredLine(told, transactionId, code));
    return true;
  }

  refundOf(clientId: string, credit: string): CreditRefund | undefined {
    return this.#refunds.find(clientId, credit, this.#parts.clock.peek());
  }

  sentAgain(name: RecordName, requestId: string): void {
    const { changes } = this.#countAgain.run(name.clientId, name.hash);
    if (Number(changes) === 1) this.#goOn(name, retriedLine(requestId));
  }

  /** @returns true if there is no such record now */
  release(name: RecordName, owner: string): boolean {
    const row = this.#read.get(name.clientId, name.hash);
    if (row === undefined) return true;
    if (row['owner'] !== owner || row['state'] === 'answered') return false;
    this.#goOn(name, nothingMovedLine);
    if (row['original'] !== null) this.#refunds.forget(name, String(row['original']));
    this.#release.run(name.clientId, name.hash, owner);
    return true;
  }

  /** Adds a later line of a payment to the journal. */
  #goOn({ clientId, hash }: RecordName, line: NextLine): void {
    const begun = this.#read.get(clientId, hash)?.['line'];
    this.#parts.journal.add(clientId, nextLine(line, typeof begun === 'string' ? begun : undefined, hash));
  }
}
