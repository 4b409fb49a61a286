import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/common/secret.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, inject, MUTATIONS, movementsOf, type Payable, payable, requestsOf } from './payments.ts';

/** The store of a gateway, which a test takes away and brings back. */
interface Store extends AsyncDisposable {
  readonly redisUrl: Secret | undefined;
  readonly dataDir: string;
  takeAway(): Promise<void>;
  bringBack(): Promise<void>;
}

/** Somebody else writes to the file, and does not stop. */
async function lockableFile(): Promise<Store> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-away-'));
  let other: DatabaseSync | undefined;
  const bringBack = async (): Promise<void> => {
    other?.close();
    other = undefined;
  };
  return {
    redisUrl: undefined,
    dataDir,
    async takeAway() {
      other = new DatabaseSync(join(dataDir, 'money.sqlite'));
      other.exec('BEGIN EXCLUSIVE');
    },
    bringBack,
    async [Symbol.asyncDispose]() {
      await bringBack();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Redis is killed. */
async function mortalRedis(): Promise<Store> {
  const redis = await startRedis();
  return {
    redisUrl: new Secret(redis.url),
    dataDir: redis.dir,
    takeAway: redis.kill,
    bringBack: redis.start,
    [Symbol.asyncDispose]: redis.stop,
  };
}

/** Redis has reached its `maxmemory`, and refuses writes. */
async function fullRedis(): Promise<Store> {
  const redis = await startRedis();
  return {
    redisUrl: new Secret(redis.url),
    dataDir: redis.dir,
    async takeAway() {
      await redis.admin.config('SET', 'maxmemory', '1');
    },
    async bringBack() {
      await redis.admin.config('SET', 'maxmemory', '0');
    },
    [Symbol.asyncDispose]: redis.stop,
  };
}

const STORES = [
  ['node:sqlite', lockableFile],
  ['Redis', mortalRedis],
  ['a Redis out of memory', fullRedis],
] as const;

describe.each(STORES)('while the record of payments is away, over %s,', (_name, openStore) => {
  let store: Store;
  let gateway: RunningGateway;
  beforeEach(async () => {
    store = await openStore();
    const { redisUrl, dataDir } = store;
    // What the service is long about is answered all the same, however slow the machine is.
    const patient = { upstreamTimeoutMs: 30_000, operationTimeoutMs: 30_000 };
    gateway = await startGateway({ config: { redisUrl, dataDir, ...patient }, webhooks: false });
    // The gateway knows who is calling.
    await gateway.query('{ client { id } }');
  });
  afterEach(async () => {
    await gateway.stop();
    await store[Symbol.asyncDispose]();
  });

  const call = ({ mutation, input }: Payable) => gateway.query(documentOf(mutation), { input });
  /** The answer once the store takes part again. */
  const callUntilStored = (payment: Payable) =>
    until(async () => {
      const { data } = await call(payment);
      return data?.result?.moved !== undefined && data.result;
    });

  it.each(MUTATIONS)('%s is not sent, says so, and is done once the record is back', async (mutation) => {
    const { sandbox } = gateway;
    const payment = await payable(sandbox, mutation, 'before');
    await store.takeAway();
    const { data, errors } = await call(payment);
    expect(data.result).toBeNull();
    expect(errors?.map(({ extensions }) => extensions['code'])).toEqual(['STORE_UNAVAILABLE']);
    expect(await requestsOf(sandbox, payment.route)).toBe(0);
    await store.bringBack();
    expect(await callUntilStored(payment)).toMatchObject({ replayed: false });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  it('a refund whose record goes away while its original is read is not sent', async () => {
    const { sandbox } = gateway;
    const payment = await payable(sandbox, 'refundTransaction', 'between');
    const read = 'GET /v1/clients/{clientId}/transactions/{transactionId}';
    const match = { method: 'GET', path: payment.path.replace('/refund', '') };
    await inject(sandbox, match, { delayMs: 8_000 }, 1);
    const calling = call(payment);
    await until(async () => (await requestsOf(sandbox, read)) === 1);
    await store.takeAway();
    expect((await calling).errors?.[0]?.extensions['code']).toBe('STORE_UNAVAILABLE');
    expect(await requestsOf(sandbox, payment.route)).toBe(0);
    await store.bringBack();
    expect(await callUntilStored(payment)).toMatchObject({ replayed: false });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  it.each(MUTATIONS)(
    '%s whose answer comes then is told it, and the answer is stored later',
    async (mutation) => {
      const { sandbox } = gateway;
      const payment = await payable(sandbox, mutation, 'after');
      await inject(sandbox, { method: 'POST', path: payment.path }, { delayMs: 500 }, 1);
      const calling = call(payment);
      await until(async () => (await requestsOf(sandbox, payment.route)) === 1);
      await store.takeAway();
      const { data } = await calling;
      expect(data.result).toMatchObject({ replayed: false, moved: { id: expect.any(String) } });
      await store.bringBack();
      expect(await callUntilStored(payment)).toEqual({ ...data.result, replayed: true });
      expect(await requestsOf(sandbox, payment.route)).toBe(1);
      expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
    },
  );
});
