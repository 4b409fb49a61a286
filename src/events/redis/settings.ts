import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../../redis/connection.ts';
import { primaryIn } from '../../redis/replication.ts';

/**
 * What of the servers' settings makes the log's promises weaker than they read, as sentences for the operator. Empty when
 * all is well. Never fails: a managed Redis may forbid CONFIG, and then that is the sentence.
 */
export async function redisWarnings(redis: RedisClient): Promise<readonly string[]> {
  const warnings = new Set<string>();
  for (const primary of primaries(redis)) {
    try {
      const { replicas } = primaryIn(await primary.info('replication'));
      for (const warning of weaknesses(await settingsOf(primary), replicas)) warnings.add(warning);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      warnings.add(
        `Redis does not let its settings be read (${reason}): make sure of appendonly yes, appendfsync always and ` +
          'maxmemory-policy noeviction.',
      );
    }
  }
  return [...warnings];
}

function primaries(redis: RedisClient): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

async function settingsOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const settings = new Map<string, string>();
  for (const name of [
    'appendonly',
    'appendfsync',
    'maxmemory',
    'maxmemory-policy',
    'min-replicas-to-write',
  ]) {
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
  if (replicas > 0 && settings.get('min-replicas-to-write') === '0') {
    warnings.push(
      'Redis has replicas and runs with min-replicas-to-write 0, not 1: a primary that is cut off from them goes on ' +
        'taking what a failover throws away, also the records of payments.',
    );
  }
  return warnings;
}
