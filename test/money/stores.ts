import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
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

/** Two instances over one store each, as two processes would have them. */
export interface Store {
  open(): Promise<MoneyRecords>;
  close(): Promise<void>;
}

export const STORES: [string, () => Promise<Store>][] = [
  [
    'node:sqlite',
    async () => {
      const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
      return {
        open: () => openMoneyRecords({ redisUrl: undefined, dataDir: join(dataDir, 'data'), logger }),
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
        close: () => redis.stop(),
      };
    },
  ],
];
