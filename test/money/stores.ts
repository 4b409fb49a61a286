import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { RecordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { keyOf } from '../../src/money/redis/keys.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

export const PROMPT_REPLICAS = ['--repl-diskless-sync-delay', '0'];

export const clusterUrl = ({ port }: RedisServer): string => `redis+cluster://127.0.0.1:${port}`;

/** A Cluster of one node, which has all the slots. */
export async function startCluster(): Promise<RedisServer> {
  const address = ['--cluster-announce-ip', '127.0.0.1'];
  const redis = await startRedis(['--cluster-enabled', 'yes', ...address, ...PROMPT_REPLICAS]);
  await redis.admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await clusterReady(redis);
  return redis;
}

export async function clusterReady({ admin }: RedisServer): Promise<void> {
  await until(async () => String(await admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok'));
}

const backdating =
  ({ admin }: RedisServer): Store['backdate'] =>
  async (name, ms) => {
    for (const field of ['sentAt', 'wall']) await admin.hincrby(keyOf(name), field, -ms);
  };

/** Two instances over one store each, as two processes would have them. */
export interface Store {
  open(): Promise<MoneyRecords>;
  /** Writes the record of a payment that was sent as if that had been so long ago, in ms. */
  backdate(name: RecordName, ms: number): Promise<void>;
  close(): Promise<void>;
}

export const STORES: [string, () => Promise<Store>][] = [
  [
    'node:sqlite',
    async () => {
      const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
      return {
        open: () => openMoneyRecords({ redisUrl: undefined, dataDir: join(dataDir, 'data'), logger }),
        async backdate({ clientId, hash }, ms) {
          using db = new DatabaseSync(join(dataDir, 'data', 'money.sqlite'));
          db.prepare(
            'UPDATE intent SET sent_at = sent_at - ?1, sent_clock = sent_clock - ?1 WHERE client_id = ?2 AND hash = ?3',
          ).run(ms, clientId, hash);
        },
        close: () => rm(dataDir, { recursive: true }),
      };
    },
  ],
  [
    'Redis',
    async () => {
      const redis = await startRedis();
      return {
        open: () => openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger }),
        backdate: backdating(redis),
        close: () => redis.stop(),
      };
    },
  ],
  [
    'a Redis Cluster',
    async () => {
      const redis = await startCluster();
      return {
        open: () => openMoneyRecords({ redisUrl: clusterUrl(redis), dataDir: '/dev/null/nowhere', logger }),
        backdate: backdating(redis),
        close: () => redis.stop(),
      };
    },
  ],
];
