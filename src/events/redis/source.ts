import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';
import { Lru } from '../../common/lru.ts';
import { SingleFlight } from '../../common/single-flight.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { inTime } from '../../redis/in-time.ts';
import { runScript, type Script, withoutCommand } from '../../redis/script.ts';
import { type LogPosition, newEpoch } from '../cursor.ts';
import { decodeEntry, type Entry, type Slice } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { EventSearch } from '../log.ts';
import { SEAL_KEY_BYTES } from '../seal.ts';
import {
  digestOf,
  type EventNames,
  type Found,
  INDEXED_AT_ONCE,
  indexed,
  type SearchFrom,
} from '../search.ts';
import type { Listener, Reach, Source } from '../source.ts';
import type { RedisChannels } from './channels.ts';
import { FIND } from './find-script.ts';
import { redisKeys } from './keys.ts';
import { list, word } from './reply.ts';
import { BEGIN, BOUNDS, HEAD, REACH, READ, SEAL_KEY } from './scripts.ts';
import { CATCH_UP, UNINDEXED } from './search-scripts.ts';
import type { RedisWriters } from './writers.ts';

/** Clients whose seal key is remembered. For any other client it is written again, which proves that it stays. */
const MOST_SEAL_KEYS = 1000;
/** Clients without events whose epoch is remembered. For any other it is written again, which proves that it stays. */
const MOST_EPOCHS = 10_000;
/** Pause before a log is begun again whose beginning no replica has acknowledged, in milliseconds. */
const BEGIN_AGAIN_MS = 100;

export interface RedisSourceOptions {
  readonly redis: RedisClient;
  readonly writers: RedisWriters;
  readonly channels: RedisChannels;
  readonly names: EventNames;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** How long a read waits for its answer, in milliseconds. */
  readonly deadlineMs: number;
}

/** Reads of the log in Redis. A position is a stream id. */
export class RedisSource implements Source {
  readonly #redis: RedisClient;
  readonly #writers: RedisWriters;
  readonly #channels: RedisChannels;
  readonly #names: EventNames;
  readonly #now: () => number;
  readonly #deadlineMs: number;
  /** By client: the key that this process knows to be on every replica. */
  readonly #sealKeys = new Lru<string>(MOST_SEAL_KEYS);

  /** Shared, because thousands of narrowed callers may ask at once. */
  readonly #sealing = new SingleFlight<Buffer>();
  /** By client: the epoch that this process knows to be on every replica. */
  readonly #epochs = new Lru<string>(MOST_EPOCHS);
  readonly #beginning = new SingleFlight<string>();
  /** Shared, because thousands of readers may come back with old cursors at once. */
  readonly #confirming = new SingleFlight<void>();

  constructor({ redis, writers, channels, names, now, deadlineMs }: RedisSourceOptions) {
    this.#redis = redis;
    this.#writers = writers;
    this.#channels = channels;
    this.#names = names;
    this.#now = now;
    this.#deadlineMs = deadlineMs;
  }

  isPosition(position: string): boolean {
    return /^\d{1,19}-\d{1,19}$/.test(position);
  }

  isBefore(position: string, other: string): boolean {
    const [time = 0n, number = 0n] = position.split('-').map(BigInt);
    const [otherTime = 0n, otherNumber = 0n] = other.split('-').map(BigInt);
    return time === otherTime ? number < otherNumber : time < otherTime;
  }

  confirm(clientId: string): Promise<void> {
    return this.#confirming.run(clientId, () => this.#confirm(clientId));
  }

  async read(clientId: string, after: string | null, limit: number): Promise<Slice> {
    // The reader stands before the first entry, or at a position that this log never had. The chain tells which.
    const start = after !== null && this.isPosition(after) ? `(${after}` : '-';
    const slice = await this.#read(clientId, 'XRANGE', start, '+', limit + 1);
    const hasMore = slice.entries.length > limit;
    return { ...slice, hasMore, entries: slice.entries.slice(0, limit) };
  }

  async readBack(clientId: string, upTo: string | null, limit: number): Promise<Slice> {
    const end = upTo === null ? '+' : this.isPosition(upTo) ? upTo : '0-0';
    const slice = await this.#read(clientId, 'XREVRANGE', end, '-', limit + 1);
    const hasMore = slice.entries.length > limit;
    return { ...slice, hasMore, entries: slice.entries.slice(0, limit).reverse() };
  }

  async find(
    clientId: string,
    { position, direction, limit }: SearchFrom,
    { receivedFrom, receivedTo, name }: EventSearch,
  ): Promise<Found | undefined> {
    const [life, isComplete, isHeld, hasMore, found] = await this.#search(
      FIND,
      clientId,
      direction,
      position ?? '',
      limit,
      receivedFrom ?? '',
      receivedTo ?? '',
      name === undefined ? '' : digestOf(clientId, name),
    );
    if (isComplete !== 1) return undefined;
    const epoch = word(life);
    const entries = list(found).map((row) => streamEntry(clientId, epoch, row));
    if (direction === 'back') entries.reverse();
    return { epoch, isHeld: isHeld === 1, hasMore: hasMore === 1, entries };
  }

  async catchUp(clientId: string): Promise<boolean> {
    const [life, isIndexed, after, rows] = await this.#search(UNINDEXED, clientId, INDEXED_AT_ONCE);
    const nameless = list(rows);
    if (isIndexed === 1 || nameless.length === 0) return isIndexed === 1;
    const epoch = word(life);
    const entered = nameless.flatMap((row) => {
      const { position, event } = streamEntry(clientId, epoch, row);
      const { receivedAt, digests } = indexed(clientId, event, this.#names);
      return [position, Buffer.byteLength(streamText(row)), receivedAt, digests];
    });
    const { meta, log, index, earlierIndex } = redisKeys(clientId);
    const keys = [meta, log, ...index, ...earlierIndex];
    const [isComplete] = await this.#call(CATCH_UP, clientId, keys, [word(after), ...entered]);
    return isComplete === 1;
  }

  async reach(clientId: string): Promise<Reach | undefined> {
    const [name, , gone, goneTo, rows] = await this.#run(REACH, clientId);
    const [row] = list(rows);
    if (row === undefined) return undefined;
    const epoch = word(name);
    const first = streamEntry(clientId, epoch, row);
    if (first.prev === epoch) return { epoch, first, goneUpTo: undefined };
    // Events that another version trimmed were stored before those that are held.
    const goneUpTo = Number(first.prev === goneTo ? gone : first.position.split('-', 1)[0]);
    return { epoch, first, goneUpTo };
  }

  async head(clientId: string): Promise<LogPosition> {
    const [epoch, position] = await this.#run(HEAD, clientId);
    return { epoch: word(epoch), position: word(position) };
  }

  async bounds(clientId: string): Promise<{ oldest: LogPosition; head: LogPosition }> {
    const [name, last, oldest] = await this.#run(BOUNDS, clientId);
    const epoch = word(name);
    return { oldest: { epoch, position: word(oldest) }, head: { epoch, position: word(last) } };
  }

  sealKey(clientId: string): Promise<Buffer> {
    return this.#sealing.run(clientId, () => this.#sealKey(clientId));
  }

  attach(clientId: string, listener: Listener): Promise<void> {
    return this.#channels.attach(clientId, listener);
  }

  detach(clientId: string): void {
    this.#channels.detach(clientId);
  }

  async #sealKey(clientId: string): Promise<Buffer> {
    const { meta } = redisKeys(clientId);
    const current = await this.#answer(this.#redis.hget(meta, 'seal'));
    let key = this.#sealKeys.get(clientId);
    if (key === undefined || key !== current) {
      // Written again, so that WAIT proves it is on every replica: a failover may be about to lose it, with every cursor that it sealed. So
      // this fails where Redis takes no writes, but not where it is only out of memory.
      const proposed = entropy.bytes(SEAL_KEY_BYTES).toString('base64url');
      key = word((await this.#writers.run(SEAL_KEY, [meta], [proposed]))[0]);
      this.#sealKeys.set(clientId, key);
    }
    return Buffer.from(key, 'base64url');
  }

  async #read(clientId: string, ...range: (string | number)[]): Promise<Slice> {
    const [name, head, found] = await this.#run(READ, clientId, ...range);
    const epoch = word(name);
    if (!Array.isArray(found)) throw new TypeError('a range was read as something else');
    const entries = found.map((row: unknown) => streamEntry(clientId, epoch, row));
    return { epoch, head: word(head), hasMore: false, entries };
  }

  /** Runs a script whose reply begins with the epoch and the head, from which cursors are made. */
  async #run(script: Script, clientId: string, ...args: (string | number)[]): Promise<readonly unknown[]> {
    const { meta, log } = redisKeys(clientId);
    const reply = await this.#call(script, clientId, [meta, log], args);
    const [epoch, head] = reply;
    if (epoch === head && this.#epochs.get(clientId) !== epoch && (await this.#begin(clientId)) !== epoch)
      throw new StoreUnavailableError('The event log has just begun anew.');
    return reply;
  }

  /**
   * Begins the log of a client that has none. Resolves with its epoch once every replica has it: if a failover lost it, every
   * cursor of this client would be invalid.
   */
  #begin(clientId: string): Promise<string> {
    return this.#beginning.run(clientId, async () => {
      const until = clock.monotonic() + this.#deadlineMs;
      const { meta, log } = redisKeys(clientId);
      for (;;) {
        try {
          const epoch = word((await this.#writers.run(BEGIN, [meta, log], [newEpoch(this.#now())]))[0]);
          this.#epochs.set(clientId, epoch);
          return epoch;
        } catch (error) {
          // A replica that has just come acknowledges a moment later, so that readers need not be refused.
          if (clock.monotonic() + BEGIN_AGAIN_MS >= until) throw error;
          await clock.sleep(BEGIN_AGAIN_MS);
        }
      }
    });
  }

  async #confirm(clientId: string): Promise<void> {
    const { meta } = redisKeys(clientId);
    if (await this.#answer(this.#writers.isCurrent(this.#redis, meta))) return;
    throw new StoreUnavailableError('It is not certain now which server has the event log.');
  }

  /** Runs a script that uses the index. */
  #search(script: Script, clientId: string, ...args: (string | number)[]): Promise<readonly unknown[]> {
    const { meta, log, index } = redisKeys(clientId);
    return this.#call(script, clientId, [meta, log, ...index], args);
  }

  /** Runs a script that returns nothing if no log has begun. */
  async #call(
    script: Script,
    clientId: string,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    const run = () => this.#answer(runScript(this.#redis, script, keys, args).then(list));
    const reply = await run();
    if (reply.length > 0) return reply;
    await this.#begin(clientId);
    const again = await run();
    if (again.length === 0) throw new StoreUnavailableError('The event log has just begun, elsewhere.');
    return again;
  }

  async #answer<T>(answer: Promise<T>): Promise<T> {
    try {
      return await inTime(answer, this.#deadlineMs);
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be read.', { cause: withoutCommand(cause) });
    }
  }
}

function streamEntry(clientId: string, epoch: string, row: unknown): Entry {
  const [position, fields] = list(row);
  const [, prev] = list(fields);
  return decodeEntry(clientId, epoch, { position: word(position), prev: word(prev) }, streamText(row));
}

/** Returns the stored text of an entry. */
function streamText(row: unknown): string {
  const [, fields] = list(row);
  return word(list(fields)[3]);
}
