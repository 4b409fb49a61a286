import { Cluster } from 'ioredis';
import { clock, type Timer } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import { connectRedis, connectRedisNode, type RedisClient } from '../../redis/connection.ts';
import { DurableWrites } from '../../redis/durable-write.ts';
import { serversOf } from '../../redis/failover.ts';
import { inTime } from '../../redis/in-time.ts';
import { primaryInfo } from '../../redis/on-primary.ts';
import type { RedisNode } from '../../redis/url.ts';
import { encodeCursor, newEpoch } from '../cursor.ts';
import { answerOf, decodeAnswer, encodeEvent, SEEN_FOR_MS, unplaced } from '../entry.ts';
import type { Appended, EventLogHealth, NewEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import { LogReader } from '../reader.ts';
import { type EventNames, indexed, noNames } from '../search.ts';
import type { RemoteLog } from '../spool/remote-log.ts';
import type { EventTopics } from '../topics.ts';
import { RedisChannels } from './channels.ts';
import { redisKeys, seenKey } from './keys.ts';
import { list, word } from './reply.ts';
import { APPEND, RECALL } from './scripts.ts';
import { RedisSource } from './source.ts';
import { ShardSubscribers, subscribeOn } from './subscribers.ts';
import { RedisWriters } from './writers.ts';

const TIMEOUT_MS = 1000;
/** How long a read waits, in milliseconds. It may need a second attempt at another node. */
const READ_TIMEOUT_MS = 2 * TIMEOUT_MS;
/** How long an append waits for the replicas, in milliseconds. */
const REPLICA_TIMEOUT_MS = 500;
const CHECK_EVERY_MS = 10_000;

const CONNECTION = {
  // A command fails at once while Redis is away: the spool or the caller then decides what to do.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  // Commands under way fail at once when their connection ends. Otherwise ioredis would drop them, and they would never end.
  maxRetriesPerRequest: 0,
  commandTimeout: TIMEOUT_MS,
  // Ends the connection to a server that stopped answering, so that the next command fails at once instead of waiting as
  // well.
  socketTimeout: TIMEOUT_MS,
  connectTimeout: TIMEOUT_MS,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** attempt, 500),
} as const;

/** For a connection that is made when a channel first needs it. The channel waits for it as long as for an answer. */
const SHARD_CONNECTION = { ...CONNECTION, enableOfflineQueue: true } as const;

export interface RedisLogOptions {
  /** Address of Redis, in any form that `parseRedisUrl` reads. */
  readonly redisUrl: string;
  /** Events kept per client. */
  readonly retention: number;
  /** Bytes of stored events kept per client; any number where it is not given. The newest event is always kept. */
  readonly retentionBytes?: number | undefined;
  readonly logger: Logger;
  readonly metrics: EventMetrics;
  /** Names the topics of events. Without it an event's only topic is its type. */
  readonly topics?: EventTopics | undefined;
  /** Names the texts by which events are found again. Without it none is found by a name. */
  readonly names?: EventNames | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The log in Redis, which many processes share. It also starts while Redis is away, and is then unavailable until Redis
 * comes.
 *
 * @throws {TypeError} for a URL of no known form
 */
export class RedisLog extends LogReader implements RemoteLog {
  readonly #options: RedisLogOptions;
  readonly #channels: RedisChannels;
  readonly #reader: RedisClient;
  readonly #writers: RedisWriters;
  readonly #publish: 'PUBLISH' | 'SPUBLISH';
  readonly #timer: Timer;
  /** How many looks in a row found a connection that reads from a server which is no primary. */
  #astray = 0;

  constructor(options: RedisLogOptions) {
    const { redisUrl, logger, metrics, now } = options;
    const heard = <T extends RedisClient>(connection: T): T => {
      connection.on('error', (error: unknown) => logger.debug({ error: String(error) }, 'redis connection'));
      return connection;
    };
    const connect = (): RedisClient => heard(connectRedis(redisUrl, CONNECTION));
    const connectNode = (node: RedisNode) => heard(connectRedisNode(redisUrl, node, SHARD_CONNECTION));
    const reader = connect();
    const channels = new RedisChannels(
      (events) =>
        reader instanceof Cluster
          ? new ShardSubscribers(reader, connectNode, events)
          : subscribeOn(connect(), events),
      logger,
      metrics,
    );
    const writes = new DurableWrites(redisUrl, REPLICA_TIMEOUT_MS);
    const writers = new RedisWriters({ connect, redisUrl, writes, logger, deadlineMs: TIMEOUT_MS });
    const { names = noNames } = options;
    super(
      new RedisSource({ redis: reader, writers, channels, names, now, deadlineMs: READ_TIMEOUT_MS }),
      metrics,
      options.topics,
    );
    this.#options = options;
    this.#writers = writers;
    this.#channels = channels;
    this.#reader = reader;
    this.#publish = reader instanceof Cluster ? 'SPUBLISH' : 'PUBLISH';
    this.#timer = clock.setInterval(() => {
      channels.check();
      void this.#writers.inspect();
      void this.#stayOnPrimary();
    }, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  /** Resolves once every connection is ready, or after a second: Redis may come later. */
  async settled(): Promise<void> {
    const ready = this.#connections().map(
      (connection) => new Promise((resolve) => connection.once('ready', resolve)),
    );
    let timer: Timer | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, TIMEOUT_MS);
    });
    await Promise.race([Promise.all(ready), enough]);
    clock.clearTimeout(timer);
  }

  async append(clientId: string, event: NewEvent): Promise<Appended> {
    const { metrics, now } = this.#options;
    // A log that begins with this event holds all that has been received since.
    const begun = Math.min(now(), Date.parse(event.receivedAt) || Number.POSITIVE_INFINITY);
    const [appended] = await this.#appendAll(clientId, [event], '', begun);
    if (appended === undefined) throw new RangeError('one event has one result');
    if (appended.duplicate) metrics.duplicate(event.type, appended.conflict);
    else metrics.appended(event.type);
    return appended;
  }

  appendAll(clientId: string, events: readonly NewEvent[], history = ''): Promise<Appended[]> {
    return this.#appendAll(clientId, events, history, this.#options.now());
  }

  /** @param begun when the log begins, in milliseconds since 1970, if these are its first events */
  async #appendAll(
    clientId: string,
    events: readonly NewEvent[],
    history: string,
    begun: number,
  ): Promise<Appended[]> {
    const { retention, retentionBytes = 0, names = noNames } = this.#options;
    const { meta, log, channel, index } = redisKeys(clientId);
    const keys = [meta, log, ...index, ...events.map((event) => seenKey(clientId, event))];
    const [epoch, isDue, ...results] = await this.#writers.run(APPEND, keys, [
      newEpoch(begun),
      retention,
      retentionBytes,
      SEEN_FOR_MS,
      channel,
      this.#publish,
      history,
      ...events.flatMap((event) => {
        const allNames: EventNames = (stored) => [...(event.names ?? []), ...names(stored)];
        const { receivedAt, digests } = indexed(clientId, unplaced(event), allNames);
        const answer = JSON.stringify(answerOf(event));
        return [event.contents, encodeEvent(event), answer, receivedAt, digests];
      }),
    ]);
    if (isDue === 1) void this.completeIndex(clientId);
    return events.map((event, index) => {
      const [isNew, id, contents, answer, resent] = list(results[index]);
      if (isNew !== 1)
        return {
          ...repeated(clientId, event, [epoch, id, contents, answer]),
          ...(resent === 1 && { resent: true }),
        };
      const cursor = encodeCursor(clientId, { epoch: word(epoch), position: word(id) });
      return { answer: answerOf(event), duplicate: false, conflict: false, cursor };
    });
  }

  async recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined> {
    const { meta, log } = redisKeys(clientId);
    const keys = [meta, log, seenKey(clientId, event)];
    const found = await this.#writers.run(RECALL, keys, [newEpoch(this.#options.now()), SEEN_FOR_MS]);
    return found.length === 0 ? undefined : repeated(clientId, event, found);
  }

  async health(): Promise<EventLogHealth> {
    const began = clock.monotonic();
    let milliseconds = READ_TIMEOUT_MS;
    // A Redis that cannot write to its disk refuses even a PING, and reads go on.
    const ping = this.#reader.ping().catch((error: unknown) => {
      if (!(error instanceof Error) || !error.message.startsWith('MISCONF ')) throw error;
    });
    const readable = inTime(ping, READ_TIMEOUT_MS).then(
      () => {
        milliseconds = clock.monotonic() - began;
        return true;
      },
      () => false,
    );
    const [writable, answers] = await Promise.all([this.#writers.check(), readable]);
    const available = writable && answers && this.#channels.isComplete;
    const { risks } = this.#writers;
    const reasons = [...this.#writers.problems, ...this.#channels.problems];
    return {
      writable,
      available,
      redis: { answers, milliseconds },
      spooled: 0,
      ...(reasons.length > 0 && { reasons }),
      ...(risks.length > 0 && { risks }),
    };
  }

  override async stop(withinMs?: number): Promise<void> {
    clock.clearInterval(this.#timer);
    await super.stop(withinMs);
    this.#channels.stop();
    for (const connection of this.#connections()) connection.disconnect();
  }

  /**
   * Replaces connections that lead to a demoted server. A write notices that by itself; reads and subscriptions do not. A
   * Cluster says who owns a slot. A failover is over by the second look, so a connection that still leads to a replica then
   * is logged, once.
   */
  async #stayOnPrimary(): Promise<void> {
    if (this.#reader instanceof Cluster) return;
    const looks = [...this.#channels.connections, this.#reader].flatMap((connection) =>
      serversOf(connection).map((server) => primaryInfo(server, connection)),
    );
    // A connection that does not answer ends by its time-out.
    const answers = (await Promise.allSettled(looks)).filter(({ status }) => status === 'fulfilled');
    if (answers.length === 0) return;
    const { logger } = this.#options;
    const wasTold = this.#astray > 1;
    this.#astray = answers.some((answer) => 'value' in answer && answer.value === undefined)
      ? this.#astray + 1
      : 0;
    if (!wasTold && this.#astray > 1)
      logger.warn(
        {},
        'REDIS_URL leads to a Redis that is no primary: the gateway connects again, and waits longer each time',
      );
    if (wasTold && this.#astray === 0) logger.info({}, 'REDIS_URL leads to a primary again');
  }

  #connections(): readonly RedisClient[] {
    return [...this.#channels.connections, this.#reader, ...this.#writers.connections];
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
