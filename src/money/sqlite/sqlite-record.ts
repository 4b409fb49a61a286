import { clock } from '../../common/clock.ts';
import { disk } from '../../common/disk.ts';
import { makePrivate } from '../../common/private-file.ts';
import { rootReason } from '../../common/root-reason.ts';
import { RunningClock } from '../../common/running-clock.ts';
import { snapshot, transaction } from '../../common/sqlite-transaction.ts';
import { JOURNAL_RETENTION_MS } from '../journal/journal.ts';
import { type Clocks, systemBootClock } from '../lived-time.ts';
import { type MoneyRecords, PaymentsHeldError, RecordsUnavailableError } from '../record.ts';
import { OtherRefundError } from '../record-parts.ts';
import { SqliteClaims } from './claim.ts';
import { SqliteLedger } from './ledger.ts';
import { makeTables } from './schema.ts';
import { sending } from './sending.ts';
import { SqliteJournal } from './sqlite-journal.ts';
import { SqliteOpen } from './sqlite-open-records.ts';
import { type RowClock, SqlitePayments } from './sqlite-payment-reads.ts';
import { SqliteReadings } from './sqlite-readings.ts';
import { SqliteSteps } from './steps.ts';

/** How long a step of a gateway waits for another process that is writing, in ms. The wait blocks this process. */
const BUSY_TIMEOUT_MS = 500;

/** As many bytes as a request, its answer and their lines in the journal take, with room to spare. */
const PROBE_BYTES = 32 * 1024;

/**
 * The record in one file of SQLite, for the processes of one machine. Every step is one transaction that is on disk when it
 * resolves (WAL, `synchronous=FULL`). What only reads sees the last of them, locks nobody out and waits for nobody: a command that lists
 * all payments would keep a gateway from paying.
 *
 * Every clock of a machine can be wrong in one direction, so each question uses the clock that errs on the safe side:
 *
 * - How long records are kept, and how long leases run, is measured by the {@link RunningClock}, which never runs fast. If
 *   the machine's clock leaps ahead, nothing is forgotten; if it is set back, no key is held longer. A line of the journal is cut off
 *   once it is too old by that clock and by the machine's.
 * - The age of a sent request is the greatest that the machine's clock, the running clock or the kernel's clock gives,
 *   because the upstream must still know a request that is repeated. The kernel's clock cannot be set, and runs while no
 *   process does, but starts again with the machine. If the machine's clock shows a time well before the sending, the request
 *   is too old to be repeated. A leap ahead ends the time of repeating early: it looks like the machine's sleep, in which the
 *   upstream's 24 hours go on. One case is not noticed: the machine was started again, no process ran meanwhile, and its
 *   clock was set back by more than an hour to a time that is still after the sending.
 *
 * @param now milliseconds since 1970
 * @param monotonic milliseconds since any moment, never set
 * @param boot the kernel's clock; undefined where there is none
 * @param journalMs how long lines of the journal are kept, in ms
 * @param busyTimeoutMs how long a step waits for another process that is writing, in ms; this process does nothing else
 * meanwhile
 * @param isCommand as `MoneyOptions` has it
 * @throws whatever `node:sqlite` throws when the file cannot be opened: a gateway that cannot keep records must not start.
 */
export function openSqliteRecords(
  path: string,
  now: () => number = () => clock.now(),
  monotonic?: () => number,
  boot = systemBootClock(),
  journalMs = JOURNAL_RETENTION_MS,
  busyTimeoutMs = BUSY_TIMEOUT_MS,
  isCommand = false,
): MoneyRecords {
  makePrivate(path);
  const db = opened(path, () => disk.open(path, busyTimeoutMs));
  const parts = opened(path, () => {
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    return transaction(db, () => openParts(db, path, { now, boot }, monotonic, journalMs, isCommand));
  });
  // The bytes differ each time: SQLite does not write a page that has not changed, so a full disk would not be noticed.
  const probe = db.prepare(
    `INSERT OR REPLACE INTO probes (rowid, filler) VALUES (1, randomblob(${PROBE_BYTES}))`,
  );

  let problem: string | undefined;

  /** Runs a step in a transaction that locks out other processes from its first read on. */
  const step = async <T>(name: string, run: () => T): Promise<T> => {
    try {
      return transaction(db, run);
    } catch (cause) {
      // The transaction was rolled back, so the step was not done.
      const isSaid = cause instanceof RecordsUnavailableError || cause instanceof OtherRefundError;
      throw isSaid ? cause : new RecordsUnavailableError(name, cause, true);
    }
  };
  /** Reads what belongs together, without a lock. */
  const look: Step = async (name, read) => {
    try {
      return snapshot(db, read);
    } catch (cause) {
      throw new RecordsUnavailableError(name, cause);
    }
  };
  return {
    ...stepsOf(parts, step),
    ...readsOf(parts, step, look),
    ...holdsOf(parts, now, step, look),
    isAvailable: async () => {
      problem = await step('probe', () => probe.run()).then(
        () => undefined,
        (error: unknown) => `The record of payments in DATA_DIR cannot be written: ${reasonOf(error)}.`,
      );
      return problem === undefined;
    },
    problem: () => problem,
    stop: async () => {
      if (db.isOpen) db.close();
    },
  };
}

/** The words of SQLite, and who has the file where another program does. */
function reasonOf(error: unknown): string {
  const reason = rootReason(error);
  return reason === 'database is locked'
    ? `${reason} by another program, such as a sqlite3 with an open transaction`
    : reason;
}

/** @throws an error that names the file and says why it cannot be opened */
function opened<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    throw new Error(`${path} cannot be opened: ${reasonOf(cause)}.`, { cause });
  }
}

/** Runs a function in a transaction. The name is for its error. */
type Step = <T>(name: string, run: () => T) => Promise<T>;

type Parts = ReturnType<typeof openParts>;

/** To be called within a transaction. */
function openParts(
  db: ReturnType<typeof disk.open>,
  path: string,
  clocks: Clocks,
  monotonic: (() => number) | undefined,
  journalMs: number,
  isCommand: boolean,
) {
  makeTables(db);
  const clock = new RunningClock(db, clocks.now, monotonic);
  const rowsBy = (time: () => number): RowClock => ({
    now: time,
    sending: (row) => sending(row, clocks, time()),
  });
  const payments = new SqlitePayments(
    db,
    rowsBy(() => clock.peek()),
  );
  const earliest = () => Math.min(clocks.now(), clock.now());
  const journal = new SqliteJournal(db, clocks.now, earliest, journalMs);
  const ledger = new SqliteLedger(db, path, clocks.now, () => journal.newest(), isCommand);
  const open = new SqliteOpen(
    db,
    rowsBy(() => clock.now()),
  );
  const readings = new SqliteReadings(db, () => clock.now());
  const parts = { db, clock, clocks, journal };
  return {
    journal,
    ledger,
    payments,
    open,
    readings,
    claims: new SqliteClaims(parts),
    steps: new SqliteSteps(parts),
  };
}

/** The methods that change a record. */
function stepsOf({ claims, steps, ledger, open }: Parts, step: Step) {
  return {
    claim: (name, wanted) => step('claim', () => claims.claim(name, wanted)),
    markSent: async (name, owner, body, details) => {
      const mark = await step('sent', () => {
        const [hold] = ledger.held();
        if (hold !== undefined) throw new PaymentsHeldError(hold.why);
        return steps.markSent(name, owner, body, details) ? ledger.count() : undefined;
      });
      if (mark !== undefined) ledger.nameFile(mark);
      return mark !== undefined;
    },
    renew: (name, owner, leaseMs) => step('renew', () => steps.renew(name, owner, leaseMs)),
    answer: (name, inputHash, told, transactionId, code, begun) =>
      step('answer', () => {
        const again = begun && (() => claims.beginAgain(name, inputHash, begun));
        return steps.answer(name, inputHash, told, { transactionId, code }, again);
      }),
    sentAgain: (name, requestId = '') => step('sentAgain', () => steps.sentAgain(name, requestId)),
    release: (name, owner) => step('release', () => steps.release(name, owner)),
    due: (clientId, limit) => step('due', () => open.due(clientId, limit)),
    takeOpen: (name, owner, leaseMs, isAsked = false) =>
      // While payments are stopped, what is only looked for is: `settleOpen` sends nothing then.
      step('takeOpen', () =>
        ledger.held().some(({ why }) => why === 'put-back')
          ? undefined
          : open.take(name, owner, leaseMs, isAsked),
      ),
    putOff: (taken, dueMs, seen) => step('putOff', () => open.putOff(taken, dueMs, seen)),
    hasten: (name) => step('hasten', () => open.hasten(name)),
    tidy: async () => {},
  } satisfies Partial<MoneyRecords>;
}

/** The methods that read records, the journal and the readings of balances. */
function readsOf({ payments, journal, readings, steps }: Parts, step: Step, look: Step) {
  return {
    read: (name) => look('read', () => payments.read(name)),
    readByTransactions: (clientId, ids) =>
      look('read', () => ids.map((id) => payments.byTransaction(clientId, id))),
    // Its only copy is the file.
    confirmReads: async () => {},
    refundOf: (clientId, credit) => look('read', () => steps.refundOf(clientId, credit)),
    search: (search) => look('search', () => payments.search(search)),
    clients: () => look('clients', () => [...new Set([...payments.clients(), ...journal.clients()])]),
    journal: {
      clients: () => look('journal', () => journal.clients()),
      head: (clientId) => look('journal', () => journal.head(clientId)),
      read: (clientId, after, limit) => look('journal', () => journal.read(clientId, after, limit)),
      lines: (clientId, ids) => look('journal', () => journal.lines(clientId, ids)),
    },
    readings: {
      take: (clientId, owner, leaseMs) => step('readings', () => readings.take(clientId, owner, leaseMs)),
      keep: (clientId, owner, text, dueMs) =>
        step('readings', () => readings.keep(clientId, owner, text, dueMs)),
    },
    idKey: (clientId) => step('idKey', () => payments.idKey(clientId)),
  } satisfies Partial<MoneyRecords>;
}

function holdsOf({ ledger }: Parts, now: () => number, step: Step, look: Step) {
  return {
    held: () => look('held', () => ledger.held()),
    isPutBack: () => look('held', () => ledger.held().some(({ why }) => why === 'put-back')),
    holdPayments: () => step('hold', () => ledger.stopPayments(now())),
    resume: async (isCompared) => ledger.nameFile(await step('resume', () => ledger.resume(isCompared))),
  } satisfies Partial<MoneyRecords>;
}
