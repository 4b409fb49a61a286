import { connectRedis, type RedisClient } from '../redis.ts';
import { encodeCursor, newEpoch } from './cursor.ts';
import { answerOf, decodeAnswer, encodeEvent, SEEN_FOR_MS } from './entry.ts';
import { bare, StoreUnavailableError } from './errors.ts';
import type { Appended, EventLog, EventLogger, EventLogHealth, NewEvent } from './log.ts';
import type { EventMetrics } from './metrics.ts';
import { LogReader } from './reader.ts';
import { RedisChannels } from './redis-channels.ts';
import { redisKeys, seenKey } from './redis-keys.ts';
import { APPEND, RECALL, runScript, type Script } from './redis-scripts.ts';
import { countReplicas, redisWarnings } from './redis-settings.ts';
import { list, RedisSource, word } from './redis-source.ts';

/** WAIT holds up its connection until a replica has answered; others go on meanwhile. */
const WRITERS = 3;
const COMMAND_TIMEOUT_MS = 1000;
const REPLICA_TIMEOUT_MS = 500;
const CHECK_EVERY_MS = 10_000;

const CONNECTION = {
  // Nothing waits for a Redis that is away: the spool, or the caller, knows better what to do.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  // ioredis fails what was under way when a connection ends after this many attempts to connect again; left to itself it
  // would drop them without a word.
  maxRetriesPerRequest: 0,
  commandTimeout: COMMAND_TIMEOUT_MS,
  // A server that stopped answering is as good as gone: the next command fails at once instead of waiting as well.
  socketTimeout: COMMAND_TIMEOUT_MS,
  connectTimeout: COMMAND_TIMEOUT_MS,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** attempt, 500),
} as const;

export interface RedisLogOptions {
  /** Any form that `parseRedisUrl` reads. */
  readonly redisUrl: string;
  /** Events kept per client. */
  readonly retention: number;
  readonly logger: EventLogger;
  readonly metrics: EventMetrics;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The log that many processes share. It starts also while Redis is away, and is then unavailable until Redis comes.
 *
 * @throws {TypeError} for a URL of no known form
 */
export class RedisLog extends LogReader implements EventLog {
  readonly #options: RedisLogOptions;
  readonly #connections: readonly RedisClient[];
  readonly #writers: readonly RedisClient[];
  readonly #timer: NodeJS.Timeout;
  #turn = 0;
  #replicas = 0;

  constructor(options: RedisLogOptions) {
    const connect = (): RedisClient => connectRedis(options.redisUrl, CONNECTION);
    const subscriber = connect();
    const reader = connect();
    const writers = Array.from({ length: WRITERS }, connect);
    const channels = new RedisChannels(subscriber, options.logger, options.metrics);
    super(new RedisSource(reader, channels, options.now), options.metrics);
    this.#options = options;
    this.#writers = writers;
    this.#connections = [subscriber, reader, ...writers];
    for (const connection of this.#connections) {
      connection.on('error', (error: unknown) =>
        options.logger.debug({ error: String(error) }, 'redis connection'),
      );
    }
    const [first] = writers;
    first?.on('ready', () => void this.#inspect(first));
    this.#timer = setInterval(() => {
      channels.check();
      void this.#learnReplicas();
    }, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  /** Resolves once every connection is ready, or after a second without: Redis may come later. */
  async settled(): Promise<void> {
    const ready = this.#connections.map(
      (connection) => new Promise<void>((resolve) => connection.once('ready', resolve)),
    );
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, COMMAND_TIMEOUT_MS);
    });
    await Promise.race([Promise.all(ready), enough]);
    clearTimeout(timer);
  }

  async append(clientId: string, event: NewEvent): Promise<Appended> {
    const { retention, now, metrics } = this.#options;
    const answer = answerOf(event);
    const { channel } = redisKeys(clientId);
    const [isNew, epoch, id, contents, stored] = await this.#write(APPEND, clientId, event, [
      event.contents,
      newEpoch(now()),
      retention,
      encodeEvent(event),
      JSON.stringify(answer),
      SEEN_FOR_MS,
      channel,
      'PUBLISH',
    ]);
    if (isNew === 1) {
      metrics.appended(event.type);
      const cursor = encodeCursor(clientId, { epoch: word(epoch), position: word(id) });
      return { answer, duplicate: false, conflict: false, cursor };
    }
    const appended = repeated(clientId, event, [epoch, id, contents, stored]);
    metrics.duplicate(event.type, appended.conflict);
    return appended;
  }

  async recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined> {
    const found = await this.#write(RECALL, clientId, event, [SEEN_FOR_MS]);
    return found.length === 0 ? undefined : repeated(clientId, event, found);
  }

  async health(): Promise<EventLogHealth> {
    const available = await this.#writer()
      .ping()
      .then(
        () => true,
        () => false,
      );
    return { writable: available, available, spooled: 0 };
  }

  override async stop(): Promise<void> {
    clearInterval(this.#timer);
    super.stop();
    for (const connection of this.#connections) connection.disconnect();
  }

  #writer(): RedisClient {
    this.#turn = (this.#turn + 1) % this.#writers.length;
    const writer = this.#writers[this.#turn];
    if (writer === undefined) throw new RangeError('there is always a writer');
    return writer;
  }

  async #write(
    script: Script,
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity'>,
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    const { meta, log } = redisKeys(clientId);
    const keys = [meta, log, seenKey(clientId, event)];
    const writer = this.#writer();
    try {
      const reply = list(await runScript(writer, script, keys, args));
      if (this.#replicas > 0) await this.#awaitReplica(writer);
      return reply;
    } catch (cause) {
      throw new StoreUnavailableError('The event log could not be written.', { cause: bare(cause) });
    }
  }

  async #awaitReplica(writer: RedisClient): Promise<void> {
    const acknowledged = await writer.wait(1, REPLICA_TIMEOUT_MS);
    if (acknowledged > 0) return;
    await this.#learnReplicas();
    if (this.#replicas > 0) throw new Error(`no replica acknowledged within ${REPLICA_TIMEOUT_MS} ms`);
  }

  async #inspect(redis: RedisClient): Promise<void> {
    await this.#learnReplicas();
    for (const warning of await redisWarnings(redis)) this.#options.logger.warn({}, warning);
  }

  async #learnReplicas(): Promise<void> {
    const [first] = this.#writers;
    // Without an answer the last count stands.
    if (first !== undefined) this.#replicas = await countReplicas(first).catch(() => this.#replicas);
  }
}

function repeated(
  clientId: string,
  event: Pick<NewEvent, 'contents'>,
  [epoch, id, contents, answer]: readonly unknown[],
): Appended {
  return {
    answer: decodeAnswer(word(answer)),
    duplicate: true,
    conflict: word(contents) !== event.contents,
    cursor: encodeCursor(clientId, { epoch: word(epoch), position: word(id) }),
  };
}
