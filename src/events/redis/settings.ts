import type { Redis } from 'ioredis';
import { parseRedisUrl, type RedisClient, type RedisTarget } from '../../redis/connection.ts';
import { serversOf, watchersOf } from '../../redis/failover.ts';
import { primaryIn } from '../../redis/replication.ts';

const SETTINGS = [
  'appendonly',
  'appendfsync',
  'maxmemory',
  'maxmemory-policy',
  'min-replicas-to-write',
  'cluster-replica-validity-factor',
];

/**
 * What of the servers and their settings makes the log's promises, and those of payments, weaker than they read, as
 * sentences for the operator. Empty when all is well. Never fails: a managed Redis may forbid CONFIG, and then that is the
 * sentence.
 *
 * @param url what `redis` is connected to, in any form that `parseRedisUrl` reads
 */
export async function redisWarnings(redis: RedisClient, url: string): Promise<readonly string[]> {
  const { form } = parseRedisUrl(url);
  const watchers = watchersOf(url);
  const warnings = new Set<string>();
  for (const primary of serversOf(redis)) {
    try {
      const { replicas } = primaryIn(await primary.info('replication'));
      if (watchers !== undefined && (await watchers.ask(primary)) === undefined) warnings.add(UNASKED[form]);
      const settings = await settingsOf(primary);
      const isGuarded = replicas <= Number(settings.get('min-replicas-to-write'));
      if (form === 'standalone' && !isGuarded) warnings.add(UNWATCHED);
      for (const warning of weaknesses(settings, replicas)) warnings.add(warning);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      warnings.add(
        `Redis does not let its settings be read (${reason}): make sure of appendonly yes, appendfsync always, ` +
          'maxmemory-policy noeviction and, where there are replicas, min-replicas-to-write as many as they are.',
      );
    }
  }
  return [...warnings];
}

const UNWATCHED =
  'REDIS_URL names one Redis, which has replicas: nobody can be asked whether one of them was promoted. Once they have ' +
  'been gone for 30 s, what is written there counts, and a failover that takes longer loses it.';

const UNASKED: Record<RedisTarget['form'], string> = {
  standalone: UNWATCHED,
  sentinel:
    'No Sentinel of REDIS_URL that knows of enough others answers SENTINEL MASTER, REPLICAS and CKQUORUM, or they name ' +
    'another primary: while a replica is away, no event counts as kept in Redis, and no payment is sent.',
  cluster:
    'A primary of the Cluster does not answer CLUSTER NODES: while its replica is away, no event counts as kept there, ' +
    'and no payment is sent.',
};

async function settingsOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const settings = new Map<string, string>();
  for (const name of SETTINGS) {
    const reply: unknown = await redis.call('CONFIG', 'GET', name);
    // Two items: the name, and its value.
    if (Array.isArray(reply)) settings.set(name, String(reply[1]));
  }
  return settings;
}

function weaknesses(settings: ReadonlyMap<string, string>, replicas: number): readonly string[] {
  const warnings: string[] = [];
  if (settings.get('appendonly') !== 'yes') {
    warnings.push('Redis runs without appendonly yes: events answered with 201 are lost when it ends.');
  } else if (settings.get('appendfsync') !== 'always') {
    warnings.push(
      `Redis runs with appendfsync ${settings.get('appendfsync')}, not always: the last second of events answered ` +
        'with 201 can be lost.',
    );
  }
  const policy = settings.get('maxmemory-policy');
  if (policy !== 'noeviction' && settings.get('maxmemory') !== '0') {
    warnings.push(
      `Redis runs with maxmemory-policy ${policy}, not noeviction: it may drop events, or forget which messages were ` +
        'answered.',
    );
  }
  const least = Number(settings.get('min-replicas-to-write'));
  if (replicas > least) {
    warnings.push(
      `Redis has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'} and runs with min-replicas-to-write ${least}, ` +
        `not ${replicas}: while one of them is down the others are trusted, and a failover to that one, should it come ` +
        'back at such a moment, loses what was written without it, also the records of payments.',
    );
  }
  if (settings.get('cluster-replica-validity-factor') === '0' && replicas > 0) {
    warnings.push(
      'Redis runs with cluster-replica-validity-factor 0, not 10: a replica takes over however old its data is.',
    );
  }
  return warnings;
}
