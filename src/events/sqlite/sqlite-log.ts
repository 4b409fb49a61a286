import { join } from 'node:path';
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { encodeCursor, newEpoch, type Place } from '../cursor.ts';
import {
  answerOf,
  decodeAnswer,
  decodeEntry,
  type Entry,
  encodeEvent,
  SEEN_FOR_MS,
  type Slice,
} from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Appended, EventLog, EventLogHealth, NewEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import { LogReader } from '../reader.ts';
import type { Listener, Source } from '../source.ts';
import type { EventTopics } from '../topics.ts';
import { SqliteBatch } from './batch.ts';
import { integer, openExclusive, text } from './file.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS life (epoch TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events (
    client TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY (client, position)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS seen (
    client TEXT NOT NULL, type TEXT NOT NULL, identity TEXT NOT NULL, position INTEGER NOT NULL,
    contents TEXT NOT NULL, answer TEXT NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY (client, type, identity)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS seen_expires ON seen (expires);
`;

export interface SqliteLogOptions {
  /** Folder of `events.sqlite`; made when it is not there. */
  readonly dataDir: string;
  /** Events kept per client. */
  readonly retention: number;
  readonly metrics: EventMetrics;
  /** Whom events concern; without it, those who wait for their type. */
  readonly topics?: EventTopics | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The embedded log: one file, one process, no server. Positions are whole numbers from 1, per client.
 *
 * @throws {Error} when the folder cannot be used, or another process uses it
 */
export class SqliteLog extends LogReader implements EventLog {
  readonly #options: SqliteLogOptions;
  readonly #database: DatabaseSync;
  readonly #batch: SqliteBatch;
  readonly #store: SqliteSource;
  readonly #statements: Record<'find' | 'insert' | 'remember' | 'trim' | 'forget', StatementSync>;

  constructor(options: SqliteLogOptions) {
    const path = join(options.dataDir, 'events.sqlite');
    const database = openExclusive(path, SCHEMA);
    if (database === undefined) {
      throw new Error(
        `${path} is in use by another process. Several processes share a log only through Redis.`,
      );
    }
    const store = new SqliteSource(database, options.now());
    super(store, options.metrics, options.topics);
    this.#options = options;
    this.#database = database;
    this.#batch = new SqliteBatch(database);
    this.#store = store;
    this.#statements = {
      find: database.prepare(
        'SELECT position, contents, answer FROM seen WHERE client = ? AND type = ? AND identity = ? AND expires > ?',
      ),
      insert: database.prepare('INSERT INTO events (client, position, event) VALUES (?, ?, ?)'),
      remember: database.prepare('INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?, ?)'),
      trim: database.prepare('DELETE FROM events WHERE client = ? AND position <= ?'),
      forget: database.prepare('DELETE FROM seen WHERE expires <= ?'),
    };
  }

  async append(clientId: string, event: NewEvent): Promise<Appended> {
    const { metrics } = this.#options;
    const { appended, entry } = await this.#write(() => this.#append(clientId, event));
    if (entry !== undefined) {
      metrics.appended(event.type);
      this.#store.announce(clientId, entry);
    } else {
      metrics.duplicate(event.type, appended.conflict);
    }
    return appended;
  }

  async recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined> {
    // A batch under way may be about to store this very message.
    return this.#write(() => this.#recall(clientId, event));
  }

  async health(): Promise<EventLogHealth> {
    try {
      // Changes nothing, and is written all the same.
      await this.#write(() => this.#database.exec('UPDATE life SET epoch = epoch'));
      return { writable: true, available: true, spooled: 0 };
    } catch {
      return { writable: false, available: false, spooled: 0 };
    }
  }

  override async stop(): Promise<void> {
    await super.stop();
    // What is under way is finished first.
    await this.#write(() => {}).catch(() => {});
    if (this.#database.isOpen) this.#database.close();
  }

  #append(clientId: string, event: NewEvent): { appended: Appended; entry?: Entry } {
    const known = this.#recall(clientId, event);
    if (known !== undefined) return { appended: known };
    const now = this.#options.now();
    const last = this.#store.last(clientId);
    const number = last + 1;
    const stored = encodeEvent(event);
    const answer = answerOf(event);
    const { insert, remember, trim, forget } = this.#statements;
    insert.run(clientId, number, stored);
    trim.run(clientId, number - this.#options.retention);
    forget.run(now);
    remember.run(
      clientId,
      event.type,
      event.identity,
      number,
      event.contents,
      JSON.stringify(answer),
      now + SEEN_FOR_MS,
    );
    const entry = this.#store.entry(clientId, number, stored);
    return { appended: { answer, duplicate: false, conflict: false, cursor: entry.event.cursor }, entry };
  }

  #recall(clientId: string, event: Pick<NewEvent, 'type' | 'identity' | 'contents'>): Appended | undefined {
    const row = this.#statements.find.get(clientId, event.type, event.identity, this.#options.now());
    if (row === undefined) return undefined;
    return {
      answer: decodeAnswer(text(row['answer'])),
      duplicate: true,
      conflict: text(row['contents']) !== event.contents,
      cursor: encodeCursor(clientId, this.#store.place(integer(row['position']))),
    };
  }

  async #write<T>(work: () => T): Promise<T> {
    try {
      return await this.#batch.run(work);
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be written.', { cause });
    }
  }
}

class SqliteSource implements Source {
  readonly epoch: string;
  readonly #listeners = new Map<string, Listener>();
  readonly #statements: Record<'last' | 'after' | 'back', StatementSync>;

  constructor(database: DatabaseSync, now: number) {
    const life = database.prepare('SELECT epoch FROM life').get();
    this.epoch = life === undefined ? newEpoch(now) : text(life['epoch']);
    if (life === undefined) database.prepare('INSERT INTO life VALUES (?)').run(this.epoch);
    this.#statements = {
      last: database.prepare('SELECT coalesce(max(position), 0) AS last FROM events WHERE client = ?'),
      after: database.prepare(
        'SELECT position, event FROM events WHERE client = ? AND position > ? ORDER BY position LIMIT ?',
      ),
      back: database.prepare(
        'SELECT position, event FROM events WHERE client = ? AND position <= ? ORDER BY position DESC LIMIT ?',
      ),
    };
  }

  isPosition(position: string): boolean {
    return /^[1-9]\d{0,15}$/.test(position);
  }

  last(clientId: string): number {
    return integer(this.#statements.last.get(clientId)?.['last']);
  }

  place(number: number): Place {
    return { epoch: this.epoch, position: number === 0 ? this.epoch : String(number) };
  }

  entry(clientId: string, number: number, stored: string): Entry {
    const link = { position: this.place(number).position, prev: this.place(number - 1).position };
    return decodeEntry(clientId, this.epoch, link, stored);
  }

  announce(clientId: string, entry: Entry): void {
    this.#listeners.get(clientId)?.receive(entry);
  }

  async read(clientId: string, after: string | null, limit: number): Promise<Slice> {
    const start = after === null || after === this.epoch ? 0 : Number(after);
    const rows = this.#read(() => this.#statements.after.all(clientId, start, limit + 1));
    return this.#slice(clientId, rows.slice(0, limit), rows.length > limit);
  }

  async readBack(clientId: string, upTo: string | null, limit: number): Promise<Slice> {
    const end = upTo === null ? Number.MAX_SAFE_INTEGER : upTo === this.epoch ? 0 : Number(upTo);
    const rows = this.#read(() => this.#statements.back.all(clientId, end, limit + 1));
    return this.#slice(clientId, rows.slice(0, limit).reverse(), rows.length > limit);
  }

  async head(clientId: string): Promise<Place> {
    return this.#read(() => this.place(this.last(clientId)));
  }

  async bounds(clientId: string): Promise<{ oldest: Place; head: Place }> {
    return this.#read(() => {
      const [first] = this.#statements.after.all(clientId, 0, 1);
      const head = this.place(this.last(clientId));
      return { head, oldest: first === undefined ? head : this.place(integer(first['position']) - 1) };
    });
  }

  async attach(clientId: string, listener: Listener): Promise<void> {
    this.#listeners.set(clientId, listener);
  }

  detach(clientId: string): void {
    this.#listeners.delete(clientId);
  }

  #slice(clientId: string, rows: readonly Record<string, SQLOutputValue>[], hasMore: boolean): Slice {
    return this.#read(() => ({
      epoch: this.epoch,
      hasMore,
      head: this.place(this.last(clientId)).position,
      entries: rows.map((row) => this.entry(clientId, integer(row['position']), text(row['event']))),
    }));
  }

  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be read.', { cause });
    }
  }
}
