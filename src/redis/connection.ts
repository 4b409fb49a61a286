import {
  type Cluster,
  type CommonRedisOptions,
  Redis,
  type RedisOptions,
  type SentinelConnectionOptions,
  SentinelConnector,
} from 'ioredis';
import { clock, type Timer } from '../common/clock.ts';
import { saidBy } from '../common/openssl-error.ts';
import { LastingCluster } from './cluster.ts';
import { keepsTime } from './in-time.ts';
import { tlsOptions } from './tls-options.ts';
import { parseRedisUrl, type RedisNode, type RedisTarget } from './url.ts';

/** No Sentinel can be asked for the primary, so that Redis itself has said nothing. */
export class NoSentinelError extends Error {}

/** A connection to one Redis, to the primary that Sentinels name, or to a Cluster. */
export type RedisClient = Redis | Cluster;

export type RedisConnectOptions = Omit<CommonRedisOptions, 'replyMapping'>;

interface RedisConnections {
  all(url: string, options: RedisConnectOptions): RedisClient;
  node(url: string, node: RedisNode, options: RedisConnectOptions): Redis;
}

/** By ioredis. */
const real: RedisConnections = { all: connectAll, node: connectNode };

/** The connections that {@link connectRedis} and {@link connectRedisNode} make. */
let connections = real;

/** Why clients that are away could not connect the last time. */
const failures = new WeakMap<RedisClient, Error>();
const HUNG_UP: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);
/** The part of an error's message that is read, in characters. */
const MAX_MESSAGE = 300;
const FULL_STOP = /\.$/;

/** Replaces ioredis, as the simulator does. @returns a function that restores it. */
export function useRedis(other: RedisConnections): () => void {
  connections = other;
  return () => {
    connections = real;
  };
}

/** After this time, in milliseconds, a Sentinel that accepts a connection and does not answer is skipped. */
const SENTINEL_TIMEOUT_MS = 1000;
const REVIVE_AFTER_MS = 100;
/** The longest pause before the gateway listens again to a Sentinel that went away, in milliseconds. */
const SENTINEL_RECONNECT_MS = 1000;

/**
 * Asks every Sentinel before it says that none can be asked. ioredis goes on behind the one that it asked last, which may name a server
 * that is gone, and says the same at the end of its list, whichever it has asked since.
 */
class EverySentinel extends SentinelConnector {
  // ioredis hands the connection's own options over as unknown.
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
  }

  override connect(
    emit: Parameters<SentinelConnector['connect']>[0],
  ): ReturnType<SentinelConnector['connect']> {
    const { done } = this.sentinelIterator.next();
    this.sentinelIterator.reset(!done);
    return super.connect(emit);
  }
}

/**
 * A connection that only `disconnect` ends. ioredis itself gives up a connection for good if it is told to reconnect at the
 * moment in which it does. That happens when Sentinels announce a failover while one of them is asked for the primary.
 */
class LastingRedis extends Redis {
  readonly #sentinels: readonly Redis[];
  /** The error of the last Sentinel that failed; cleared when one answers. */
  #sentinelFailure: Error | undefined;
  #wanted = true;
  #revival: Timer | undefined;

  /** @param sentinels connections that announce failovers. They end with this connection. */
  constructor(options: Omit<RedisOptions, 'replyMapping'>, sentinels: readonly Redis[] = []) {
    super(options);
    keepsTime(this);
    this.#sentinels = sentinels;
    const { reconnectOnError } = this.options;
    // ioredis tells nobody why it connects again.
    this.options.reconnectOnError = (error) => {
      const again = reconnectOnError?.(error) ?? false;
      if (again !== false) failures.set(this, error);
      return again;
    };
    for (const sentinel of sentinels) {
      sentinel.on('message', (_channel: string, text: string) => {
        if (text.split(' ', 1)[0] === options.name) this.disconnect(true);
      });
      sentinel.on('error', (error: Error) => {
        this.#sentinelFailure = error;
      });
      sentinel.on('ready', () => {
        this.#sentinelFailure = undefined;
        // Whenever it comes back: ioredis would subscribe again by itself, and handle no failure of that.
        sentinel.subscribe('+switch-master').catch(() => {});
      });
    }
    this.on('end', () => {
      if (!this.#wanted) return;
      // A failure is reported as an `error` event.
      this.#revival = clock.setTimeout(() => this.connect().catch(() => {}), REVIVE_AFTER_MS);
    });
  }

  /** ioredis reports that all Sentinels are unreachable and their connections closed, but not why. This adds the reason. */
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    const [error] = args;
    if (event === 'error' && error instanceof Error && error.message.startsWith('All sentinels')) {
      const failure = this.#sentinelFailure;
      // Until the first watching connection has failed too, ioredis' own message is all there is.
      const reason = failure === undefined ? error.message.split('Last error: ')[1] : saidBy(failure);
      const more = reason === undefined ? '' : `: ${reason}`;
      return super.emit(
        event,
        new NoSentinelError(`No Sentinel can be asked${more}`, { cause: failure ?? error }),
      );
    }
    return super.emit(event, ...args);
  }

  /**
   * Connects again where Redis refuses the database: it has none of this number, or the user lacks the right to SELECT. ioredis
   * would go on in database 0, where no payment of the other one is known.
   */
  override async select(database: number | string): Promise<'OK'> {
    try {
      return await super.select(database);
    } catch (error) {
      // Before it knows the user Redis refuses every command, and ioredis sees to that.
      const isRefusal =
        error instanceof Error && error.name === 'ReplyError' && !error.message.startsWith('NOAUTH');
      if (!isRefusal) throw error;
      this.emit('error', error);
      this.disconnect(true);
      // ioredis takes a connection into use once this command has ended, however it has.
      return new Promise<'OK'>(() => {});
    }
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) {
      this.#wanted = false;
      clock.clearTimeout(this.#revival);
      for (const sentinel of this.#sentinels) sentinel.disconnect();
    }
    super.disconnect(reconnect);
  }
}

/**
 * Connects to one of the Sentinels of a target. The caller ends it with `disconnect()`.
 *
 * @param retryStrategy returns after how many milliseconds the connection is made again; null for never
 */
export function connectSentinel(
  { sentinelPassword, tls, tlsFiles }: RedisTarget,
  node: RedisNode,
  options: Pick<CommonRedisOptions, 'retryStrategy' | 'commandTimeout' | 'maxRetriesPerRequest'>,
): Redis {
  const sentinel = new Redis({
    ...node,
    password: sentinelPassword,
    tls: tls ? tlsOptions(tlsFiles) : undefined,
    connectTimeout: SENTINEL_TIMEOUT_MS,
    enableReadyCheck: false,
    autoResubscribe: false,
    ...options,
  });
  // A failure is reported by the commands, or the connection is made again.
  sentinel.on('error', () => {});
  return sentinel;
}

/**
 * Connects to what `REDIS_URL` names. The connection starts at once and is kept up for ever; until the first `ready`, and
 * whenever it is away, commands wait or fail as `options` say.
 *
 * A primary that was demoted answers READONLY before it runs anything; the client then reconnects. It sends that command again
 * where commands may wait (`enableOfflineQueue`); where they may not, the command fails. The caller attaches an `error` listener
 * and ends the client with `disconnect()`.
 *
 * @throws {TypeError} like {@link parseRedisUrl}.
 */
export function connectRedis(url: string, options: RedisConnectOptions): RedisClient {
  const redis = connections.all(url, options);
  redis.on('error', (error: NodeJS.ErrnoException) => {
    // That the other side has hung up may follow on the reason why.
    if (!HUNG_UP.has(error.code ?? '') || !failures.has(redis)) failures.set(redis, error);
  });
  redis.on('ready', () => failures.delete(redis));
  return redis;
}

/**
 * Returns why a client does not answer, in words that name no address: why it could not connect the last time, such as
 * `self-signed certificate`, or what its command failed with.
 *
 * @param error of the command. ioredis says by it no more than that there is no connection.
 */
export function silenceOf(redis: RedisClient, error: Error): string {
  const failure = failures.get(redis);
  if (failure === undefined) {
    const { message } = error;
    return message.includes('enableOfflineQueue') ? 'there is no connection' : message.replace(FULL_STOP, '');
  }
  const { code } = failure as NodeJS.ErrnoException;
  return (saidBy(failure) || String(code))
    .slice(0, MAX_MESSAGE)
    .replace(FULL_STOP, '')
    .replace(/\b(E[A-Z_]+) \S+( - Local \(\S+\))?$/, '$1')
    .replace(/(altnames): .*/s, '$1');
}

function connectAll(url: string, options: RedisConnectOptions): RedisClient {
  const target = parseRedisUrl(url);
  const single = ofOneServer(target, options);
  if (target.form === 'cluster') {
    const { enableOfflineQueue, retryStrategy, ...redisOptions } = single;
    return new LastingCluster(target.nodes, { enableOfflineQueue, redisOptions });
  }
  if (target.form === 'sentinel') {
    // ioredis has `failoverDetector` for that, but it never listens again to a Sentinel that was restarted, and writes every
    // failure to the error output if it should.
    const listeners = target.nodes.map((node) =>
      connectSentinel(target, node, {
        retryStrategy: (attempt) => Math.min(50 * 2 ** attempt, SENTINEL_RECONNECT_MS),
        maxRetriesPerRequest: null,
      }),
    );
    const redisOptions = {
      ...single,
      sentinels: [...target.nodes],
      Connector: EverySentinel,
      name: target.primaryName,
      sentinelPassword: target.sentinelPassword,
      enableTLSForSentinelMode: target.tls,
      sentinelTLS: target.tls ? tlsOptions(target.tlsFiles) : undefined,
      sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    };
    return new LastingRedis(redisOptions, listeners);
  }
  const [first] = target.nodes;
  return new LastingRedis({ ...single, ...first });
}

/**
 * Connects to one node of the Cluster that `REDIS_URL` names, as {@link connectRedis} does to one Redis.
 *
 * @throws {TypeError} like {@link parseRedisUrl}.
 */
export const connectRedisNode = (url: string, node: RedisNode, options: RedisConnectOptions): Redis =>
  connections.node(url, node, options);

function connectNode(url: string, node: RedisNode, options: RedisConnectOptions): Redis {
  return new LastingRedis({ ...ofOneServer(parseRedisUrl(url), options), ...node });
}

function ofOneServer(target: RedisTarget, options: RedisConnectOptions) {
  const { retryStrategy, ...rest } = options;
  return {
    ...rest,
    db: target.db,
    username: target.username,
    password: target.password,
    tls: target.tls ? tlsOptions(target.tlsFiles) : undefined,
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
    // Left out if undefined: ioredis then uses its own backoff. Passing undefined would mean none.
    ...(retryStrategy === undefined ? {} : { retryStrategy }),
  } satisfies RedisOptions;
}
