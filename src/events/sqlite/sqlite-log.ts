import { join } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { entropy } from '../../common/entropy.ts';
import { rootReason } from '../../common/root-reason.ts';
import { RunningClock } from '../../common/running-clock.ts';
import { transaction } from '../../common/sqlite-transaction.ts';
import { encodeCursor } from '../cursor.ts';
import { answerOf, decodeAnswer, type Entry, encodeEvent, SEEN_FOR_MS } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Appended, EventLog, EventLogHealth, NewEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import { LogReader } from '../reader.ts';
import { type EventNames, indexed, noNames } from '../search.ts';
import type { EventTopics } from '../topics.ts';
import { SqliteBatch } from './batch.ts';
import { openExclusive, PROBE_SCHEMA, probe, text } from './file.ts';
import { adaptSchema } from './schema.ts';
import { positionOf, SqliteSource } from './source.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS life (epoch TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS seal (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events (
    client TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY (client, position)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS seen (
    client TEXT NOT NULL, type TEXT NOT NULL, identity TEXT NOT NULL, position INTEGER NOT NULL,
    contents TEXT NOT NULL, answer TEXT NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY (client, type, identity)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS seen_expires ON seen (expires);
  ${PROBE_SCHEMA}
`;

/**
 * Messages past their time that one append forgets at most. It is more than an append remembers, so that what is left goes with the next
 * ones; until then it is not recognised.
 */
const FORGOTTEN_AT_ONCE = 16;

export interface SqliteLogOptions {
  /** Folder of `events.sqlite`; made when it is not there. */
  readonly dataDir: string;
  /** Events kept per client. */
  readonly retention: number;
  /** Bytes of stored events kept per client; any number where it is not given. The newest event is always kept. */
  readonly retentionBytes?: number | undefined;
  readonly metrics: EventMetrics;
  /** Names the topics of events. Without it an event's only topic is its type. */
  readonly topics?: EventTopics | undefined;
  /** Names the texts by which events are found again. Without it none is found by a name. */
  readonly names?: EventNames | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds by a clock that cannot be set. It measures how long messages are recognised. */
  readonly monotonic?: (() => number) | undefined;
}

/** The file of the embedded log. */
export const sqliteLogIn = (dataDir: string): string => join(dataDir, 'events.sqlite');

/**
 * The embedded log: one file, one process, no server. A position is a whole number from 1, per client, and the run that wrote
 * the event, such as `57.9f86d081884c`. Each opening of the file is a run and has a random name. So a file that was put back
 * to an earlier copy gives the numbers after the copy again, but never the positions: a reader that was ahead is told.
 *
 * @throws {Error} when the folder cannot be used, or another process uses it
 */
export class SqliteLog extends LogReader implements EventLog {
  readonly #options: SqliteLogOptions;
  readonly #database: DatabaseSync;
  readonly #batch: SqliteBatch;
  readonly #store: SqliteSource;
  readonly #clock: RunningClock;
  /** Names this opening of the file; no copy of the file can know it. */
  readonly #run = entropy.bytes(6).toString('hex');
  readonly #statements: Record<'find' | 'insert' | 'remember' | 'renew' | 'forget', StatementSync>;
  readonly #names: EventNames;

  constructor(options: SqliteLogOptions) {
    const path = sqliteLogIn(options.dataDir);
    const database = openExclusive(path, SCHEMA);
    if (database === undefined) {
      throw new Error(
        `${path} is in use by another process. Several processes share a log only through Redis.`,
      );
    }
    const { names = noNames } = options;
    const batch = new SqliteBatch(database);
    const { store, clock } = transaction(database, () => {
      adaptSchema(database);
      return {
        store: new SqliteSource(database, batch, names, options.now()),
        clock: new RunningClock(database, options.now, options.monotonic),
      };
    });
    super(store, options.metrics, options.topics);
    this.#names = names;
    this.#clock = clock;
    this.#options = options;
    this.#database = database;
    this.#batch = batch;
    this.#store = store;
    this.#statements = {
      find: database.prepare(
        `SELECT seen.position, coalesce(run, '') AS run, contents, answer
         FROM seen LEFT JOIN events ON events.client = seen.client AND events.position = seen.position
         WHERE seen.client = ? AND type = ? AND identity = ? AND expires > ?`,
      ),
      insert: database.prepare(
        'INSERT INTO events (client, position, run, prev_run, event, received, digests) VALUES (?, ?, ?, ?, ?, ?, ?)',
      ),
      remember: database.prepare(
        `INSERT OR REPLACE INTO seen (client, type, identity, position, contents, answer, expires)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ),
      renew: database.prepare('UPDATE seen SET expires = ? WHERE client = ? AND type = ? AND identity = ?'),
      forget: database.prepare(`
        DELETE FROM seen WHERE (client, type, identity) IN
          (SELECT client, type, identity FROM seen WHERE expires <= ? ORDER BY expires LIMIT ${FORGOTTEN_AT_ONCE})`),
    };
  }

  async append(clientId: string, event: NewEvent): Promise<Appended> {
    const { metrics } = this.#options;
    const { appended, entry, isBehind } = await this.#write(() => this.#append(clientId, event));
    if (entry !== undefined) {
      metrics.appended(event.type);
      this.#store.publish(clientId, entry);
      if (isBehind) void this.completeIndex(clientId);
    } else {
      metrics.duplicate(event.type, appended.conflict);
    }
    return appended;
  }

  async recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined> {
    // In the batch's order, because a batch under way may be about to store this very message.
    return this.#write(() => this.#recall(clientId, event));
  }

  async health(): Promise<EventLogHealth> {
    try {
      await this.#write(() => probe(this.#database));
      return { writable: true, available: true, spooled: 0 };
    } catch (error) {
      const reasons = [`The event log in DATA_DIR cannot be written: ${rootReason(error)}.`];
      return { writable: false, available: false, spooled: 0, reasons };
    }
  }

  override async stop(withinMs?: number): Promise<void> {
    await super.stop(withinMs);
    // Writes under way end first.
    await this.#write(() => {}).catch(() => {});
    if (this.#database.isOpen) this.#database.close();
  }

  #append(clientId: string, event: NewEvent): { appended: Appended; entry?: Entry; isBehind?: boolean } {
    const known = this.#recall(clientId, event);
    if (known !== undefined) return { appended: known };
    const now = this.#clock.now();
    const last = this.#store.last(clientId);
    const position = { number: last.number + 1, run: this.#run };
    const { number, run } = position;
    const stored = encodeEvent(event);
    const answer = answerOf(event);
    const { insert, remember, forget } = this.#statements;
    const { retention, retentionBytes } = this.#options;
    const entry = this.#store.entry(clientId, position, last, stored);
    const { receivedAt, digests } = indexed(clientId, entry.event, this.#names);
    insert.run(clientId, number, run, last.run, stored, receivedAt, digests);
    // Trims too: `SqliteIndex.#trim`.
    const kept = { events: retention, bytes: retentionBytes };
    const isBehind = this.#store.index.appended(clientId, number, Buffer.byteLength(stored), kept);
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
    const { cursor } = entry.event;
    return { appended: { answer, duplicate: false, conflict: false, cursor }, entry, isBehind };
  }

  #recall(clientId: string, event: Pick<NewEvent, 'type' | 'identity' | 'contents'>): Appended | undefined {
    const { find, renew } = this.#statements;
    const now = this.#clock.now();
    const row = find.get(clientId, event.type, event.identity, now);
    if (row === undefined) return undefined;
    renew.run(now + SEEN_FOR_MS, clientId, event.type, event.identity);
    return {
      answer: decodeAnswer(text(row['answer'])),
      duplicate: true,
      conflict: text(row['contents']) !== event.contents,
      cursor: encodeCursor(clientId, this.#store.logPosition(positionOf(row))),
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
