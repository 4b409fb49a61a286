import type { Redis } from 'ioredis';
import { connectRedisNode, type RedisClient } from '../../redis/connection.ts';
import { failoverAuthorityOf, fieldsOf, serversOf } from '../../redis/failover.ts';
import { lastingRefusal } from '../../redis/refusal.ts';
import { primaryIn } from '../../redis/replication.ts';
import { parseRedisUrl, type RedisNode, type RedisTarget } from '../../redis/url.ts';

const SETTINGS = [
  'appendonly',
  'appendfsync',
  'no-appendfsync-on-rewrite',
  'maxmemory',
  'maxmemory-policy',
  'min-replicas-to-write',
  'cluster-replica-validity-factor',
];

/**
 * The oldest Redis that keeps what the gateway promises. Before 7.0.3 a file that was just written anew may be gone after a loss of power.
 * Before 7.0.1 a Cluster sends events by another message than `smessage`. Before 7.0 a refusal in a script begins with `ERR`, whatever it is.
 */
const OLDEST = '7.0.3';

/** A sentence for the operator. */
export interface RedisWarning {
  readonly text: string;
  /** True if events can be lost, or have been, without the loss of a server. False if only a rare failover loses them. */
  readonly isRisk: boolean;
}

/**
 * Returns what weakens the promises of the log and of payments: servers and their settings. Replicas are looked at too,
 * because each may be promoted. Empty if all is well. If a managed Redis forbids CONFIG, that is one of the sentences. Rejects where
 * a primary does not answer.
 *
 * @param url what `redis` is connected to, in any form that `parseRedisUrl` reads
 * @param evicting the run ids of servers that have evicted keys, as earlier looks found: those that this one finds are added, and one
 *   whose counters an operator has reset is taken out. A server that ends takes its counter along.
 */
export async function redisWarnings(
  redis: RedisClient,
  url: string,
  evicting = new Set<string>(),
): Promise<readonly RedisWarning[]> {
  const { form } = parseRedisUrl(url);
  const watchers = failoverAuthorityOf(url);
  const warnings = new Map<string, RedisWarning>();
  const warn = (text: string, isRisk = false): void => void warnings.set(text, { text, isRisk });
  const look = async (primary: Redis): Promise<void> => {
    try {
      const info = await primary.info('replication');
      const { replicas } = primaryIn(info);
      const word = await watchers?.ask(primary);
      if (watchers !== undefined && (word === undefined || word === 'replaced')) warn(UNASKED[form]);
      const state = await stateOf(primary);
      noteEvictions(state, evicting);
      for (const warning of weaknesses('Redis', state)) warnings.set(warning.text, warning);
      const { settings, refusal } = state;
      if (refusal !== undefined) warn(unread(refusal));
      // Unknown where CONFIG is refused: nobody can be told which number loses what then, and the worst is assumed.
      const least = refusal === undefined ? Number(settings.get('min-replicas-to-write')) : undefined;
      if (form === 'standalone' && replicas > (least ?? 0)) warn(UNWATCHED);
      if (least !== undefined && replicas > least) warn(trusting(replicas, least));
      if (settings.get('cluster-replica-validity-factor') === '0' && replicas > 0) warn(ANY_AGE);
      for (const node of replicasIn(info)) await lookAtReplica({ url, node, least, warnings, evicting });
    } catch (error) {
      warn(unread(refusalIn(error)));
    }
  };
  for (const primary of serversOf(redis)) await look(primary);
  if (evicting.size > 0) warn(EVICTED, true);
  return [...warnings.values()];
}

interface ReplicaLook {
  readonly url: string;
  readonly node: RedisNode;
  /** `min-replicas-to-write` of its primary; undefined where that does not tell it. */
  readonly least: number | undefined;
  readonly warnings: Map<string, RedisWarning>;
  readonly evicting: Set<string>;
}

async function lookAtReplica({ url, node, least, warnings, evicting }: ReplicaLook): Promise<void> {
  const replica = connectRedisNode(url, node, ONCE);
  // The commands report the failure.
  replica.on('error', () => {});
  try {
    const state = await stateOf(replica);
    noteEvictions(state, evicting);
    for (const warning of weaknesses(A_REPLICA, state)) warnings.set(warning.text, warning);
    if (state.refusal !== undefined) throw state.refusal;
    const own = Number(state.settings.get('min-replicas-to-write'));
    if (least !== undefined && own < least) {
      const text = `${A_REPLICA} runs with min-replicas-to-write ${own}, and its primary with ${least}: give both the same.`;
      warnings.set(text, { text, isRisk: false });
    }
  } catch (error) {
    const text = `${A_REPLICA} cannot be asked for its settings (${messageOf(error)}): see to them yourself, before it is promoted.`;
    warnings.set(text, { text, isRisk: false });
  } finally {
    replica.disconnect();
  }
}

const A_REPLICA = 'A replica of Redis';

/** A server that cannot be reached is reported at once, and asked again the next time. */
const ONCE = {
  connectTimeout: 1000,
  commandTimeout: 1000,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
} as const;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the addresses at which a primary says that its replicas listen. */
function replicasIn(info: string): readonly RedisNode[] {
  return [...info.matchAll(/^slave\d+:ip=([^,\s]+),port=(\d+),/gm)].map(([, host = '', port]) => ({
    host,
    port: Number(port),
  }));
}

const UNWATCHED =
  'REDIS_URL names one Redis, which has replicas: nobody can be asked whether one of them was promoted. Once they have ' +
  'been gone for 30 s, what is written there counts, and a failover that takes longer loses it.';

const UNASKED: Record<RedisTarget['form'], string> = {
  standalone: UNWATCHED,
  sentinel:
    'No Sentinel of REDIS_URL that knows of enough others answers SENTINEL MASTER, REPLICAS and CKQUORUM, or they name ' +
    'another primary: while a replica is away, or the primary has none, no event counts as kept in Redis, and no payment is sent.',
  cluster:
    'A primary of the Cluster does not answer CLUSTER NODES: while its replica is away, no event counts as kept there, ' +
    'and no payment is sent.',
};

const ANY_AGE =
  'Redis runs with cluster-replica-validity-factor 0, not 10: a replica takes over however old its data is.';

const trusting = (replicas: number, least: number): string =>
  `Redis has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'} and runs with min-replicas-to-write ${least}, a choice ` +
  'with a risk: once a replica has been down for long, what is written without it counts, and a failover to that one, should ' +
  `it come back at such a moment, loses that, also the records of payments. With ${replicas} nothing of it is lost, and ` +
  'nothing is taken while a replica is down: events are spooled, and no payment is sent, until it is back. docs/redis.md says which number to choose.';

const unread = (error: unknown): string =>
  `Redis does not let its settings be read (${messageOf(error)}): make sure of appendonly yes, appendfsync always, ` +
  'no-appendfsync-on-rewrite no, maxmemory-policy noeviction and, where there are replicas, min-replicas-to-write, on each of them.';

const EVICTED =
  'Redis has evicted keys: events, answers to messages or records of payments are gone. A repeated message may become a ' +
  'second event, and a repeated payment may be made twice.';

interface ServerState {
  /** As far as the server tells them. */
  readonly settings: ReadonlyMap<string, string>;
  /** Why CONFIG is refused, as many a managed Redis does; undefined where it is not. */
  readonly refusal: Error | undefined;
  /** As of Redis, also where it is a Valkey; undefined where the server does not tell it. */
  readonly version: string | undefined;
  /** Another after each start of the server. */
  readonly runId: string;
  /** Number of keys that the server has evicted since it started, or since its counters were reset. */
  readonly evicted: number;
}

async function stateOf(redis: Redis): Promise<ServerState> {
  const [config, info]: [unknown, string] = await Promise.all([
    redis.call('CONFIG', 'GET', ...SETTINGS).catch(refusalIn),
    redis.info(),
  ]);
  const told = (field: string): string | undefined =>
    new RegExp(`^${field}:(.*)`, 'm').exec(info)?.[1]?.trim();
  const settings = new Map<string, string>();
  // INFO tells these also where CONFIG is refused.
  for (const name of ['maxmemory', 'maxmemory-policy']) {
    const value = told(name.replace('-', '_'));
    if (value !== undefined) settings.set(name, value);
  }
  if (told('aof_enabled') === '0') settings.set('appendonly', 'no');
  for (const [name, value] of fieldsOf(config)) settings.set(name, value);
  return {
    settings,
    refusal: config instanceof Error ? config : undefined,
    version: told('redis_version'),
    runId: told('run_id') ?? '',
    evicted: Number(told('evicted_keys') ?? 0),
  };
}

/** @throws any error that is no refusal for good: a Redis that runs a long script, or reads its file, answers later */
function refusalIn(error: unknown): Error {
  if (error instanceof Error && lastingRefusal(error) !== undefined) return error;
  throw error;
}

function noteEvictions({ runId, evicted }: ServerState, evicting: Set<string>): void {
  if (evicted > 0) evicting.add(runId);
  else evicting.delete(runId);
}

/** The first three numbers of a version as one, by which versions are in their order. */
function ranked(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10) || 0);
  return (major * 1000 + minor) * 1000 + patch;
}

/** @param whose the subject of each sentence */
function weaknesses(whose: string, { settings, refusal, version }: ServerState): readonly RedisWarning[] {
  const warnings: RedisWarning[] = [];
  const warn = (text: string, isRisk: boolean): void =>
    void warnings.push({ text: `${whose} ${text}`, isRisk });
  if (version !== undefined && ranked(version) < ranked(OLDEST)) {
    warn(
      `is of version ${version}, and the gateway needs ${OLDEST} or later, or Valkey: what is promised of events and payments ` +
        'does not hold with it where its machine loses its power, nor, before 7.0, in a failover.',
      false,
    );
  }
  const keepsFile = settings.get('appendonly') ?? (refusal === undefined ? 'no' : 'unknown');
  if (keepsFile === 'no') {
    warn('runs without appendonly yes: events answered with 201 are lost when it ends.', true);
  } else if (refusal === undefined && settings.get('appendfsync') !== 'always') {
    warn(
      `runs with appendfsync ${settings.get('appendfsync')}, not always: the last second of events answered with 201 ` +
        'can be lost.',
      false,
    );
  }
  if (keepsFile !== 'no' && settings.get('no-appendfsync-on-rewrite') === 'yes') {
    warn(
      'runs with no-appendfsync-on-rewrite yes, not no: while it writes its file anew, or a snapshot, up to 30 s of events ' +
        'answered with 201 can be lost, whatever appendfsync says.',
      false,
    );
  }
  const policy = settings.get('maxmemory-policy');
  if (policy !== undefined && policy !== 'noeviction' && settings.get('maxmemory') !== '0') {
    warn(
      `runs with maxmemory-policy ${policy}, not noeviction: it may drop events, or forget which messages were answered.`,
      true,
    );
  }
  return warnings;
}
