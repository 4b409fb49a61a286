import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../errors.ts';
import type { Appended, NewEvent } from '../log.ts';
import { SqliteBatch } from '../sqlite/batch.ts';
import { integer, openExclusive, PROBE_SCHEMA, probe, text } from '../sqlite/file.ts';
import { removeDatabase } from './earlier-spools.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS spool (
    number INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL, type TEXT NOT NULL, identity TEXT NOT NULL,
    contents TEXT NOT NULL, event TEXT NOT NULL, UNIQUE (client, type, identity)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS spool_order ON spool (client, number);
${PROBE_SCHEMA}`;

/** More processes than this on one folder are refused a spool. */
const MOST_FILES = 256;

/** How much is drained in one step. */
const STEP = { events: 64, size: 1024 * 1024 } as const;

/** A file that is named like a spool, and whose events, if it holds any, cannot be reached. */
export interface UnreadableSpool {
  /** Without the folder. */
  readonly name: string;
  readonly reason: string;
}

/** An event that waits, with its place in the queue. */
export interface Spooled {
  readonly number: number;
  readonly event: NewEvent;
}

/**
 * Events kept on this machine while the log is away, in the order they came. One file, locked to one process, synced at
 * every commit. Only events whose answer is 201 whatever the log knows are ever in it.
 */
export class Spool {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #batch: SqliteBatch;
  readonly #counts = new Map<string, number>();
  /** Up to where each client's queue is in the log, whether or not it could be deleted here. */
  readonly #released = new Map<string, number>();
  readonly #statements: Record<'find' | 'add' | 'first' | 'remove', StatementSync>;

  private constructor(path: string, database: DatabaseSync) {
    this.path = path;
    this.#database = database;
    this.#batch = new SqliteBatch(database);
    for (const row of database.prepare('SELECT client, count(*) AS count FROM spool GROUP BY client').all()) {
      this.#counts.set(text(row['client']), integer(row['count']));
    }
    this.#statements = {
      find: database.prepare('SELECT contents FROM spool WHERE client = ? AND type = ? AND identity = ?'),
      add: database.prepare(
        'INSERT INTO spool (client, type, identity, contents, event) VALUES (?, ?, ?, ?, ?)',
      ),
      first: database.prepare(
        'SELECT number, event FROM spool WHERE client = ? AND number > ? ORDER BY number LIMIT ?',
      ),
      remove: database.prepare('DELETE FROM spool WHERE client = ? AND number <= ?'),
    };
  }

  /**
   * The first file of the folder that no other process has, with whatever a former one left in it. One that holds
   * something else than a spool is passed over; `openAbandoned` names it.
   *
   * @param damaged paths of spools that are not to be taken: what is added to one could not be read again
   * @throws when the folder cannot be written
   */
  static open(dataDir: string, damaged: ReadonlySet<string> = new Set()): Spool {
    for (let index = 0; index < MOST_FILES; index += 1) {
      const path = join(dataDir, `spooled-${index}.sqlite`);
      if (damaged.has(path)) continue;
      try {
        const spool = Spool.#openFile(path);
        if (spool !== undefined) return spool;
      } catch (error) {
        // The next file would fail likewise where an empty one, or none, could be made here.
        if (!isFilled(path)) throw error;
      }
    }
    throw new Error(`${dataDir} holds ${MOST_FILES} spools that are in use`);
  }

  /**
   * Spools that no process has and that hold events, as a process that ended leaves them, and the files that cannot be
   * opened. A file of this process is never opened again, and neither is one of another process.
   *
   * @param own the paths of the spools that this process has
   * @param earlier names of spools of earlier versions that nobody uses any more; an empty one is removed
   * @throws when the folder cannot be read
   */
  static openAbandoned(
    dataDir: string,
    own: readonly string[],
    earlier: readonly string[],
  ): { readonly abandoned: readonly Spool[]; readonly unreadable: readonly UnreadableSpool[] } {
    const abandoned: Spool[] = [];
    const unreadable: UnreadableSpool[] = [];
    for (const name of readdirSync(dataDir)) {
      const path = join(dataDir, name);
      if (!(isSpoolName(name) || earlier.includes(name)) || own.includes(path)) continue;
      try {
        const spool = Spool.#openFile(path);
        if (spool === undefined) continue;
        if (spool.size > 0) abandoned.push(spool);
        else spool.leave();
      } catch (error) {
        unreadable.push({ name, reason: String(error) });
      }
    }
    return { abandoned, unreadable };
  }

  static #openFile(path: string): Spool | undefined {
    const database = openExclusive(path, SCHEMA);
    if (database === undefined) return undefined;
    try {
      return new Spool(path, database);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  get name(): string {
    return basename(this.path);
  }

  /** How many events wait. */
  get size(): number {
    return this.#counts.values().reduce((sum, count) => sum + count, 0);
  }

  /** Whether events of this client wait. */
  has(clientId: string): boolean {
    return this.#counts.has(clientId);
  }

  get clients(): readonly string[] {
    return [...this.#counts.keys()];
  }

  /** Keeps an event, or recognises it. Throws `StoreUnavailableError`. */
  async add(clientId: string, event: NewEvent): Promise<Appended> {
    const known = await this.#write(() => {
      const found = this.find(clientId, event);
      if (found === undefined) {
        const { type, identity, contents } = event;
        this.#statements.add.run(clientId, type, identity, contents, JSON.stringify(event));
      }
      return found;
    });
    if (known !== undefined) return known;
    this.#counts.set(clientId, (this.#counts.get(clientId) ?? 0) + 1);
    return { answer: { status: 201 }, duplicate: false, conflict: false, cursor: null };
  }

  /** What was answered to a message that waits here; undefined for any other. */
  find(
    clientId: string,
    { type, identity, contents }: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Appended | undefined {
    const row = this.#statements.find.get(clientId, type, identity);
    if (row === undefined) return undefined;
    const conflict = text(row['contents']) !== contents;
    return { answer: { status: 201 }, duplicate: true, conflict, cursor: null };
  }

  /** The events that a client's queue begins with, as many as make up one step of draining. */
  first(clientId: string): Spooled[] {
    const rows = this.#statements.first.all(clientId, this.#released.get(clientId) ?? 0, STEP.events);
    let size = 0;
    const fitting = rows.filter((row, index) => {
      size += text(row['event']).length;
      return index === 0 || size <= STEP.size;
    });
    return fitting.map((row) => ({
      number: integer(row['number']),
      // Written by `add`, in a file that no one else writes.
      event: JSON.parse(text(row['event'])) as NewEvent,
    }));
  }

  /**
   * Forgets the events that the queue begins with: they are in the log now. On a disk that is full they cannot be deleted,
   * and are sent to the log once more after the next start, which does no harm.
   *
   * @throws {StoreUnavailableError} when they could not be deleted
   */
  async release(clientId: string, spooled: readonly Spooled[]): Promise<void> {
    const last = spooled.at(-1)?.number;
    if (last === undefined) return;
    this.#released.set(clientId, last);
    const left = (this.#counts.get(clientId) ?? 0) - spooled.length;
    if (left > 0) this.#counts.set(clientId, left);
    else this.#counts.delete(clientId);
    await this.#write(() => this.#statements.remove.run(clientId, last));
  }

  /** Whether an event of any size could be kept now: as much is written to find out. */
  async isWritable(): Promise<boolean> {
    try {
      await this.#write(() => probe(this.#database));
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#database.close();
  }

  /** Closes an empty spool that this process does not add to. One of an earlier version is removed: no other will have that name. */
  leave(): void {
    // While it is still locked to this process.
    if (!isSpoolName(this.name)) removeDatabase(this.path);
    this.close();
  }

  async #write<T>(work: () => T): Promise<T> {
    try {
      return await this.#batch.run(work);
    } catch (cause) {
      throw new StoreUnavailableError('The spool could not be written.', { cause });
    }
  }
}

/** Whether a file of `DATA_DIR` is, or should be, a spool. */
export function isSpoolName(name: string): boolean {
  return /^spooled-\d+\.sqlite$/.test(name);
}

/** Whether anything is at the path but an empty file. */
function isFilled(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (!found.isFile() || found.size > 0);
}
