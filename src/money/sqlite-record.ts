import { clock } from '../common/clock.ts';
import { disk } from '../common/disk.ts';
import { makePrivate } from '../common/private-file.ts';
import { RunningClock } from '../common/running-clock.ts';
import { transaction } from '../common/sqlite-transaction.ts';
import { listedAsked } from './asked.ts';
import type { RecordName } from './intent.ts';
import {
  answeredLine,
  askedLine,
  JOURNAL_RETENTION_MS,
  type NextLine,
  nextLine,
  nothingMovedLine,
  retriedLine,
  sentLine,
} from './journal.ts';
import { type Clocks, stampOf, systemBootClock } from './lived-time.ts';
import { FIRST_DUE_MS } from './open-records.ts';
import {
  type Claim,
  type Claimed,
  type MoneyRecords,
  PaymentsHeldError,
  RETENTION_MS,
  StoreUnavailableError,
} from './record.ts';
import { SqliteJournal } from './sqlite-journal.ts';
import { SqliteLedger } from './sqlite-ledger.ts';
import { SqliteOpen } from './sqlite-open.ts';
import { SqlitePayments, storedAnswer } from './sqlite-payments.ts';
import { makeTables } from './sqlite-schema.ts';
import { sending } from './sqlite-sending.ts';

/** How long a step waits for another process that is writing, in ms. The wait blocks this process. */
const BUSY_TIMEOUT_MS = 500;

/** As much as a request, its answer and their lines in the journal take, in bytes, with room to spare. */
const PROBE_BYTES = 32 * 1024;

/**
 * The record in one file of SQLite, for the processes of one machine. Every step is one transaction that is on disk when
 * it resolves (WAL, `synchronous=FULL`).
 *
 * No clock of a machine is to be trusted both ways, so that each question asks the one that errs on the safe side:
 *
 * - Records are kept for 30 days, and leases run, by the {@link RunningClock}, which never runs fast. A machine's clock that leaps
 *   ahead forgets nothing, and one that is set back holds no key.
 * - What was sent is as old as the machine's clock, the running clock or the kernel's says, whichever says most, since the
 *   upstream must still know a request that is repeated. The kernel's clock cannot be set and runs while no process does, but
 *   begins anew with the machine. Where the machine's clock shows a time well before the sending, it is too old to be
 *   repeated. A leap ahead ends the time of repeating early: it looks just as the machine's sleep does, in which the
 *   upstream's 24 hours run on. Not noticed is a clock that is set back by more than an hour, shows a time after the sending all
 *   the same, and is all that is left: the machine was started again, and no process ran meanwhile.
 *
 * @param now milliseconds since 1970
 * @param monotonic milliseconds since any moment, never set
 * @param boot the kernel's clock; undefined where there is none
 * @param journalMs how long lines of the journal are kept, in ms
 * @throws whatever `node:sqlite` throws when the file cannot be opened: a gateway that cannot keep records must not start.
 */
export function openSqliteRecords(
  path: string,
  now: () => number = () => clock.now(),
  monotonic?: () => number,
  boot = systemBootClock(),
  journalMs = JOURNAL_RETENTION_MS,
): MoneyRecords {
  const clocks: Clocks = { now, boot };
  makePrivate(path);
  const db = disk.open(path, BUSY_TIMEOUT_MS);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  const { clock, journal, ledger, open, payments } = transaction(db, () => {
    makeTables(db);
    const clock = new RunningClock(db, now, monotonic);
    const sendingOf = (row: Record<string, unknown>) => sending(row, clocks, clock.now());
    const rows = { now: () => clock.now(), sending: sendingOf };
    const payments = new SqlitePayments(db, rows);
    const journal = new SqliteJournal(db, now, journalMs);
    const ledger = new SqliteLedger(db, path, now());
    return { clock, journal, ledger, payments, open: new SqliteOpen(db, rows) };
  });

  const read = db.prepare('SELECT * FROM intent WHERE client_id = ? AND hash = ?');
  const expire = db.prepare('DELETE FROM intent WHERE expires_at <= ?');
  const take = db.prepare(`
    INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, expires_at, key_owner, twin, asked, asked_at,
      operation, customer_id, line)
    VALUES (:clientId, :hash, 'claimed', :owner, :leaseUntil, :inputHash, :expiresAt, :keyOwner, :twin, :asked, :askedAt,
      :operation, :customerId, :line)
    ON CONFLICT DO UPDATE SET
      key_owner = excluded.key_owner, twin = excluded.twin, owner = excluded.owner, lease_until = excluded.lease_until,
      input_hash = excluded.input_hash, expires_at = excluded.expires_at, asked = excluded.asked,
      asked_at = excluded.asked_at, operation = excluded.operation, customer_id = excluded.customer_id,
      line = excluded.line`);
  const describe = db.prepare(`
    UPDATE intent SET asked = :asked, asked_at = coalesce(sent_at, :askedAt), operation = :operation, customer_id = :customerId,
      line = :line
    WHERE client_id = :clientId AND hash = :hash AND asked IS NULL`);
  const countAgain = db.prepare(
    `UPDATE intent SET attempts = coalesce(attempts, 1) + 1
    WHERE client_id = ? AND hash = ? AND (state <> 'answered' OR answer_kind = 'unknown')`,
  );
  const takeOver = db.prepare(
    'UPDATE intent SET owner = ?, lease_until = ? WHERE client_id = ? AND hash = ?',
  );
  const markSent = db.prepare(`
    UPDATE intent SET state = 'sent', body = :body, sent_at = :wall, sent_clock = :sentClock, expires_at = :expiresAt,
      boot_id = :bootId, boot_ms = :bootMs, attempts = coalesce(attempts, 1), upstream_key = :upstreamKey, original = :original,
      due_at = :dueAt, epoch = (SELECT epoch FROM ledger)
    WHERE client_id = :clientId AND hash = :hash AND owner = :owner AND state IN ('claimed', 'sent')`);
  const renew = db.prepare(`
    UPDATE intent SET lease_until = ? WHERE client_id = ? AND hash = ? AND owner = ? AND state <> 'answered'`);
  const answer = db.prepare(`
    INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, answer_kind, status, text, expires_at,
      settled_at, transaction_id)
    VALUES (:clientId, :hash, 'answered', '', 0, :inputHash, :kind, :status, :text, :expiresAt, :settledAt, :transactionId)
    ON CONFLICT DO UPDATE SET
      state = excluded.state, answer_kind = excluded.answer_kind, status = excluded.status, text = excluded.text,
      expires_at = excluded.expires_at, body = CASE WHEN excluded.answer_kind = 'unknown' THEN body END,
      original = CASE WHEN excluded.answer_kind = 'unknown' THEN original END, upstream_key = NULL, settled_at = excluded.settled_at, transaction_id = excluded.transaction_id
    WHERE (state <> 'answered' OR answer_kind = 'unknown') AND input_hash = excluded.input_hash`);
  const release = db.prepare(`
    DELETE FROM intent WHERE client_id = ? AND hash = ? AND owner = ? AND state <> 'answered'`);

  // Other bytes each time: SQLite does not write a page that stays as it was, so that a full disk would not be noticed.
  const probe = db.prepare(
    `INSERT OR REPLACE INTO probes (rowid, filler) VALUES (1, randomblob(${PROBE_BYTES}))`,
  );

  const findTwin = db.prepare('SELECT * FROM intent WHERE client_id = ? AND twin = ?');

  /** A customer's intent of this client that has left, or may be about to. */
  const customersTwin = (clientId: string, twin: string, at: number): Claimed | undefined => {
    const row = findTwin.get(clientId, twin);
    if (row === undefined) return undefined;
    if (row['state'] === 'answered') return { state: 'customers', answer: storedAnswer(row) };
    if (Number(row['lease_until']) > at) return { state: 'busy' };
    return row['state'] === 'sent' ? { state: 'customers', answer: undefined } : undefined;
  };

  /** Adds the line that goes on with a payment. */
  const goOn = ({ clientId, hash }: RecordName, line: NextLine): void => {
    const begun = read.get(clientId, hash)?.['line'];
    journal.add(clientId, nextLine(line, typeof begun === 'string' ? begun : undefined, hash));
  };

  const claim = (name: RecordName, wanted: Claim): Claimed => {
    const { clientId, hash } = name;
    const { owner, inputHash, leaseMs, keyOwner, isCustomers } = wanted;
    /** Adds the line that begins the payment. */
    const begin = () => {
      journal.cut(clientId);
      return {
        asked: JSON.stringify(listedAsked(wanted.asked, inputHash)),
        askedAt: clocks.now(),
        operation: wanted.asked.operation,
        customerId: wanted.asked.customerId,
        line: journal.add(clientId, askedLine(wanted.asked, inputHash, name, wanted.requestId ?? '')),
      };
    };
    const at = clock.now();
    const leaseUntil = leaseEnd(at, leaseMs);
    expire.run(at);
    const row = read.get(clientId, hash);
    const free = row?.['owner'] === owner || Number(row?.['lease_until']) <= at;
    // Null in a record of a version before.
    if (row !== undefined && (row['key_owner'] ?? keyOwner) !== keyOwner) return { state: 'not-yours' };
    if (row === undefined || (row['state'] === 'claimed' && free)) {
      const twins = isCustomers ? undefined : customersTwin(clientId, wanted.twin, at);
      if (twins !== undefined) return twins;
      const twin = isCustomers ? wanted.twin : null;
      const expiresAt = at + RETENTION_MS;
      // A claim that is repeated by its owner has its line.
      if (row?.['owner'] === owner && row['input_hash'] === inputHash) {
        takeOver.run(owner, leaseUntil, clientId, hash);
        return { state: 'claimed' };
      }
      take.run({ clientId, hash, owner, leaseUntil, inputHash, expiresAt, keyOwner, twin, ...begin() });
      return { state: 'claimed' };
    }
    if (row['input_hash'] !== inputHash) return { state: 'other-input' };
    if (row['asked'] === null) describe.run({ clientId, hash, ...begin() });
    if (row['state'] === 'answered') return { state: 'answered', answer: storedAnswer(row) };
    if (row['state'] === 'claimed' || !free) return { state: 'busy' };
    takeOver.run(owner, leaseUntil, clientId, hash);
    return { state: 'sent', body: String(row['body']), ...sending(row, clocks, at) };
  };

  /** Runs a step in a transaction that locks out other processes from its first read on. */
  const step = async <T>(name: string, run: () => T): Promise<T> => {
    try {
      return transaction(db, run);
    } catch (cause) {
      // A transaction that failed is rolled back.
      throw cause instanceof StoreUnavailableError ? cause : new StoreUnavailableError(name, cause, true);
    }
  };

  /** Reads, and locks nobody out. */
  const look = async <T>(name: string, read: () => T): Promise<T> => {
    try {
      return read();
    } catch (cause) {
      throw new StoreUnavailableError(name, cause);
    }
  };

  return {
    claim: (name, wanted) => step('claim', () => claim(name, wanted)),
    markSent: async ({ clientId, hash }, owner, body, noted = NOTHING_NOTED) => {
      const mark = await step('sent', () => {
        const hold = ledger.held();
        if (hold !== undefined) throw new PaymentsHeldError(hold.why);
        const sentClock = clock.now();
        const expiresAt = sentClock + RETENTION_MS;
        const kept = { body, ...noted, ...stampOf(clocks), sentClock, dueAt: sentClock + FIRST_DUE_MS };
        const values = { clientId, hash, owner, ...kept, expiresAt };
        const wasSent = read.get(clientId, hash)?.['state'] === 'sent';
        if (Number(markSent.run(values).changes) !== 1) return undefined;
        if (!wasSent) goOn({ clientId, hash }, sentLine);
        return ledger.count();
      });
      if (mark !== undefined) ledger.tell(mark);
      return mark !== undefined;
    },
    renew: ({ clientId, hash }, owner, leaseMs) =>
      step('renew', () => {
        renew.run(leaseEnd(clock.now(), leaseMs), clientId, hash, owner);
      }),
    answer: (name, inputHash, told, transactionId, code) =>
      step('answer', () => {
        const { clientId, hash } = name;
        const { kind, status, text } = told;
        const expiresAt = clock.now() + RETENTION_MS;
        const settledAt = kind === 'unknown' ? null : clocks.now();
        const named = { settledAt, transactionId: transactionId?.toLowerCase() ?? null };
        const before = read.get(clientId, hash)?.['answer_kind'];
        const values = { clientId, hash, inputHash, kind, status, text, expiresAt, ...named };
        const isNews = Number(answer.run(values).changes) === 1 && before !== kind;
        if (isNews) goOn(name, answeredLine(told, transactionId, code));
      }),
    sentAgain: (name, requestId = '') =>
      step('sentAgain', () => {
        const { changes } = countAgain.run(name.clientId, name.hash);
        if (Number(changes) === 1) goOn(name, retriedLine(requestId));
      }),
    read: (name) => step('read', () => payments.read(name)),
    readByTransaction: (clientId, id) => step('read', () => payments.byTransaction(clientId, id)),
    search: (search) => step('search', () => payments.search(search)),
    clients: () => look('clients', () => [...new Set([...payments.clients(), ...journal.clients()])]),
    journal: {
      clients: () => look('journal', () => journal.clients()),
      head: (clientId) => look('journal', () => journal.head(clientId)),
      read: (clientId, after, limit) => look('journal', () => journal.read(clientId, after, limit)),
      lines: (clientId, ids) => look('journal', () => journal.lines(clientId, ids)),
    },
    idKey: (clientId) => step('idKey', () => payments.idKey(clientId)),
    due: (clientId, limit) => step('due', () => open.due(clientId, limit)),
    takeOpen: (name, owner, leaseMs) =>
      step('takeOpen', () => (ledger.held() === undefined ? open.take(name, owner, leaseMs) : undefined)),
    putOff: (name, owner, dueMs, seen) => step('putOff', () => open.putOff(name, owner, dueMs, seen)),
    hasten: (name) => step('hasten', () => open.hasten(name)),
    tidy: async () => {},
    release: (name, owner) =>
      step('release', () => {
        const row = read.get(name.clientId, name.hash);
        if (row?.['owner'] !== owner || row['state'] === 'answered') return;
        goOn(name, nothingMovedLine);
        release.run(name.clientId, name.hash, owner);
      }),
    isAvailable: () =>
      step('probe', () => probe.run()).then(
        () => true,
        () => false,
      ),
    held: () => step('held', () => ledger.held()),
    holdPayments: () => step('hold', () => ledger.stop(clocks.now())),
    resume: async () => ledger.tell(await step('resume', () => ledger.resume())),
    stop: async () => {
      if (db.isOpen) db.close();
    },
  };
}

const NOTHING_NOTED = { upstreamKey: null, original: null };

/** A lease that is over is so for every process at once: their views of the running clock differ by up to a second. */
const leaseEnd = (at: number, leaseMs: number): number => (leaseMs > 0 ? at + leaseMs : 0);
