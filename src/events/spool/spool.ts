import { basename } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { parseStored } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Appended, NewEvent } from '../log.ts';
import { SqliteBatch } from '../sqlite/batch.ts';
import { integer, isCorruption, openExclusive, PROBE_SCHEMA, probe, text } from '../sqlite/file.ts';
import { isEarlierSpoolName, removeDatabase } from './earlier-spools.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS spool (
    number INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL, type TEXT NOT NULL, identity TEXT NOT NULL,
    contents TEXT NOT NULL, event TEXT NOT NULL, UNIQUE (client, type, identity)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS spool_order ON spool (client, number);
${PROBE_SCHEMA}`;

/** How many events and UTF-16 code units are drained in one step. */
const STEP = { events: 64, size: 1024 * 1024 } as const;

/** What a message is recognised by. */
type Message = Pick<NewEvent, 'type' | 'identity' | 'contents'>;

/** An event that waits, with its place in the queue. */
export interface Spooled {
  readonly number: number;
  readonly event: NewEvent;
}

/**
 * Keeps events on this machine while the log is away, in the order in which they came: in one file, locked to one process,
 * synced at every commit. It holds only events whose answer is 201 whatever the log knows.
 */
export class Spool {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #batch: SqliteBatch;
  /** By client: how many events wait, and the number of the last of them. */
  readonly #queues = new Map<string, { readonly count: number; readonly last: number }>();
  /** By client: up to which event the queue is in the log already, also if those events could not be deleted here. */
  readonly #released = new Map<string, number>();
  /** By client: up to which event the log has taken the queue, and in which history of its data, though it may still lose it. */
  readonly #published = new Map<string, { readonly number: number; readonly history: string }>();
  /** Clients of which events are in the log, and could not be deleted here. */
  readonly #undeleted = new Set<string>();
  /** By client whose events cannot be read: why. */
  readonly #lost = new Map<string, unknown>();
  /** What SQLite has said of a part of the file that is damaged. */
  #corruption: unknown;
  readonly #statements: Record<'find' | 'add' | 'first' | 'remove', StatementSync>;

  private constructor(path: string, database: DatabaseSync) {
    this.path = path;
    this.#database = database;
    this.#batch = new SqliteBatch(database);
    const queues = 'SELECT client, count(*) AS count, max(number) AS last FROM spool GROUP BY client';
    for (const row of database.prepare(queues).all())
      this.#queues.set(text(row['client']), { count: integer(row['count']), last: integer(row['last']) });
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
   * Opens a file. Returns undefined where another process has it.
   *
   * @throws when it cannot be read or written
   */
  static openFile(path: string): Spool | undefined {
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

  /** How many events wait, without those that cannot be read. */
  get size(): number {
    return this.#queues
      .entries()
      .reduce((sum, [clientId, { count }]) => (this.#lost.has(clientId) ? sum : sum + count), 0);
  }

  /** Whether events of this client wait that can be read. */
  has(clientId: string): boolean {
    return this.#queues.has(clientId) && !this.#lost.has(clientId);
  }

  /** Clients of which events wait that can be read. */
  get clients(): readonly string[] {
    return [...this.#queues.keys()].filter((clientId) => !this.#lost.has(clientId));
  }

  /** Why the file is damaged; undefined as long as nothing has shown that it is. */
  get damage(): unknown {
    return this.#corruption ?? this.#lost.values().next().value;
  }

  /** Leaves the events of a client where they are, as they cannot be read: until `retry` they wait no longer. They are still found. */
  giveUp(clientId: string, reason: unknown): void {
    this.#lost.set(clientId, reason);
  }

  /** Has the events wait again that could not be read. */
  retry(): void {
    this.#lost.clear();
  }

  /** Whether the file is where it was opened. */
  get isInPlace(): boolean {
    try {
      this.#batch.assertInPlace();
      return true;
    } catch {
      return false;
    }
  }

  /** Keeps an event, or recognises it. Throws `StoreUnavailableError`. */
  async add(clientId: string, event: NewEvent): Promise<Appended> {
    // Here too, as a new event of the same turn that fails may take the whole batch with it.
    const waiting = this.find(clientId, event);
    if (waiting !== undefined) return waiting;
    const known = await this.#write(() => {
      const found = this.#lookUp(clientId, event);
      if (found !== undefined) return found;
      const { type, identity, contents } = event;
      return this.#statements.add.run(clientId, type, identity, contents, JSON.stringify(event))
        .lastInsertRowid;
    });
    if (typeof known === 'object') return known;
    this.#queues.set(clientId, { count: (this.#queues.get(clientId)?.count ?? 0) + 1, last: Number(known) });
    return { answer: { status: 201 }, duplicate: false, conflict: false, cursor: null };
  }

  /**
   * Returns the answer to a message that is here; undefined for any other. The file is read only where it holds events of the client.
   *
   * @throws {StoreUnavailableError} where that fails, and the log may lack what is here
   */
  find(clientId: string, event: Message): Appended | undefined {
    if (!this.#queues.has(clientId) && !this.#undeleted.has(clientId)) return undefined;
    try {
      return this.#lookUp(clientId, event);
    } catch (cause) {
      const error = this.#failed(cause);
      // The log has all others, and knows them itself.
      if (this.#queues.has(clientId)) throw error;
      return undefined;
    }
  }

  #lookUp(clientId: string, { type, identity, contents }: Message): Appended | undefined {
    const row = this.#statements.find.get(clientId, type, identity);
    if (row === undefined) return undefined;
    const conflict = text(row['contents']) !== contents;
    return { answer: { status: 201 }, duplicate: true, conflict, cursor: null };
  }

  /** Returns the first events of a client's queue, as many as one step of draining moves. */
  first(clientId: string): Spooled[] {
    return this.#after(clientId, this.#released.get(clientId) ?? 0);
  }

  /**
   * Returns the first events of a client's queue that the log has not taken, as many as one step of draining moves. Where it has taken
   * all, the file is not read: that would block the process once for each client.
   */
  unpublished(clientId: string): Spooled[] {
    const taken = this.#published.get(clientId)?.number ?? this.#released.get(clientId) ?? 0;
    return taken < (this.#queues.get(clientId)?.last ?? 0) ? this.#after(clientId, taken) : [];
  }

  /** Returns the history that has the events before those of `unpublished`; undefined where these are the first. */
  history(clientId: string): string | undefined {
    return this.#published.get(clientId)?.history;
  }

  /** Notes in which history the log has taken these events, and all before them; undefined where it may have none of them. */
  published(clientId: string, spooled: readonly Spooled[], history: string | undefined): void {
    const last = spooled.at(-1)?.number;
    const before = this.#published.get(clientId);
    if (history === undefined || last === undefined) this.#published.delete(clientId);
    else {
      const number = before?.history === history ? Math.max(before.number, last) : last;
      this.#published.set(clientId, { number, history });
    }
  }

  #after(clientId: string, number: number): Spooled[] {
    const rows = this.#statements.first.all(clientId, number, STEP.events);
    let size = 0;
    const fitting = rows.filter((row, index) => {
      size += text(row['event']).length;
      return index === 0 || size <= STEP.size;
    });
    return fitting.map((row) => ({
      number: integer(row['number']),
      // `add` has written it, and no other process writes this file.
      event: parseStored(text(row['event'])) as NewEvent,
    }));
  }

  /**
   * Forgets the first events of the queue: the log has them now. On a full disk they cannot be deleted; `tidy` tries again. Until then
   * they are sent to the log again after the next start, which recognises them for as long as it remembers messages.
   *
   * @throws {StoreUnavailableError} when they could not be deleted
   */
  async release(clientId: string, spooled: readonly Spooled[]): Promise<void> {
    const last = spooled.at(-1)?.number;
    if (last === undefined) return;
    this.#released.set(clientId, last);
    if ((this.#published.get(clientId)?.number ?? last) <= last) this.#published.delete(clientId);
    const { count = 0, last: newest = last } = this.#queues.get(clientId) ?? {};
    if (count > spooled.length) this.#queues.set(clientId, { count: count - spooled.length, last: newest });
    else this.#queues.delete(clientId);
    this.#undeleted.add(clientId);
    await this.#delete(clientId, last);
  }

  /** Whether events are still here that the log has. */
  get isUntidy(): boolean {
    return this.#undeleted.size > 0;
  }

  /** Deletes events that the log has, and that could not be deleted before. Never rejects: it may be called again. */
  async tidy(): Promise<void> {
    for (const clientId of this.#undeleted) {
      await this.#delete(clientId, this.#released.get(clientId) ?? 0).catch(() => undefined);
    }
  }

  async #delete(clientId: string, last: number): Promise<void> {
    await this.#write(() => this.#statements.remove.run(clientId, last));
    // More may have been released meanwhile.
    if (this.#released.get(clientId) === last) this.#undeleted.delete(clientId);
  }

  /** Writes as much as an event may take. Throws `StoreUnavailableError` where none of any size could be kept now. */
  async probe(): Promise<void> {
    await this.#write(() => {
      probe(this.#database);
      // No client has this name. Only a row of the table itself shows that an index of it is damaged.
      const { lastInsertRowid } = this.#statements.add.run('', '', '', '', '');
      this.#statements.remove.run('', lastInsertRowid);
    });
    // SQLite would overwrite a log that has once grown, which a full disk does not keep it from: so the next probe begins without one.
    // Where events wait the room is theirs.
    if (this.size === 0) await this.#alone(() => this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
  }

  close(): void {
    this.#database.close();
  }

  /** Closes an empty spool that this process does not add to. One of an earlier version is removed: no other will have that name. */
  leave(): void {
    // Removed before the lock is given up.
    if (isEarlierSpoolName(this.name)) removeDatabase(this.path);
    this.close();
  }

  #write<T>(work: () => T): Promise<T> {
    return this.#alone(() => this.#batch.run(work));
  }

  async #alone<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      throw this.#failed(cause);
    }
  }

  #failed(cause: unknown): StoreUnavailableError {
    if (isCorruption(cause)) this.#corruption ??= cause;
    return new StoreUnavailableError('The spool could not be read or written.', { cause });
  }
}
