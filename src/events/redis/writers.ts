import type { Logger } from '../../common/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { primariesOf, primaryIn, Replication } from '../../redis/replication.ts';
import { bare, StoreUnavailableError } from '../errors.ts';

import { list } from './reply.ts';
import { runScript, runScriptAndWait, type Script } from './scripts.ts';
import { redisWarnings } from './settings.ts';

/** WAIT holds up its connection until a replica has answered; others go on meanwhile. */
const WRITERS = 3;
const REPLICA_TIMEOUT_MS = 500;

/**
 * The connections that write. Where replicas exist, a write is done once one of them has it; what comes too late is as
 * good as lost.
 */
export class RedisWriters {
  readonly connections: readonly RedisClient[];
  readonly #logger: Logger;
  readonly #deadlineMs: number;
  /** The one that was used last is last. */
  readonly #inTurn: RedisClient[];
  readonly #replication = new Replication();
  #waits = false;

  constructor(connect: () => RedisClient, logger: Logger, deadlineMs: number) {
    const first = connect();
    this.connections = [first, ...Array.from({ length: WRITERS - 1 }, connect)];
    this.#inTurn = [...this.connections];
    this.#logger = logger;
    this.#deadlineMs = deadlineMs;
    first.on('ready', () => void this.#inspect(first));
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

  /** Looks again whether there are replicas. */
  async check(): Promise<void> {
    const [first] = this.connections;
    if (first === undefined) return;
    try {
      const worth = (await primariesOf(first)).map((primary) => this.#replication.judge(primary));
      this.#waits = worth.some((each) => each !== 'enough');
    } catch {
      // Without an answer what was known last stands.
    }
  }

  /**
   * Runs a script that writes.
   *
   * @throws {StoreUnavailableError} when it is not certain that the effect is there, and stays
   */
  async run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), this.#deadlineMs);
    });
    try {
      return await Promise.race([this.#run(this.next(), script, keys, args), tooLate]);
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be written.', { cause: bare(cause) });
    } finally {
      clearTimeout(timer);
    }
  }

  async #run(
    connection: RedisClient,
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    if (!this.#waits) return list(await runScript(connection, script, keys, args));
    const { reply, acknowledged, replication } = await runScriptAndWait(
      connection,
      script,
      keys,
      args,
      REPLICA_TIMEOUT_MS,
    );
    if (acknowledged === 0 && this.#replication.judge(primaryIn(replication)) !== 'enough') {
      throw new Error(`no replica acknowledged within ${REPLICA_TIMEOUT_MS} ms`);
    }
    return list(reply);
  }

  async #inspect(connection: RedisClient): Promise<void> {
    await this.check();
    for (const warning of await redisWarnings(connection)) this.#logger.warn({}, warning);
  }
}
