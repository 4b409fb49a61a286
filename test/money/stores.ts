import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { RecordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import {
  type MoneyRecords,
  PaymentsHeldError,
  RETENTION_MS,
  RecordsUnavailableError,
} from '../../src/money/record.ts';
import { ONLY_REFUND_MS } from '../../src/money/record-parts.ts';
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

const endingRefunds =
  ({ admin }: RedisServer): Store['endRefund'] =>
  async (clientId, credit) => {
    const key = keyOf({ clientId, hash: `refund:${credit}` });
    // It ends by itself, no later than this.
    const left = await admin.pttl(key);
    if (left <= 0 || left > RETENTION_MS) throw new Error(`${key} ends in ${left} ms`);
    const list = String(await admin.get(key));
    const earlier = list.replace(/=(\d+)/g, (_, at) => `=${Number(at) - ONLY_REFUND_MS}`);
    await admin.set(key, earlier, 'KEEPTTL');
  };

const endingSooner =
  ({ admin }: RedisServer): Store['endSooner'] =>
  async (name, ms) => {
    const end = (await admin.pexpiretime(keyOf(name))) - ms;
    await admin.pexpireat(keyOf(name), end);
    return end;
  };

/** What never fails, and what does something else the second time. */
const ONCE: ReadonlySet<string> = new Set(['isAvailable', 'problem', 'sentAgain', 'takeOpen', 'take']);

/**
 * A record whose steps are taken again where the store did not answer in time: beside other work a Redis may take longer than the gateway
 * waits for it. For tests of what a record answers, not of when.
 */
export function patient(records: MoneyRecords): MoneyRecords {
  let hasStopped = false;
  const again =
    <Asked extends readonly unknown[], Answer>(step: (...asked: Asked) => Promise<Answer>) =>
    async (...asked: Asked): Promise<Answer> => {
      const { answer } = await until(() =>
        step(...asked).then(
          (answer) => ({ answer }),
          (error: unknown) => {
            const isLate =
              error instanceof RecordsUnavailableError &&
              !(error instanceof PaymentsHeldError) &&
              // What Redis refuses for good is refused again.
              !/(^|: )(ERR|WRONGTYPE) /.test(String(error.cause));
            if (hasStopped || !isLate) throw error;
            return undefined;
          },
        ),
      );
      return answer;
    };
  // Each step stays of its own type.
  const allAgain = <Steps extends object>(steps: Steps): Steps =>
    Object.fromEntries(
      Object.entries(steps).map(([name, step]) => [
        name,
        typeof step === 'function' && !ONCE.has(name) ? again(step) : step,
      ]),
    ) as Steps;
  return {
    ...allAgain(records),
    journal: allAgain(records.journal),
    readings: allAgain(records.readings),
    async stop() {
      hasStopped = true;
      await records.stop();
    },
  };
}

/** Two instances over one store each, as two processes would have them. */
export interface Store {
  open(): Promise<MoneyRecords>;
  /** Writes the record of a payment that was sent as if that had been so long ago, in ms. */
  backdate(name: RecordName, ms: number): Promise<void>;
  /** Makes a record end sooner by so long, in ms. Returns when it ends, by a clock of the store. */
  endSooner(name: RecordName, ms: number): Promise<number>;
  /** Makes the time pass for which the refund of a credit, in lower case, is the only one. */
  endRefund(clientId: string, credit: string): Promise<void>;
  close(): Promise<void>;
}

const openPatient = async (redisUrl: string): Promise<MoneyRecords> =>
  patient(await openMoneyRecords({ redisUrl, dataDir: '/dev/null/nowhere', logger }));

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
        async endSooner({ clientId, hash }, ms) {
          using db = new DatabaseSync(join(dataDir, 'data', 'money.sqlite'));
          const row = db
            .prepare(
              'UPDATE intent SET expires_at = expires_at - ? WHERE client_id = ? AND hash = ? RETURNING expires_at',
            )
            .get(ms, clientId, hash);
          return Number(row?.['expires_at']);
        },
        async endRefund(clientId, credit) {
          using db = new DatabaseSync(join(dataDir, 'data', 'money.sqlite'));
          const { changes } = db
            .prepare('UPDATE refunds SET kept_until = kept_until - ? WHERE client_id = ? AND original = ?')
            // Two processes' clocks may differ a little.
            .run(ONLY_REFUND_MS + 60_000, clientId, credit);
          if (changes !== 1) throw new Error(`there is no refund of ${credit}`);
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
        open: () => openPatient(redis.url),
        backdate: backdating(redis),
        endSooner: endingSooner(redis),
        endRefund: endingRefunds(redis),
        close: () => redis.stop(),
      };
    },
  ],
  [
    'a Redis Cluster',
    async () => {
      const redis = await startCluster();
      return {
        open: () => openPatient(clusterUrl(redis)),
        backdate: backdating(redis),
        endSooner: endingSooner(redis),
        endRefund: endingRefunds(redis),
        close: () => redis.stop(),
      };
    },
  ],
];
