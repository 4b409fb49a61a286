import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RunningClock } from '../../common/running-clock.ts';
import { isRepeatable, type RecordName } from '../intent.ts';
import { askedLine } from '../journal/journal.ts';
import type { Clocks } from '../lived-time.ts';
import { packSummary } from '../order-summary.ts';
import { type Begun, type Claim, type Claimed, RETENTION_MS } from '../record.ts';
import { sending } from './sending.ts';
import type { SqliteJournal } from './sqlite-journal.ts';
import { storedAnswer } from './sqlite-payment-reads.ts';

type Row = Readonly<Record<string, unknown>>;

/** How much a record decides for the same payment of another: one that is done most of all. */
const RANK = { free: 0, refused: 1, open: 2, held: 3, done: 4 } as const;

function rankOf(row: Row, at: number): number {
  if (row['state'] === 'answered')
    return { done: RANK.done, refused: RANK.refused }[String(row['answer_kind'])] ?? RANK.open;
  if (Number(row['lease_until']) > at) return RANK.held;
  return row['state'] === 'sent' ? RANK.open : RANK.free;
}

/**
 * Records past their time that one step deletes at most. It is more than a payment makes, so that what is left goes with the next ones;
 * until then it counts for nothing.
 */
export const EXPIRED_AT_ONCE = 16;

/** The parts that the steps of a record in a file share. */
export interface SqliteParts {
  readonly db: DatabaseSync;
  /** The clock of leases and of how long records are kept. */
  readonly clock: RunningClock;
  readonly clocks: Clocks;
  readonly journal: SqliteJournal;
}

/** Takes keys in the database of `openSqliteRecords`. To be called within a transaction. */
export class SqliteClaims {
  readonly #parts: SqliteParts;
  readonly #read: StatementSync;
  readonly #findTwins: StatementSync;
  readonly #passOver: StatementSync;
  readonly #expire: StatementSync;
  readonly #forget: StatementSync;
  readonly #take: StatementSync;
  readonly #describe: StatementSync;
  readonly #takeOver: StatementSync;

  constructor(parts: SqliteParts) {
    const { db } = parts;
    this.#parts = parts;
    this.#read = db.prepare('SELECT * FROM intent WHERE client_id = ? AND hash = ? AND expires_at > ?');
    this.#findTwins = db.prepare('SELECT * FROM intent WHERE client_id = ? AND twin = ? AND expires_at > ?');
    this.#passOver = db.prepare(
      "UPDATE intent SET owner = '', passed_by = ? WHERE client_id = ? AND hash = ?",
    );
    this.#expire = db.prepare(`
      DELETE FROM intent WHERE rowid IN
        (SELECT rowid FROM intent WHERE expires_at <= ? ORDER BY expires_at LIMIT ${EXPIRED_AT_ONCE})`);
    this.#forget = db.prepare('DELETE FROM intent WHERE client_id = ? AND hash = ? AND expires_at <= ?');
    this.#take = db.prepare(`
      INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, expires_at, key_owner, twin, asked, asked_at,
        operation, customer_id, line)
      VALUES (:clientId, :hash, 'claimed', :owner, :leaseUntil, :inputHash, :expiresAt, :keyOwner, :twin, :asked, :askedAt,
        :operation, :customerId, :line)
      ON CONFLICT DO UPDATE SET
        key_owner = excluded.key_owner, twin = excluded.twin, passed_by = NULL, owner = excluded.owner, lease_until = excluded.lease_until,
        input_hash = excluded.input_hash, expires_at = excluded.expires_at, asked = excluded.asked,
        asked_at = excluded.asked_at, operation = excluded.operation, customer_id = excluded.customer_id,
        line = excluded.line`);
    this.#describe = db.prepare(`
      UPDATE intent SET asked = :asked, asked_at = coalesce(sent_at, :askedAt), operation = :operation, customer_id = :customerId,
        line = :line
      WHERE client_id = :clientId AND hash = :hash AND asked IS NULL`);
    this.#takeOver = db.prepare(
      'UPDATE intent SET owner = ?, lease_until = ? WHERE client_id = ? AND hash = ?',
    );
  }

  claim(name: RecordName, wanted: Claim): Claimed {
    const { clientId, hash } = name;
    const { owner, inputHash, leaseMs, keyOwner } = wanted;
    const at = this.#parts.clock.now();
    this.#expire.run(at);
    this.#forget.run(clientId, hash, at);
    const row = this.#read.get(clientId, hash, at);
    const free = row?.['owner'] === owner || Number(row?.['lease_until']) <= at;
    // Null in a record of an earlier version.
    if (row !== undefined && (row['key_owner'] ?? keyOwner) !== keyOwner) return { state: 'not-yours' };
    if (row === undefined || (row['state'] === 'claimed' && free)) {
      return this.#fresh(name, wanted, row, at);
    }
    if (row['input_hash'] !== inputHash) return { state: 'other-input' };
    if (row['asked'] === null)
      this.#describe.run({ clientId, hash, ...this.#begin(name, inputHash, wanted) });
    if (row['state'] === 'answered') return { state: 'answered', answer: storedAnswer(row) };
    if (row['state'] === 'claimed' || !free) return { state: 'busy' };
    if (isRepeatable(wanted.asked.operation))
      this.#takeOver.run(owner, leaseEnd(at, leaseMs), clientId, hash);
    return { state: 'sent', body: String(row['body']), ...sending(row, this.#parts.clocks, at) };
  }

  /** Takes a key under which nothing has been sent. @param row the record that an earlier claim has left under it */
  #fresh(name: RecordName, wanted: Claim, row: Row | undefined, at: number): Claimed {
    const { clientId, hash } = name;
    const { owner, inputHash, keyOwner, isCustomers } = wanted;
    if (this.#isUnderOther(clientId, wanted, at)) return { state: 'not-yours' };
    const elsewhere = isCustomers
      ? this.#passedOver(name, wanted, row, at)
      : this.#customersTwin(name, wanted, at);
    if (elsewhere !== undefined) return elsewhere;
    const leaseUntil = leaseEnd(at, wanted.leaseMs);
    // A claim that its owner repeats has its line already.
    if (row?.['owner'] === owner && row['input_hash'] === inputHash) {
      this.#takeOver.run(owner, leaseUntil, clientId, hash);
      return { state: 'claimed' };
    }
    const twin = isCustomers ? wanted.twin : null;
    const expiresAt = at + RETENTION_MS;
    const begun = this.#begin(name, inputHash, wanted);
    this.#take.run({ clientId, hash, owner, leaseUntil, inputHash, expiresAt, keyOwner, twin, ...begun });
    return { state: 'claimed' };
  }

  /** Makes a record that is gone, of what was sent under it, for its answer. */
  beginAgain(name: RecordName, inputHash: string, begun: Begun): void {
    const own = {
      ...name,
      inputHash,
      keyOwner: begun.keyOwner,
      owner: '',
      leaseUntil: 0,
      twin: begun.isCustomers ? begun.twin : null,
    };
    const expiresAt = this.#parts.clock.now() + RETENTION_MS;
    this.#take.run({ ...own, expiresAt, ...this.#begin(name, inputHash, begun) });
  }

  /** Whether this owner has a record under its other name: the first owner may have given the first name up since it was made. */
  #isUnderOther(clientId: string, { keyOwner, other }: Claim, at: number): boolean {
    const row = this.#read.get(clientId, other.hash, at);
    return row !== undefined && (!other.isFirst || (row['key_owner'] ?? keyOwner) === keyOwner);
  }

  /** Finds an intent of a customer of this client that was sent, or may be about to be. */
  #customersTwin(name: RecordName, { twin, inputHash }: Claim, at: number): Claimed | undefined {
    const found = this.#decisive(this.#findTwins.all(name.clientId, twin, at), name, inputHash, at);
    if (found === undefined) return undefined;
    if (found.rank === RANK.held) return { state: 'busy' };
    const isAnswered = found.row['state'] === 'answered';
    return { state: 'customers', answer: isAnswered ? storedAnswer(found.row) : undefined };
  }

  /** Finds the payment of a call for the whole client that has passed this customer's record over. */
  #passedOver(name: RecordName, { inputHash }: Claim, row: Row | undefined, at: number): Claimed | undefined {
    const passedBy = row?.['passed_by'];
    if (typeof passedBy !== 'string' || row?.['input_hash'] !== inputHash) return undefined;
    const other = this.#read.get(name.clientId, passedBy, at);
    const found = this.#decisive(other === undefined ? [] : [other], name, inputHash, at);
    if (found === undefined || found.rank === RANK.refused) return undefined;
    return { state: found.rank === RANK.held ? 'busy' : 'passed-over' };
  }

  /**
   * Finds among these records the one that decides. Where none has been sent, takes them from the calls that have let their leases end,
   * so that none of those can send.
   */
  #decisive(
    rows: readonly Row[],
    { clientId, hash }: RecordName,
    inputHash: string,
    at: number,
  ): { readonly row: Row; readonly rank: number } | undefined {
    const alike = rows.filter((row) => row['input_hash'] === inputHash);
    const [first] = alike
      .map((row) => ({ row, rank: rankOf(row, at) }))
      .filter(({ rank }) => rank > RANK.free)
      .sort((one, other) => other.rank - one.rank);
    if (first === undefined) for (const row of alike) this.#passOver.run(hash, clientId, String(row['hash']));
    return first;
  }

  /** Adds the first line of the payment to the journal. */
  #begin(name: RecordName, inputHash: string, { asked, requestId = '' }: Begun) {
    const { journal, clocks } = this.#parts;
    journal.cut(name.clientId);
    return {
      asked: JSON.stringify(packSummary(asked, inputHash)),
      askedAt: clocks.now(),
      operation: asked.operation,
      customerId: asked.customerId,
      line: journal.add(name.clientId, askedLine(asked, inputHash, name, requestId)),
    };
  }
}

/**
 * Returns the end of a lease. A lease of 0 ms has ended for every process at once, although their views of the running clock
 * differ by up to a second.
 */
export const leaseEnd = (at: number, leaseMs: number): number => (leaseMs > 0 ? at + leaseMs : 0);
