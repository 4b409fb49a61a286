import type { Logger } from '../../common/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import type { DurableWrites } from '../../redis/durable-write.ts';
import { inTime } from '../../redis/in-time.ts';
import { type Script, withoutCommand } from '../../redis/script.ts';
import { StoreUnavailableError } from '../errors.ts';

import { list } from './reply.ts';
import { SettingsWatch } from './settings-watch.ts';

/** WAIT holds up its connection until the replicas have answered; others go on meanwhile. */
const WRITERS = 3;

export interface RedisWritersOptions {
  connect(): RedisClient;
  /** What `connect` connects to. */
  readonly redisUrl: string;
  readonly writes: DurableWrites;
  readonly logger: Logger;
  /** What has not been written by then is as good as lost, in milliseconds. */
  readonly deadlineMs: number;
}

/** The connections that write. */
export class RedisWriters {
  readonly connections: readonly RedisClient[];
  readonly #options: RedisWritersOptions;
  readonly #first: RedisClient;
  /** The one that was used last is last. */
  readonly #inTurn: RedisClient[];
  readonly #settings: SettingsWatch;
  /** What was logged last of why nothing written would stay; empty for nothing. */
  #logged = '';
  /** So many replicas there were when it was last looked. */
  #replicas = 0;

  constructor(options: RedisWritersOptions) {
    this.#options = options;
    this.#first = options.connect();
    this.#settings = new SettingsWatch(this.#first, options.redisUrl, options.logger);
    this.connections = [this.#first, ...Array.from({ length: WRITERS - 1 }, options.connect)];
    this.#inTurn = [...this.connections];
    this.#first.on('ready', () => void this.inspect());
  }

  /** Why nothing that is written now would stay, as sentences for the operator; empty when it would. */
  get problems(): readonly string[] {
    return this.#options.writes.problems;
  }

  /** By what Redis may lose what it has taken, as far as its settings and its counters tell. */
  get risks(): readonly string[] {
    return this.#settings.risks;
  }

  /** The next connection in turn of those that are ready; the next one at all where none is. */
  next(): RedisClient {
    // After an outage they come back one by one: what one of them can write should not wait for another.
    const ready = this.#inTurn.findIndex(({ status }) => status === 'ready');
    const [connection] = this.#inTurn.splice(Math.max(ready, 0), 1);
    if (connection === undefined) throw new RangeError('there is always a writer');
    this.#inTurn.push(connection);
    return connection;
  }

  /** Looks at every primary. Resolves with whether all of them answer, and what is written on them stays. Never fails. */
  async check(): Promise<boolean> {
    const { writes } = this.#options;
    try {
      await writes.look(this.connections.find(({ status }) => status === 'ready') ?? this.#first);
      this.#count(writes.replicas);
      return writes.isDurable;
    } catch {
      return false;
    } finally {
      this.#logProblems();
    }
  }

  /** As `DurableWrites.isCurrent`. */
  isCurrent(reader: RedisClient, key: string): Promise<boolean> {
    return this.#options.writes.isCurrent(reader, key);
  }

  /** Looks at every primary, and at the settings of every server. Never fails. */
  async inspect(): Promise<void> {
    await this.check();
    await this.#settings.look();
  }

  /**
   * Runs a script that writes.
   *
   * @throws {StoreUnavailableError} when it is not certain that the effect is there, and stays
   */
  async run(
    durable: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    const { writes, deadlineMs } = this.#options;
    try {
      return list(await inTime(writes.write(this.next(), durable, keys, args), deadlineMs));
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be written.', {
        cause: withoutCommand(cause),
      });
    }
  }

  #count(replicas: number): void {
    const before = this.#replicas;
    this.#replicas = replicas;
    const { logger } = this.#options;
    if (replicas < before) logger.warn({ replicas, before }, 'Redis has lost a replica');
    else if (replicas > before) logger.info({ replicas, before }, 'Redis has a replica more');
  }

  /** Once for each state: an outage that lasts is one line. */
  #logProblems(): void {
    const { writes, logger } = this.#options;
    const problems = writes.problems.join(' ');
    if (problems === this.#logged) return;
    this.#logged = problems;
    if (problems === '') logger.info({}, 'Redis keeps events and payments again');
    else logger.warn({}, `Events go to the spool, and no payment is sent: ${problems}`);
  }
}
