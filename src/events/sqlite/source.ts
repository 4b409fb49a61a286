import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';
import { type LogPosition, newEpoch } from '../cursor.ts';
import { decodeEntry, type Entry, type Slice } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { EventSearch } from '../log.ts';
import { SEAL_KEY_BYTES } from '../seal.ts';
import { type EventNames, type Found, indexed, type SearchFrom } from '../search.ts';
import type { Listener, Reach, Source } from '../source.ts';
import type { SqliteBatch } from './batch.ts';
import { integer, text } from './file.ts';
import { SqliteIndex } from './search-index.ts';

/** An event's position: its number, and the run of the process that wrote it. */
export interface Position {
  /** From 1, per client; 0 is the position before the first event. */
  readonly number: number;
  readonly run: string;
}

/** Reads of the embedded log. A position is `number.run`; the epoch is that of the file's first opening. */
export class SqliteSource implements Source {
  readonly epoch: string;
  readonly index: SqliteIndex;
  readonly #batch: SqliteBatch;
  readonly #names: EventNames;
  readonly #listeners = new Map<string, Listener>();
  /** Settles once the page before has had its turn. */
  #turn: Promise<void> = Promise.resolve();
  readonly #sealKey: Buffer;
  readonly #statements: Record<'last' | 'after' | 'back' | 'at', StatementSync>;

  constructor(database: DatabaseSync, batch: SqliteBatch, names: EventNames, now: number) {
    this.index = new SqliteIndex(database);
    this.#batch = batch;
    this.#names = names;
    const life = database.prepare('SELECT epoch FROM life').get();
    this.epoch = life === undefined ? newEpoch(now) : text(life['epoch']);
    if (life === undefined) database.prepare('INSERT INTO life VALUES (?)').run(this.epoch);
    database
      .prepare('INSERT OR IGNORE INTO seal (id, key) VALUES (1, ?)')
      .run(entropy.bytes(SEAL_KEY_BYTES).toString('base64url'));
    this.#sealKey = Buffer.from(text(database.prepare('SELECT key FROM seal').get()?.['key']), 'base64url');
    this.#statements = {
      last: database.prepare(
        'SELECT position, run FROM events WHERE client = ? ORDER BY position DESC LIMIT 1',
      ),
      after: database.prepare(
        'SELECT position, run, prev_run, event FROM events WHERE client = ? AND position > ? ORDER BY position LIMIT ?',
      ),
      back: database.prepare(
        'SELECT position, run, prev_run, event FROM events WHERE client = ? AND position <= ? ORDER BY position DESC LIMIT ?',
      ),
      at: database.prepare('SELECT position, run FROM events WHERE client = ? AND position = ?'),
    };
  }

  isPosition(position: string): boolean {
    return /^[1-9]\d{0,15}(\.[0-9a-f]{12})?$/.test(position);
  }

  isBefore(position: string, other: string): boolean {
    return numberOf(position) < numberOf(other);
  }

  /** Does nothing: one process has the file, and reads what it has written. */
  async confirm(): Promise<void> {}

  last(clientId: string): Position {
    const row = this.#statements.last.get(clientId);
    return row === undefined ? { number: 0, run: '' } : positionOf(row);
  }

  logPosition({ number, run }: Position): LogPosition {
    // Events of an earlier schema have no run.
    const position = run === '' ? String(number) : `${number}.${run}`;
    return { epoch: this.epoch, position: number === 0 ? this.epoch : position };
  }

  entry(clientId: string, position: Position, prev: Position, stored: string): Entry {
    const link = { position: this.logPosition(position).position, prev: this.logPosition(prev).position };
    return decodeEntry(clientId, this.epoch, link, stored);
  }

  publish(clientId: string, entry: Entry): void {
    this.#listeners.get(clientId)?.receive(entry);
  }

  /**
   * Each page has a turn of the event loop of its own, in the order in which they are asked for. A file is read without a wait: the pages of
   * readers that are far behind would keep everybody else waiting until all of them have caught up.
   */
  async read(clientId: string, after: string | null, limit: number): Promise<Slice> {
    this.#turn = this.#turn.then(() => clock.immediate());
    await this.#turn;
    const start = after === null || after === this.epoch ? 0 : numberOf(after);
    const rows = this.#read(() => this.#statements.after.all(clientId, start, limit + 1));
    return this.#slice(clientId, rows.slice(0, limit), rows.length > limit);
  }

  async readBack(clientId: string, upTo: string | null, limit: number): Promise<Slice> {
    const end = upTo === null ? Number.MAX_SAFE_INTEGER : upTo === this.epoch ? 0 : numberOf(upTo);
    const rows = this.#read(() => this.#statements.back.all(clientId, end, limit + 1));
    return this.#slice(clientId, rows.slice(0, limit).reverse(), rows.length > limit);
  }

  async find(clientId: string, from: SearchFrom, search: EventSearch): Promise<Found | undefined> {
    const found = () =>
      this.#read(() => (this.index.isComplete(clientId) ? this.#find(clientId, from, search) : undefined));
    const known = found();
    if (known !== undefined) return known;
    try {
      // Only this runs in the batch: an error in a batch makes its appends fail too.
      await this.#batch.run(() => this.index.enterLeft(clientId));
    } catch {
      // A disk that cannot be written to, such as a full one, may still be readable.
      return undefined;
    }
    return found();
  }

  async catchUp(clientId: string): Promise<boolean> {
    try {
      return await this.#batch.run(() => {
        this.index.enterSome(clientId, (row) => {
          const { event } = this.entry(clientId, positionOf(row), beforeOf(row), text(row['event']));
          return indexed(clientId, event, this.#names);
        });
        return this.index.isComplete(clientId);
      });
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be written.', { cause });
    }
  }

  #find(clientId: string, from: SearchFrom, search: EventSearch): Found {
    const { position } = from;
    const isHeld = position === null || this.#holds(clientId, position, from.direction);
    const start = position === null ? undefined : position === this.epoch ? 0 : numberOf(position);
    const { rows, hasMore } = this.index.find(clientId, start, from, search);
    return { epoch: this.epoch, isHeld, hasMore, entries: this.#entries(clientId, rows) };
  }

  /** True if no event was trimmed that follows the position; in a search back, if the event at the position is still there. */
  #holds(clientId: string, position: string, direction: SearchFrom['direction']): boolean {
    if (position === this.epoch && direction === 'back') return true;
    const [first] = this.#statements.after.all(clientId, 0, 1);
    const beforeAll =
      first === undefined ? this.logPosition(this.last(clientId)) : this.logPosition(beforeOf(first));
    if (direction === 'on' && beforeAll.position === position) return true;
    if (position === this.epoch) return false;
    const row = this.#statements.at.get(clientId, numberOf(position));
    return row !== undefined && this.logPosition(positionOf(row)).position === position;
  }

  async reach(clientId: string): Promise<Reach | undefined> {
    return this.#read(() => {
      const [row] = this.#statements.after.all(clientId, 0, 1);
      if (row === undefined) return undefined;
      const [first] = this.#entries(clientId, [row]);
      const goneUpTo = this.index.goneUpTo(clientId, positionOf(row).number);
      return first && { epoch: this.epoch, first, goneUpTo };
    });
  }

  async head(clientId: string): Promise<LogPosition> {
    return this.#read(() => this.logPosition(this.last(clientId)));
  }

  async bounds(clientId: string): Promise<{ oldest: LogPosition; head: LogPosition }> {
    return this.#read(() => {
      const [first] = this.#statements.after.all(clientId, 0, 1);
      const head = this.logPosition(this.last(clientId));
      return { head, oldest: first === undefined ? head : this.logPosition(beforeOf(first)) };
    });
  }

  /** Returns one key for all clients, because a sealed cursor names its client. */
  async sealKey(): Promise<Buffer> {
    return this.#sealKey;
  }

  async attach(clientId: string, listener: Listener): Promise<void> {
    this.#listeners.set(clientId, listener);
  }

  detach(clientId: string): void {
    this.#listeners.delete(clientId);
  }

  #slice(clientId: string, rows: readonly Row[], hasMore: boolean): Slice {
    return this.#read(() => ({
      epoch: this.epoch,
      hasMore,
      head: this.logPosition(this.last(clientId)).position,
      entries: this.#entries(clientId, rows),
    }));
  }

  #entries(clientId: string, rows: readonly Row[]): readonly Entry[] {
    return rows.map((row) => this.entry(clientId, positionOf(row), beforeOf(row), text(row['event'])));
  }

  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be read.', { cause });
    }
  }
}

type Row = Record<string, SQLOutputValue>;

/** Returns the position that a row of `events` or `seen` names. */
export const positionOf = (row: Row): Position => ({
  number: integer(row['position']),
  run: text(row['run']),
});

const beforeOf = (row: Row): Position => ({
  number: integer(row['position']) - 1,
  run: text(row['prev_run']),
});

/** Returns the number of a position that `isPosition` accepts. */
const numberOf = (position: string): number => Number(position.split('.', 1)[0]);
