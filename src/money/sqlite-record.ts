import { DatabaseSync } from 'node:sqlite';
import type { RecordName } from './intent.ts';
import {
  type Claim,
  type Claimed,
  type MoneyRecords,
  RETENTION_MS,
  type StoredAnswer,
  StoreUnavailableError,
} from './record.ts';

/** How long a step waits for another process that is writing, in ms. The wait blocks this process. */
const BUSY_TIMEOUT_MS = 500;

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
`;

/**
 * The record in one file of SQLite, for the processes of one machine. Every step is one transaction that is on disk when
 * it resolves (WAL, `synchronous=FULL`).
 *
 * @param now the store's clock, in ms since the epoch
 * @throws whatever `node:sqlite` throws when the file cannot be opened: a gateway that cannot keep records must not start.
 */
export function openSqliteRecords(path: string, now: () => number = Date.now): MoneyRecords {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  db.exec(SCHEMA);

  const read = db.prepare('SELECT * FROM intent WHERE client_id = ? AND hash = ?');
  const expire = db.prepare('DELETE FROM intent WHERE expires_at <= ?');
  const take = db.prepare(`
    INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, expires_at)
    VALUES (:clientId, :hash, 'claimed', :owner, :leaseUntil, :inputHash, :expiresAt)
    ON CONFLICT DO UPDATE SET
      owner = excluded.owner, lease_until = excluded.lease_until,
      input_hash = excluded.input_hash, expires_at = excluded.expires_at`);
  const takeOver = db.prepare(
    'UPDATE intent SET owner = ?, lease_until = ? WHERE client_id = ? AND hash = ?',
  );
  const markSent = db.prepare(`
    UPDATE intent SET state = 'sent', body = :body, sent_at = :sentAt, expires_at = :expiresAt
    WHERE client_id = :clientId AND hash = :hash AND owner = :owner AND state IN ('claimed', 'sent')`);
  const renew = db.prepare(`
    UPDATE intent SET lease_until = ? WHERE client_id = ? AND hash = ? AND owner = ? AND state <> 'answered'`);
  const answer = db.prepare(`
    INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, answer_kind, status, text, expires_at)
    VALUES (:clientId, :hash, 'answered', '', 0, :inputHash, :kind, :status, :text, :expiresAt)
    ON CONFLICT DO UPDATE SET
      state = excluded.state, answer_kind = excluded.answer_kind, status = excluded.status, text = excluded.text,
      expires_at = excluded.expires_at
    WHERE (state <> 'answered' OR answer_kind = 'unknown') AND input_hash = excluded.input_hash`);
  const release = db.prepare(`
    DELETE FROM intent WHERE client_id = ? AND hash = ? AND owner = ? AND state <> 'answered'`);

  const claim = ({ clientId, hash }: RecordName, { owner, inputHash, leaseMs }: Claim): Claimed => {
    const at = now();
    const leaseUntil = at + leaseMs;
    expire.run(at);
    const row = read.get(clientId, hash);
    const free = row?.['owner'] === owner || Number(row?.['lease_until']) <= at;
    if (row === undefined || (row['state'] === 'claimed' && free)) {
      take.run({ clientId, hash, owner, leaseUntil, inputHash, expiresAt: at + RETENTION_MS });
      return { state: 'claimed' };
    }
    if (row['input_hash'] !== inputHash) return { state: 'other-input' };
    if (row['state'] === 'answered') return { state: 'answered', answer: storedAnswer(row) };
    if (row['state'] === 'claimed' || !free) return { state: 'busy' };
    takeOver.run(owner, leaseUntil, clientId, hash);
    const sentAt = Number(row['sent_at']);
    return { state: 'sent', body: String(row['body']), sentAt, ageMs: at - sentAt };
  };

  /** Runs a step in a transaction that locks out other processes from its first read on. */
  const step = async <T>(name: string, run: () => T): Promise<T> => {
    try {
      db.exec('BEGIN IMMEDIATE');
      const result = run();
      db.exec('COMMIT');
      return result;
    } catch (cause) {
      if (db.isOpen && db.isTransaction) db.exec('ROLLBACK');
      throw new StoreUnavailableError(name, cause);
    }
  };

  return {
    claim: (name, wanted) => step('claim', () => claim(name, wanted)),
    markSent: ({ clientId, hash }, owner, body) =>
      step('sent', () => {
        const sentAt = now();
        const expiresAt = sentAt + RETENTION_MS;
        return Number(markSent.run({ clientId, hash, owner, body, sentAt, expiresAt }).changes) === 1;
      }),
    renew: ({ clientId, hash }, owner, leaseMs) =>
      step('renew', () => {
        renew.run(now() + leaseMs, clientId, hash, owner);
      }),
    answer: ({ clientId, hash }, inputHash, { kind, status, text }) =>
      step('answer', () => {
        answer.run({ clientId, hash, inputHash, kind, status, text, expiresAt: now() + RETENTION_MS });
      }),
    release: ({ clientId, hash }, owner) =>
      step('release', () => {
        release.run(clientId, hash, owner);
      }),
    stop: async () => {
      if (db.isOpen) db.close();
    },
  };
}

function storedAnswer(row: Record<string, unknown>): StoredAnswer {
  return {
    // The column is only ever written from a StoredAnswer.
    kind: row['answer_kind'] as StoredAnswer['kind'],
    status: Number(row['status']),
    text: String(row['text']),
  };
}
