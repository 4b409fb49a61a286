import { DatabaseSync } from 'node:sqlite';
import { makePrivate } from '../common/private-file.ts';
import { RunningClock } from '../common/running-clock.ts';
import { transaction } from '../common/sqlite-transaction.ts';
import type { RecordName } from './intent.ts';
import {
  type Claim,
  type Claimed,
  type MoneyRecords,
  RETENTION_MS,
  type Sent,
  type StoredAnswer,
  StoreUnavailableError,
} from './record.ts';

/** How long a step waits for another process that is writing, in ms. The wait blocks this process. */
const BUSY_TIMEOUT_MS = 500;

/** As much as a request and its answer take, in bytes, with room to spare. */
const PROBE_BYTES = 16 * 1024;

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

/** A clock that shows less than when a request was sent, by more than this, in ms, has been set back: nothing tells how long ago that was. */
const SET_BACK_MS = 10 * 60 * 1000;

/**
 * The record in one file of SQLite, for the processes of one machine. Every step is one transaction that is on disk when
 * it resolves (WAL, `synchronous=FULL`).
 *
 * No clock of a machine is to be trusted both ways, so that each question asks the one that errs on the safe side:
 *
 * - Records are kept for 30 days, and leases run, by the {@link RunningClock}, which never runs fast. A machine's clock that leaps
 *   ahead forgets nothing, and one that is set back holds no key.
 * - What was sent is as old as the machine's clock or the running clock says, whichever says more, since the upstream must still
 *   know a request that is repeated. Where the machine's clock shows a time well before the sending, it is too old to be
 *   repeated. A leap ahead ends the time of repeating early: it looks just as the machine's sleep does, in which the
 *   upstream's 24 hours run on. Not noticed is a clock that is set back by more than an hour while no process runs, and
 *   shows a time after the sending all the same.
 *
 * @param now milliseconds since 1970
 * @param monotonic milliseconds since any moment, never set
 * @throws whatever `node:sqlite` throws when the file cannot be opened: a gateway that cannot keep records must not start.
 */
export function openSqliteRecords(
  path: string,
  now: () => number = Date.now,
  monotonic?: () => number,
): MoneyRecords {
  makePrivate(path);
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  const clock = transaction(db, () => {
    db.exec(SCHEMA);
    const hasSentClock = db.prepare("SELECT 1 FROM pragma_table_info('intent') WHERE name = 'sent_clock'");
    // A file of an earlier schema has no such column.
    if (hasSentClock.get() === undefined) db.exec('ALTER TABLE intent ADD COLUMN sent_clock INTEGER');
    return new RunningClock(db, now, monotonic);
  });

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
    UPDATE intent SET state = 'sent', body = :body, sent_at = :sentAt, sent_clock = :sentClock, expires_at = :expiresAt
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

  // Other bytes each time: SQLite does not write a page that stays as it was, so that a full disk would not be noticed.
  const probe = db.prepare(
    `INSERT OR REPLACE INTO probes (rowid, filler) VALUES (1, randomblob(${PROBE_BYTES}))`,
  );

  const claim = ({ clientId, hash }: RecordName, { owner, inputHash, leaseMs }: Claim): Claimed => {
    const at = clock.now();
    const leaseUntil = leaseEnd(at, leaseMs);
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
    return { state: 'sent', body: String(row['body']), ...sending(row, now(), at) };
  };

  /** Runs a step in a transaction that locks out other processes from its first read on. */
  const step = async <T>(name: string, run: () => T): Promise<T> => {
    try {
      return transaction(db, run);
    } catch (cause) {
      throw new StoreUnavailableError(name, cause);
    }
  };

  return {
    claim: (name, wanted) => step('claim', () => claim(name, wanted)),
    markSent: ({ clientId, hash }, owner, body) =>
      step('sent', () => {
        const sentClock = clock.now();
        const expiresAt = sentClock + RETENTION_MS;
        const values = { clientId, hash, owner, body, sentAt: now(), sentClock, expiresAt };
        return Number(markSent.run(values).changes) === 1;
      }),
    renew: ({ clientId, hash }, owner, leaseMs) =>
      step('renew', () => {
        renew.run(leaseEnd(clock.now(), leaseMs), clientId, hash, owner);
      }),
    answer: ({ clientId, hash }, inputHash, { kind, status, text }) =>
      step('answer', () => {
        const expiresAt = clock.now() + RETENTION_MS;
        answer.run({ clientId, hash, inputHash, kind, status, text, expiresAt });
      }),
    release: ({ clientId, hash }, owner) =>
      step('release', () => {
        release.run(clientId, hash, owner);
      }),
    isAvailable: () =>
      step('probe', () => probe.run()).then(
        () => true,
        () => false,
      ),
    stop: async () => {
      if (db.isOpen) db.close();
    },
  };
}

/** A lease that is over is so for every process at once: their views of the running clock differ by up to a second. */
const leaseEnd = (at: number, leaseMs: number): number => (leaseMs > 0 ? at + leaseMs : 0);

/**
 * When a request was sent, and how long ago that is at most.
 *
 * @param now by the machine's clock
 * @param at by the running clock
 */
function sending(row: Record<string, unknown>, now: number, at: number): Pick<Sent, 'sentAt' | 'ageMs'> {
  const sentAt = Number(row['sent_at']);
  if (now < sentAt - SET_BACK_MS) return { sentAt, ageMs: RETENTION_MS };
  // Null in a file of an earlier schema.
  const sentClock = row['sent_clock'] ?? at;
  return { sentAt, ageMs: Math.max(now - sentAt, at - Number(sentClock)) };
}

function storedAnswer(row: Record<string, unknown>): StoredAnswer {
  return {
    // The column is only ever written from a StoredAnswer.
    kind: row['answer_kind'] as StoredAnswer['kind'],
    status: Number(row['status']),
    text: String(row['text']),
  };
}
