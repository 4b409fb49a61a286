import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { SingleFlight } from '../../common/single-flight.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { runScript, type Script, withoutCommand } from '../../redis/script.ts';
import { newEpoch, type Place } from '../cursor.ts';
import { decodeEntry, type Entry, type Slice } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import { SEAL_KEY_BYTES } from '../seal.ts';
import type { Listener, Source } from '../source.ts';
import type { RedisChannels } from './channels.ts';
import { redisKeys } from './keys.ts';
import { list, word } from './reply.ts';
import { BOUNDS, HEAD, READ, SEAL_KEY } from './scripts.ts';
import type { RedisWriters } from './writers.ts';

/** A client whose key is not among these has it proved once more. */
const MOST_SEAL_KEYS = 1000;

/** Reads of the log in Redis. A position is a stream id. */
export class RedisSource implements Source {
  readonly #redis: RedisClient;
  readonly #writers: RedisWriters;
  readonly #channels: RedisChannels;
  readonly #now: () => number;
  /** By client: the key of which this process knows that it stays. */
  readonly #sealKeys = new LRUCache<string, string>({ max: MOST_SEAL_KEYS });

  /** Thousands of narrowed callers may ask at once. */
  readonly #sealing = new SingleFlight<Buffer>();

  constructor(redis: RedisClient, writers: RedisWriters, channels: RedisChannels, now: () => number) {
    this.#redis = redis;
    this.#writers = writers;
    this.#channels = channels;
    this.#now = now;
  }

  isPosition(position: string): boolean {
    return /^\d{1,19}-\d{1,19}$/.test(position);
  }

  async read(clientId: string, after: string | null, limit: number): Promise<Slice> {
    // Before the first entry, or a place that this log never had: the chain tells which.
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

  async head(clientId: string): Promise<Place> {
    const [epoch, position] = await this.#run(HEAD, clientId);
    return { epoch: word(epoch), position: word(position) };
  }

  async bounds(clientId: string): Promise<{ oldest: Place; head: Place }> {
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
    const current = await this.#redis.hget(meta, 'seal').catch((cause: unknown) => {
      throw new StoreUnavailableError('The event log could not be read.', { cause: withoutCommand(cause) });
    });
    let key = this.#sealKeys.get(clientId);
    if (key === undefined || key !== current) {
      // A key that is there may be one that a failover is about to lose, with every cursor that it sealed.
      const proposed = randomBytes(SEAL_KEY_BYTES).toString('base64url');
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

  async #run(script: Script, clientId: string, ...args: (string | number)[]): Promise<readonly unknown[]> {
    const { meta, log } = redisKeys(clientId);
    try {
      const reply = await runScript(this.#redis, script, [meta, log], [newEpoch(this.#now()), ...args]);
      return list(reply);
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be read.', { cause: withoutCommand(cause) });
    }
  }
}

function streamEntry(clientId: string, epoch: string, row: unknown): Entry {
  const [position, fields] = list(row);
  const [, prev, , event] = list(fields);
  return decodeEntry(clientId, epoch, { position: word(position), prev: word(prev) }, word(event));
}
