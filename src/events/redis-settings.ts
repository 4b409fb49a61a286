import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../redis.ts';

/**
 * What of the servers' settings makes the log's promises weaker than they read, as sentences for the operator. Empty when
 * all is well. Never fails: a managed Redis may forbid CONFIG, and then that is the sentence.
 */
export async function redisWarnings(redis: RedisClient): Promise<readonly string[]> {
  const warnings = new Set<string>();
  for (const primary of primaries(redis)) {
    try {
      for (const warning of weaknesses(await settingsOf(primary))) warnings.add(warning);
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

/** Whether any primary has a replica now. */
export async function hasReplicas(redis: RedisClient): Promise<boolean> {
  for (const primary of primaries(redis)) {
    const info = await primary.info('replication');
    if (Number(/^connected_slaves:(\d+)/m.exec(info)?.[1] ?? 0) > 0) return true;
  }
  return false;
}

function primaries(redis: RedisClient): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

async function settingsOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const settings = new Map<string, string>();
  for (const name of ['appendonly', 'appendfsync', 'maxmemory', 'maxmemory-policy']) {
    const reply: unknown = await redis.call('CONFIG', 'GET', name);
    // Two items: the name, and its value.
    if (Array.isArray(reply)) settings.set(name, String(reply[1]));
  }
  return settings;
}

function weaknesses(settings: ReadonlyMap<string, string>): readonly string[] {
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
  return warnings;
}
