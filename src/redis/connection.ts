import { Cluster, type CommonRedisOptions, Redis, type RedisOptions } from 'ioredis';
import { tlsOptions } from './tls-options.ts';

/** A connection to one Redis, to the primary that Sentinels name, or to a Cluster. */
export type RedisClient = Redis | Cluster;

/** What `REDIS_URL` may say, taken apart. `tls` and the credentials hold for every node. */
export interface RedisTarget {
  readonly form: 'standalone' | 'sentinel' | 'cluster';
  readonly nodes: readonly RedisNode[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Database number; always 0 in a Cluster, which has no other. */
  readonly db: number;
  /** Sentinel only: the name of the group of Redis processes. */
  readonly primaryName: string | undefined;
  /** Sentinel only: the password of the Sentinels themselves. */
  readonly sentinelPassword: string | undefined;
}

const FORMS = [
  'redis://[user:password@]host[:port][/db]',
  'redis+sentinel://[user:password@]host[:port],host[:port]/primaryName[?db=0&sentinelPassword=…]',
  'redis+cluster://[user:password@]host[:port],host[:port]',
];

const DEFAULT_PORT = { standalone: 6379, sentinel: 26379, cluster: 6379 } as const;

/**
 * Takes a `REDIS_URL` apart. Forms: `redis://`, `redis+sentinel://` and `redis+cluster://`, each with TLS as `rediss…`.
 *
 * @throws {TypeError} with the forms that are understood. The message never repeats the URL: it holds a password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const parts =
    /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?#]+)(?:\/([^?#]*))?(?:\?(.*))?$/.exec(url);
  if (parts === null) throw wrongForm('it has none of these forms');
  const [, tls, kind, credentials = '', hosts = '', path = '', query = ''] = parts;
  // The pattern admits these two words and nothing else.
  const form = (kind ?? 'standalone') as RedisTarget['form'];
  const nodes = hosts.split(',').map((host) => node(host, DEFAULT_PORT[form]));
  if (form === 'standalone' && nodes.length > 1) throw wrongForm('redis:// names one host');
  if (form === 'sentinel' && path === '') throw wrongForm('redis+sentinel:// needs the name of the primary');
  const parameters = new URLSearchParams(query);
  const db = Number(parameters.get('db') ?? (form === 'standalone' ? path || '0' : '0'));
  if (!Number.isSafeInteger(db) || db < 0 || (form === 'cluster' && db !== 0)) {
    throw wrongForm('the database is not a number, or the Cluster is given one');
  }
  const [username = '', ...password] = credentials.split(':');
  return {
    form,
    nodes,
    tls: tls === 's',
    username: decodeURIComponent(username) || undefined,
    password: decodeURIComponent(password.join(':')) || undefined,
    db,
    primaryName: form === 'sentinel' ? decodeURIComponent(path) : undefined,
    sentinelPassword: parameters.get('sentinelPassword') ?? undefined,
  };
}

export type RedisConnectOptions = Omit<CommonRedisOptions, 'replyMapping'>;

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** A Sentinel that takes connections and answers nothing is passed over after this time, in milliseconds. */
const SENTINEL_TIMEOUT_MS = 1000;
const REVIVE_AFTER_MS = 100;
/** A Sentinel that went away is listened to again this soon, in milliseconds, at the latest. */
const SENTINEL_RECONNECT_MS = 1000;

/**
 * A connection that only `disconnect` ends. ioredis itself gives one up for good when it is told to reconnect at the
 * moment in which it does: so it happens when Sentinels announce a failover while one of them is asked for the primary.
 */
class LastingRedis extends Redis {
  readonly #sentinels: readonly Redis[];
  #wanted = true;
  #revival: NodeJS.Timeout | undefined;

  /** @param sentinels listened to for failovers, and ended with this connection */
  constructor(options: Omit<RedisOptions, 'replyMapping'>, sentinels: readonly Redis[] = []) {
    super(options);
    this.#sentinels = sentinels;
    for (const sentinel of sentinels) {
      sentinel.on('message', (_channel: string, text: string) => {
        if (text.split(' ', 1)[0] === options.name) this.disconnect(true);
      });
      // It is subscribed again whenever it comes back; until then it cannot be, which is no news.
      sentinel.subscribe('+switch-master').catch(() => {});
    }
    this.on('end', () => {
      if (!this.#wanted) return;
      // What fails is told as an `error`.
      this.#revival = setTimeout(() => this.connect().catch(() => {}), REVIVE_AFTER_MS);
    });
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) {
      this.#wanted = false;
      clearTimeout(this.#revival);
      for (const sentinel of this.#sentinels) sentinel.disconnect();
    }
    super.disconnect(reconnect);
  }
}

/**
 * A connection to one of the Sentinels of a target. The caller ends it with `disconnect()`.
 *
 * @param retryStrategy after how many milliseconds it is made again; null for never
 */
export function connectSentinel(
  { sentinelPassword, tls }: RedisTarget,
  node: RedisNode,
  options: Pick<CommonRedisOptions, 'retryStrategy' | 'commandTimeout' | 'maxRetriesPerRequest'>,
): Redis {
  const sentinel = new Redis({
    ...node,
    password: sentinelPassword,
    tls: tls ? tlsOptions() : undefined,
    connectTimeout: SENTINEL_TIMEOUT_MS,
    enableReadyCheck: false,
    ...options,
  });
  // What fails is told by the commands, or tried again.
  sentinel.on('error', () => {});
  return sentinel;
}

/**
 * Connects to what `REDIS_URL` names. The connection starts at once and is kept up for ever; until the first `ready`, and
 * whenever it is away, commands wait or fail as `options` say.
 *
 * A primary that was demoted answers READONLY before it runs anything; the client then reconnects and sends that command
 * again. The caller attaches an `error` listener and ends the client with `disconnect()`.
 *
 * @throws {TypeError} like {@link parseRedisUrl}.
 */
export function connectRedis(url: string, options: RedisConnectOptions): RedisClient {
  const target = parseRedisUrl(url);
  const single = ofOneServer(target, options);
  if (target.form === 'cluster') {
    const { enableOfflineQueue, retryStrategy, ...redisOptions } = single;
    return new Cluster([...target.nodes], { enableOfflineQueue, redisOptions });
  }
  if (target.form === 'sentinel') {
    // ioredis would listen by itself (`failoverDetector`), but never again to a Sentinel that was restarted; told to, it writes
    // every failure to the error output.
    const listeners = target.nodes.map((node) =>
      connectSentinel(target, node, {
        retryStrategy: (attempt) => Math.min(50 * 2 ** attempt, SENTINEL_RECONNECT_MS),
        maxRetriesPerRequest: null,
      }),
    );
    const redisOptions = {
      ...single,
      sentinels: [...target.nodes],
      name: target.primaryName,
      sentinelPassword: target.sentinelPassword,
      enableTLSForSentinelMode: target.tls,
      sentinelTLS: target.tls ? tlsOptions() : undefined,
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
export function connectRedisNode(url: string, node: RedisNode, options: RedisConnectOptions): Redis {
  return new LastingRedis({ ...ofOneServer(parseRedisUrl(url), options), ...node });
}

function ofOneServer(target: RedisTarget, options: RedisConnectOptions) {
  const { retryStrategy, ...rest } = options;
  return {
    ...rest,
    db: target.db,
    username: target.username,
    password: target.password,
    tls: target.tls ? tlsOptions() : undefined,
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
    // Absent is ioredis's own backoff; present but undefined would be none.
    ...(retryStrategy === undefined ? {} : { retryStrategy }),
  } satisfies RedisOptions;
}

function node(text: string, defaultPort: number): RedisNode {
  let parsed: URL;
  try {
    parsed = new URL(`redis://${text}`);
  } catch (cause) {
    throw wrongForm('a host or port cannot be read', cause);
  }
  return {
    // ioredis wants an IPv6 address without the brackets that a URL puts around it.
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: parsed.port === '' ? defaultPort : Number(parsed.port),
  };
}

function wrongForm(problem: string, cause?: unknown): TypeError {
  return new TypeError(`REDIS_URL: ${problem}; wanted ${FORMS.join(' or ')} (rediss… for TLS)`, { cause });
}
