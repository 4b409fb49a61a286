import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { isBehind, type Mark } from '../mark.ts';
import { type Hold, PaymentsHeldError } from '../record.ts';

/**
 * Counts the payments that have been sent, in the database and in the name of a file beside it. So it notices that the
 * database was put back: an earlier copy of it is behind the name. It also notices a folder that was put back as a whole, if
 * the file of the database is another one. It does not notice a snapshot of a disk.
 *
 * The name is written after the database, and not synced. So it may be behind, which means nothing, and is never ahead.
 */
export class SqliteLedger {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #now: () => number;
  readonly #newest: () => number | undefined;
  readonly #isCommand: boolean;
  #mark: Mark;

  /**
   * Compares database and name, and holds payments if the database was put back. To be made within a transaction.
   *
   * @param path of the database
   * @param now ms since the epoch
   * @param newest returns the time of the newest line of the journal, in ms since the epoch; undefined if there is none. It reads all
   *   lines, so it is called only where the record was put back
   * @param isCommand as `MoneyOptions` has it: {@link held} tells what it finds
   */
  constructor(
    db: DatabaseSync,
    path: string,
    now: () => number,
    newest: () => number | undefined,
    isCommand = false,
  ) {
    this.#db = db;
    this.#path = path;
    this.#now = now;
    this.#newest = newest;
    this.#isCommand = isCommand;
    db.exec(`
      CREATE TABLE IF NOT EXISTS ledger (
        epoch INTEGER NOT NULL, sent INTEGER NOT NULL, file TEXT NOT NULL, held_since INTEGER, missing INTEGER
      ) STRICT`);
    const known = db.prepare("SELECT name FROM pragma_table_info('ledger')").all();
    for (const added of ['stopped_since', 'copied'])
      if (!known.some(({ name }) => name === added))
        db.exec(`ALTER TABLE ledger ADD COLUMN ${added} INTEGER`);
    db.prepare(
      'INSERT INTO ledger (rowid, epoch, sent, file) VALUES (1, 0, 0, ?) ON CONFLICT DO NOTHING',
    ).run(this.#file());
    this.#mark = this.#outside();
    if (!isCommand) this.#compare();
  }

  /** Compares database and name, and notes in the database what that finds. */
  #compare(): void {
    const outside = this.#outside();
    const found = this.#behind(this.#row(), outside);
    if (found !== undefined) {
      this.#db
        .prepare(
          `UPDATE ledger SET copied = iif(held_since IS NULL, ?1, min(copied, ?1)),
          held_since = coalesce(held_since, ?2), missing = max(coalesce(missing, 0), ?3), epoch = max(epoch, ?4)`,
        )
        .run(found.copied ?? null, found.since, found.missing, outside.epoch);
    }
    this.#db.prepare('UPDATE ledger SET file = ?').run(this.#file());
  }

  /** Returns what shows that the database was put back, undefined if nothing does. */
  #behind(row: Record<string, unknown>, outside: Mark): Hold | undefined {
    const stored = { epoch: Number(row['epoch']), sent: Number(row['sent']) };
    const behind = isBehind(stored, outside);
    const moved = String(row['file']) !== this.#file() && stored.sent > 0;
    if (!behind && !moved) return undefined;
    const missing = behind ? Math.max(0, outside.sent - stored.sent) : 0;
    return { why: 'put-back', since: this.#now(), missing, copied: this.#newest() };
  }

  /** Returns each reason for which payments are held, an operator's first. */
  held(): readonly Hold[] {
    // Before the row: a gateway counts there first, so that a name which is read later may be ahead.
    const outside = this.#isCommand ? this.#outside() : undefined;
    const row = this.#row();
    const { held_since: since, missing, stopped_since: stopped, copied } = row;
    const holds: Hold[] = [];
    if (stopped !== null)
      holds.push({ why: 'stopped', since: Number(stopped), missing: 0, copied: undefined });
    if (since !== null) {
      const last = copied === null ? undefined : Number(copied);
      holds.push({ why: 'put-back', since: Number(since), missing: Number(missing), copied: last });
    } else if (outside !== undefined) {
      const found = this.#behind(row, outside);
      if (found !== undefined) holds.push({ ...found, isUnnoted: true });
    }
    return holds;
  }

  /** Counts a payment, within the transaction that records its sending. To be followed by {@link nameFile}. */
  count(): Mark {
    const row = this.#db.prepare('UPDATE ledger SET sent = sent + 1 RETURNING epoch, sent').get();
    return { epoch: Number(row?.['epoch']), sent: Number(row?.['sent']) };
  }

  /** Renames the file beside the database, once the count is on the disk. */
  nameFile(mark: Mark): void {
    if (!isBehind(this.#mark, mark)) return;
    const next = this.#nameOf(mark);
    try {
      renameSync(this.#nameOf(this.#mark), next);
    } catch {
      // Another process of this folder has renamed it, or there is none yet.
      try {
        writeFileSync(next, '', { mode: 0o600 });
      } catch {
        // The disk has no room for the name. It stays behind, as after a crash.
        return;
      }
    }
    this.#mark = mark;
  }

  /** Stops payments until {@link resume}, because an operator has decided so. @param now ms since the epoch */
  stopPayments(now: number): void {
    this.#db.prepare('UPDATE ledger SET stopped_since = coalesce(stopped_since, ?)').run(now);
  }

  /**
   * Lets payments go on. Begins an epoch if the record was put back. To be called within a transaction, and followed by
   * {@link nameFile}.
   *
   * @param isCompared as `MoneyRecords` has it
   * @throws {PaymentsHeldError} as there
   */
  resume(isCompared: boolean): Mark {
    if (!isCompared && this.held().some(({ why }) => why === 'put-back'))
      throw new PaymentsHeldError('put-back');
    // The epoch that begins has to be later than the one outside.
    if (this.#isCommand) this.#compare();
    this.#db
      .prepare(
        'UPDATE ledger SET epoch = epoch + (held_since IS NOT NULL), held_since = NULL, missing = NULL, copied = NULL, stopped_since = NULL',
      )
      .run();
    const row = this.#row();
    return { epoch: Number(row['epoch']), sent: Number(row['sent']) };
  }

  #row(): Record<string, unknown> {
    return this.#db.prepare('SELECT * FROM ledger').get() ?? {};
  }

  /** Returns the highest mark among the names. An interrupted process or a copied folder may have left several. */
  #outside(): Mark {
    const marks = namesIn(this.#path).map(({ mark }) => mark);
    const highest = marks.reduce((one, other) => (isBehind(one, other) ? other : one), { epoch: 0, sent: 0 });
    for (const { name, mark } of this.#isCommand ? [] : namesIn(this.#path)) {
      if (isBehind(mark, highest)) rmSync(join(dirname(this.#path), name), { force: true });
    }
    return highest;
  }

  #nameOf({ epoch, sent }: Mark): string {
    return `${this.#path}-mark-${epoch}-${sent}`;
  }

  /** Returns what identifies the file until it is copied. The inode number alone may be given to a later file. */
  #file(): string {
    const { ino, birthtimeNs } = statSync(this.#path, { bigint: true });
    return `${ino} ${birthtimeNs}`;
  }
}

function namesIn(path: string): readonly { readonly name: string; readonly mark: Mark }[] {
  return readdirSync(dirname(path)).flatMap((name) => {
    if (!name.startsWith(`${basename(path)}-mark-`)) return [];
    const [, epoch, sent] = /-mark-(\d+)-(\d+)$/.exec(name) ?? [];
    return epoch === undefined ? [] : [{ name, mark: { epoch: Number(epoch), sent: Number(sent) } }];
  });
}
