import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { RecordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { keyOf, keysOf } from '../../src/money/redis/keys.ts';
import { openSet } from '../../src/money/redis/redis-payment-reads.ts';
import { type RedisCluster, startCluster, startMigration } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';

let cluster: RedisCluster;
let records: MoneyRecords;
beforeAll(async () => {
  cluster = await startCluster();
  records = await openMoneyRecords({ redisUrl: cluster.url, dataDir: '/dev/null/nowhere', logger });
});
afterAll(async () => {
  await records.stop();
  await cluster[Symbol.asyncDispose]();
});

const INPUT = 'input-one';
const REFUSED = { kind: 'refused', status: 400, text: '{"code":"no"}' } as const;
const TRANSACTION = '7d9b1c52-6c1f-4be4-9a3d-5f2f5c0d7e11';
const UNREACHED = { code: 'STORE_UNAVAILABLE' };
const { operation } = NOBODYS.asked;

async function sent(): Promise<RecordName> {
  const name = { clientId: randomUUID(), hash: 'a-payment' };
  const claim = { owner: 'a', inputHash: INPUT, leaseMs: 600_000, ...NOBODYS };
  await until(() => records.claim(name, claim).catch(() => undefined));
  await until(() => records.markSent(name, 'a', '{}').catch(() => undefined));
  return name;
}

const listed = async ({ clientId }: RecordName) => {
  const found = await records.search({
    clientId,
    customerId: undefined,
    operations: [operation],
    classes: ['open'],
    from: undefined,
    to: undefined,
    beyond: undefined,
    isBack: false,
    limit: 10,
  });
  return found.records.map(({ hash }) => hash);
};

// Each names what has come to the new node already. Without the whole of a client's keys a step would be done by half.
it.each([
  ['nothing', () => []],
  ['the record', (name) => [keyOf(name)]],
  ['the journal', ({ clientId }) => [`${keysOf(clientId)}journal`]],
  ['the list of what is open', ({ clientId }) => [openSet(clientId, operation)]],
] as [string, (name: RecordName) => string[]][])(
  'no step is done by half while a Cluster moves a client to another node, which has %s',
  async (_what, moved) => {
    const name = await sent();
    const before = await records.read(name);
    const { source, target, finish } = await startMigration(cluster, name.clientId);
    const keys = moved(name);
    if (keys.length > 0) await source.admin.migrate('127.0.0.1', target.port, '', 0, 5000, 'KEYS', ...keys);
    await expect(records.answer(name, INPUT, REFUSED)).rejects.toMatchObject(UNREACHED);
    await expect(records.release(name, 'a')).rejects.toMatchObject(UNREACHED);
    await expect(records.readByTransactions(name.clientId, [TRANSACTION])).rejects.toMatchObject(UNREACHED);
    await expect(listed(name)).rejects.toMatchObject(UNREACHED);
    await expect(records.tidy(name.clientId)).rejects.toMatchObject(UNREACHED);
    // Fails where the new node has made a key that is still to come.
    await finish();
    expect(await until(() => listed(name).catch(() => undefined))).toEqual([name.hash]);
    expect(await records.read(name)).toEqual({ ...before, sent: expect.anything() });
    expect(await records.answer(name, INPUT, REFUSED)).toBe(true);
    expect(await records.read(name)).toMatchObject({ state: 'answered', answer: REFUSED });
  },
);
