import { encodeCursor, type LogPosition } from '../../src/events/cursor.ts';
import type { Entry, Slice } from '../../src/events/entry.ts';
import { StoreUnavailableError } from '../../src/events/errors.ts';
import type { EventType } from '../../src/events/log.ts';
import { SEAL_KEY_BYTES } from '../../src/events/seal.ts';
import type { Listener, Reach, Source } from '../../src/events/source.ts';

/** The lives of a log, one after the other. */
const LIVES = ['0mf3k2x9a0123456789ab', '0mf3k2x9b0123456789ab'] as const;

/** How the channel carries an entry: as it should, twice, or not at all, which the listener is told some time later. */
export type Carried = 'once' | 'twice' | 'lost';

/** A log in memory, whose channel loses and repeats as a test says. */
export class MemorySource implements Source {
  readonly entries: Entry[] = [];
  /** Whether it cannot be read. */
  isAway = false;
  /** How often it was to be read. */
  reads = 0;
  /** How often it could not be. */
  failures = 0;
  /** What a read that has been made waits for before it is answered. */
  answering: Promise<void> | undefined;
  #epoch: string = LIVES[0];
  /** How many of the oldest are no longer held. */
  #trimmed = 0;
  #listener: Listener | undefined;

  append(clientId: string, type: EventType, payload: object, carried: Carried, size = 100): Entry {
    const number = this.entries.length + 1;
    const position = String(number);
    const cursor = encodeCursor(clientId, { epoch: this.#epoch, position });
    const event = { cursor, id: `event-${number}`, type, receivedAt: new Date().toISOString(), payload };
    const entry = { epoch: this.#epoch, position, prev: this.#head(), event, size };
    this.entries.push(entry);
    if (carried !== 'lost') this.#listener?.receive(entry);
    if (carried === 'twice') this.#listener?.receive(entry);
    return entry;
  }

  /** The cursor of the place before the first. */
  origin(clientId: string): string {
    return encodeCursor(clientId, { epoch: this.#epoch, position: this.#epoch });
  }

  /** Whether anybody listens. */
  get isFollowed(): boolean {
    return this.#listener !== undefined;
  }

  /** Forgets all but the newest so many. */
  trim(kept: number): void {
    this.#trimmed = Math.max(this.#trimmed, this.entries.length - kept);
  }

  /** Loses all that it holds, and begins anew. */
  beginAnew(): void {
    this.entries.length = 0;
    this.#epoch = LIVES[1];
  }

  /** Begins a new life over the entries that are there, as a log does of which only its description was lost. */
  renew(): void {
    this.#epoch = LIVES[1];
  }

  /** Tells the listener that something may have been missed. */
  resync(): void {
    this.#listener?.resync();
  }

  isPosition(text: string): boolean {
    return /^[1-9]\d*$/.test(text);
  }

  isBefore(position: string, other: string): boolean {
    return Number(position) < Number(other);
  }

  async confirm(): Promise<void> {}

  async read(_clientId: string, after: string | null, limit: number): Promise<Slice> {
    this.reads += 1;
    if (this.isAway) {
      this.failures += 1;
      throw new StoreUnavailableError('It is away.');
    }
    const start = Math.max(this.#trimmed, after === null || after === this.#epoch ? 0 : Number(after));
    const slice = this.#slice(this.entries.slice(start, start + limit), this.entries.length > start + limit);
    await this.answering;
    return slice;
  }

  async readBack(_clientId: string, upTo: string | null, limit: number): Promise<Slice> {
    const end = upTo === null ? this.entries.length : upTo === this.#epoch ? 0 : Number(upTo);
    return this.#slice(this.entries.slice(Math.max(0, end - limit), end), end > limit);
  }

  /** It has no index. */
  async find(): Promise<undefined> {
    return undefined;
  }

  async catchUp(): Promise<boolean> {
    return true;
  }

  /** It gives nothing up. */
  async reach(): Promise<Reach | undefined> {
    const [first] = this.entries;
    return first && { epoch: this.#epoch, first, goneUpTo: undefined };
  }

  async head(): Promise<LogPosition> {
    return { epoch: this.#epoch, position: this.#head() };
  }

  async bounds(): Promise<{ oldest: LogPosition; head: LogPosition }> {
    const position = this.#trimmed === 0 ? this.#epoch : String(this.#trimmed);
    return { oldest: { epoch: this.#epoch, position }, head: await this.head() };
  }

  async sealKey(): Promise<Buffer> {
    return Buffer.alloc(SEAL_KEY_BYTES);
  }

  async attach(_clientId: string, listener: Listener): Promise<void> {
    this.#listener = listener;
  }

  detach(): void {
    this.#listener = undefined;
  }

  #head(): string {
    return this.entries.at(-1)?.position ?? this.#epoch;
  }

  #slice(entries: readonly Entry[], hasMore: boolean): Slice {
    return { epoch: this.#epoch, entries, hasMore, head: this.#head() };
  }
}
