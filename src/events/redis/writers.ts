import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type DurableWrites, UnacknowledgedError } from '../../redis/durable-write.ts';
import { inTime } from '../../redis/in-time.ts';
import { lastingRefusal } from '../../redis/refusal.ts';
import { type Script, withoutCommand } from '../../redis/script.ts';
import { OtherHistoryError, StoreUnavailableError, UnreplicatedError } from '../errors.ts';
import { list, word } from './reply.ts';
import { APPEND, historyOf, OTHER_HISTORY } from './scripts.ts';
import { SettingsWatch } from './settings-watch.ts';

/** Connections that write. WAIT holds up one until the replicas have answered; the others go on meanwhile. */
const WRITERS = 3;
/** For how long a refusal is told of that is not repeated, in milliseconds. A spool tries again much sooner. */
const REFUSED_FOR_MS = 10_000;

export interface RedisWritersOptions {
  connect(): RedisClient;
  /** The address that `connect` connects to. */
  readonly redisUrl: string;
  readonly writes: DurableWrites;
  readonly logger: Logger;
  /** How long a write may take, in milliseconds. After that it counts as failed. */
  readonly deadlineMs: number;
}

/** Runs scripts that write, on connections in turn. */
export class RedisWriters {
  readonly connections: readonly RedisClient[];
  readonly #options: RedisWritersOptions;
  readonly #first: RedisClient;
  /** In the order of use: the one that was used last is last. */
  readonly #inTurn: RedisClient[];
  readonly #settings: SettingsWatch;
  /** By script and first key: in which words Redis refused a write last, and when. A look tries no script, and no key of a client. */
  readonly #refusals = new Map<string, { readonly words: string; readonly at: number }>();
  /** The last logged reason why a write would not stay; empty for none. */
  #logged = '';
  /** Number of replicas at the last look. */
  #replicas = 0;

  constructor(options: RedisWritersOptions) {
    this.#options = options;
    this.#first = options.connect();
    this.#settings = new SettingsWatch(this.#first, options.redisUrl, options.logger);
    this.connections = [this.#first, ...Array.from({ length: WRITERS - 1 }, options.connect)];
    this.#inTurn = [...this.connections];
    this.#first.on('ready', () => void this.inspect());
  }

  /** Why a write would not stay now: sentences for the operator. Empty if it would. */
  get problems(): readonly string[] {
    const refusals = new Set(this.#refusals.values().map(({ words }) => `Redis refuses events: ${words}.`));
    return [...this.#options.writes.problems, ...refusals];
  }

  /** How Redis may lose what it has taken, as far as its settings and counters tell: sentences for the operator. */
  get risks(): readonly string[] {
    return this.#settings.risks;
  }

  /** Returns the next ready connection in turn; if none is ready, the next one. */
  next(): RedisClient {
    // After an outage they come back one by one. A write need not wait for another while one is ready.
    const ready = this.#inTurn.findIndex(({ status }) => status === 'ready');
    const [connection] = this.#inTurn.splice(Math.max(ready, 0), 1);
    if (connection === undefined) throw new RangeError('there is always a writer');
    this.#inTurn.push(connection);
    return connection;
  }

  /** Looks at every primary. Resolves with true if all answer and a write on them would stay. Never fails. */
  async check(): Promise<boolean> {
    const { writes } = this.#options;
    for (const [write, { at }] of this.#refusals)
      if (clock.monotonic() - at > REFUSED_FOR_MS) this.#refusals.delete(write);
    try {
      await writes.look(this.connections.find(({ status }) => status === 'ready') ?? this.#first);
      this.#count(writes.replicas);
      return writes.isDurable && this.#refusals.size === 0;
    } catch {
      return false;
    } finally {
      this.#logProblems();
    }
  }

  /** See `DurableWrites.isCurrent`. */
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
   * @throws {UnreplicatedError} when `APPEND` has appended, and that may not stay
   * @throws {OtherHistoryError} when `APPEND` has refused to append to this history
   * @throws {StoreUnavailableError} when it is not certain that the effect is there, and stays
   */
  async run(
    durable: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    const { writes, deadlineMs } = this.#options;
    const write = `${durable.sha} ${keys[0]}`;
    try {
      const reply = list(await inTime(writes.write(this.next(), durable, keys, args), deadlineMs));
      this.#refusals.delete(write);
      return reply;
    } catch (cause) {
      const options = { cause: withoutCommand(cause) };
      // A server that hides its history cannot be held to it.
      if (durable === APPEND && cause instanceof UnacknowledgedError && cause.replid !== '') {
        const history = historyOf(cause.replid, word(list(cause.reply)[0]));
        throw new UnreplicatedError('Replicas lack what was written.', history, options);
      }
      const isOther = options.cause.message.includes(OTHER_HISTORY);
      const words = isOther ? undefined : lastingRefusal(options.cause);
      if (words !== undefined) this.#refusals.set(write, { words, at: clock.monotonic() });
      const Refusal = isOther ? OtherHistoryError : StoreUnavailableError;
      throw new Refusal('The event log could not be written.', options);
    }
  }

  #count(replicas: number): void {
    const before = this.#replicas;
    this.#replicas = replicas;
    const { logger } = this.#options;
    if (replicas < before) logger.warn({ replicas, before }, 'Redis has lost a replica');
    else if (replicas > before) logger.info({ replicas, before }, 'Redis has a replica more');
  }

  /** Logs each state once, so that an outage is one line. */
  #logProblems(): void {
    const { writes, logger } = this.#options;
    const problems = this.problems.join(' ');
    if (problems === this.#logged) return;
    this.#logged = problems;
    if (problems === '') logger.info({}, 'Redis keeps events and payments again');
    else if (writes.problems.length === 0) logger.warn({}, `Events go to the spool: ${problems}`);
    else logger.warn({}, `Events go to the spool, and no payment is sent: ${problems}`);
  }
}
