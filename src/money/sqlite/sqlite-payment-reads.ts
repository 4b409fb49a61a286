import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { entropy } from '../../common/entropy.ts';
import type { RecordName } from '../intent.ts';
import { readSummary } from '../order-summary.ts';
import type { PaymentRecord, PaymentSearch, PaymentsFound, Sent, StoredAnswer } from '../record.ts';

type Row = Readonly<Record<string, unknown>>;

/**
 * SQL for the class of a record. It is no column, because an answer that an earlier version writes also moves a record to
 * another class.
 */
const CLASS = `CASE WHEN state <> 'answered' OR answer_kind = 'unknown' THEN 'open' ELSE answer_kind END`;

const SCHEMA = `
  CREATE INDEX IF NOT EXISTS intent_payments ON intent (client_id, operation, ${CLASS}, asked_at)
    WHERE sent_at IS NOT NULL AND asked IS NOT NULL;
  CREATE INDEX IF NOT EXISTS intent_customer_payments ON intent (client_id, customer_id, operation, ${CLASS}, asked_at)
    WHERE sent_at IS NOT NULL AND asked IS NOT NULL AND customer_id IS NOT NULL;
  CREATE INDEX IF NOT EXISTS intent_transaction ON intent (transaction_id) WHERE transaction_id IS NOT NULL;
  CREATE TABLE IF NOT EXISTS payment_keys (client_id TEXT PRIMARY KEY, key BLOB NOT NULL) STRICT;
`;

/** Columns of `intent` for reading payments. Null in a record of an earlier version. */
export const PAYMENT_COLUMNS = {
  asked: 'TEXT',
  asked_at: 'INTEGER',
  operation: 'TEXT',
  customer_id: 'TEXT',
  settled_at: 'INTEGER',
  attempts: 'INTEGER',
  transaction_id: 'TEXT',
  line: 'TEXT',
} as const;

/** The clock for the times of a row. */
export interface RowClock {
  /** Ms by the running clock. */
  now(): number;
  /** When a row's request was sent, and how long ago. */
  sending(row: Row): Pick<Sent, 'sentAt' | 'ageMs'>;
}

/** Reads the records of payments in the database of {@link openSqliteRecords}, which has these columns. */
export class SqlitePayments {
  readonly #db: DatabaseSync;
  readonly #clock: RowClock;
  readonly #searches = new Map<string, StatementSync>();

  constructor(db: DatabaseSync, clock: RowClock) {
    db.exec(SCHEMA);
    this.#db = db;
    this.#clock = clock;
  }

  read({ clientId, hash }: RecordName): PaymentRecord | undefined {
    return this.#one('client_id = ? AND hash = ?', clientId, hash);
  }

  byTransaction(clientId: string, transactionId: string): PaymentRecord | undefined {
    return this.#one('client_id = ? AND transaction_id = ?', clientId, transactionId.toLowerCase());
  }

  /** Each operation and class is a range of an index; the ranges are merged. */
  search(search: PaymentSearch): PaymentsFound {
    const { operations, classes, isBack, limit } = search;
    const [sooner, later] = isBack ? [-1, 1] : [1, -1];
    const rows = operations
      .flatMap((operation) => classes.flatMap((kind) => this.#range(search, operation, kind)))
      .sort((one, other) => (isBefore(one, other) ? sooner : later))
      .slice(0, limit);
    const last = rows.at(-1);
    const isLast = rows.length < limit || last === undefined;
    return {
      records: rows.map((row) => this.#record(row)),
      next: isLast ? undefined : { createdAt: Number(last['asked_at']), hash: String(last['hash']) },
    };
  }

  clients(): string[] {
    const rows = this.#db.prepare('SELECT client_id FROM payment_keys').all();
    return rows.map((row) => String(row['client_id']));
  }

  idKey(clientId: string): Buffer {
    this.#db
      .prepare('INSERT INTO payment_keys (client_id, key) VALUES (?, ?) ON CONFLICT DO NOTHING')
      .run(clientId, entropy.bytes(32));
    const row = this.#db.prepare('SELECT key FROM payment_keys WHERE client_id = ?').get(clientId);
    // The column holds bytes alone.
    return Buffer.from(row?.['key'] as Uint8Array);
  }

  #range(search: PaymentSearch, operation: string, kind: string): Row[] {
    const { clientId, customerId, from, to, beyond, isBack, limit } = search;
    const [sign, order] = isBack ? ['>', 'ASC'] : ['<', 'DESC'];
    const sql = `
      SELECT * FROM intent
      WHERE client_id = :clientId AND operation = :operation AND ${CLASS} = :kind AND expires_at > :now
        AND sent_at IS NOT NULL AND asked IS NOT NULL
        ${customerId === undefined ? '' : 'AND customer_id IS NOT NULL AND customer_id = :customerId'}
        ${from === undefined ? '' : 'AND asked_at >= :from'}
        ${to === undefined ? '' : 'AND asked_at < :to'}
        ${beyond === undefined ? '' : `AND asked_at ${sign}= :createdAt AND (asked_at, hash) ${sign} (:createdAt, :hash)`}
      ORDER BY asked_at ${order}, hash ${order} LIMIT :limit`;
    const statement = this.#searches.get(sql) ?? this.#db.prepare(sql);
    this.#searches.set(sql, statement);
    return statement.all({
      clientId,
      operation,
      kind,
      limit,
      now: this.#clock.now(),
      ...(customerId === undefined ? {} : { customerId }),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
      ...(beyond === undefined ? {} : { createdAt: beyond.createdAt, hash: beyond.hash }),
    });
  }

  #one(where: string, ...values: string[]): PaymentRecord | undefined {
    const row = this.#db
      .prepare(`SELECT * FROM intent WHERE ${where} AND expires_at > ?`)
      .get(...values, this.#clock.now());
    return row === undefined ? undefined : this.#record(row);
  }

  #record(row: Row): PaymentRecord {
    const hasLeft = row['sent_at'] !== null;
    return {
      hash: String(row['hash']),
      keyOwner: row['key_owner'] === null ? null : String(row['key_owner']),
      asked: readSummary(row['asked'], String(row['input_hash'])),
      state: row['state'] as PaymentRecord['state'],
      isHeld: row['state'] !== 'answered' && Number(row['lease_until']) > this.#clock.now(),
      createdAt: Number(row['asked_at'] ?? row['sent_at'] ?? 0),
      sent: hasLeft ? this.#clock.sending(row) : null,
      body: row['body'] === null ? null : String(row['body']),
      original: row['original'] === null ? null : String(row['original']),
      settledAt: row['settled_at'] === null ? null : Number(row['settled_at']),
      attempts: Number(row['attempts'] ?? (hasLeft ? 1 : 0)),
      answer: row['state'] === 'answered' ? storedAnswer(row) : null,
      seen: row['seen'] === null ? null : String(row['seen']),
    };
  }
}

const isBefore = (one: Row, other: Row): boolean => {
  const [a, b] = [Number(one['asked_at']), Number(other['asked_at'])];
  return a === b ? String(one['hash']) < String(other['hash']) : a < b;
};

export function storedAnswer(row: Row): StoredAnswer {
  return {
    // The column is only written from a StoredAnswer.
    kind: row['answer_kind'] as StoredAnswer['kind'],
    status: Number(row['status']),
    text: String(row['text']),
  };
}
