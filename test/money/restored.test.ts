import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { Secret } from '../../src/common/secret.ts';
import { pasarela } from '../cli/run.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { leads } from '../helpers/nemesis.ts';
import { DURABLE, type RedisServer, startRedis } from '../helpers/redis.ts';
import {
  neverFailOver,
  type RedisWithSentinel,
  startCluster,
  startWithSentinel,
} from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { wireOverWebSocket } from '../helpers/wire.ts';
import { documentOf, MUTATIONS, movementsOf, type Payable, payable } from '../scenarios/faults/payments.ts';

let cleanup: AsyncDisposableStack;
let sandbox: Sandbox;
let dataDir: string;
beforeEach(async () => {
  cleanup = new AsyncDisposableStack();
  const choices = { repeatedRefund: 'performed' } as const;
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices });
  cleanup.defer(() => sandbox.stop());
  dataDir = join(await mkdtemp(join(tmpdir(), 'pasarela-restored-')), 'data');
  cleanup.defer(() => rm(join(dataDir, '..'), { recursive: true, force: true }));
});
afterEach(() => cleanup.disposeAsync());

const start = (redisUrl?: string): Promise<RunningGateway> =>
  startGateway({
    sandbox,
    webhooks: false,
    config: { dataDir, redisUrl: redisUrl === undefined ? undefined : new Secret(redisUrl), ...PATIENT },
  });
const pay = async ({ query }: RunningGateway, { mutation, input }: Payable) => {
  const { data, errors } = await query(documentOf(mutation), { input });
  return data?.result?.__typename ?? errors?.[0]?.extensions['code'];
};
/** What `payment` tells of a key: its state, null, or the code of an error. */
const told = async ({ query }: RunningGateway, { input }: Payable) => {
  const document = 'query ($key: String!) { payment(idempotencyKey: $key) { state } }';
  const { data, errors } = await query(document, { key: input['idempotencyKey'] });
  return errors?.[0]?.extensions['code'] ?? data?.payment?.state ?? null;
};
const done = ({ mutation }: Payable): string => `${mutation[0]?.toUpperCase()}${mutation.slice(1)}Success`;
const missesPrimarySoon = ({ sentinel }: RedisWithSentinel) =>
  sentinel.admin.call('SENTINEL', 'SET', 'events', 'down-after-milliseconds', '500');
const readyz = async ({ url }: RunningGateway) => (await fetch(`${url}/readyz`)).json();
const HELD = { status: 'degraded', degraded: ['payments'], paymentsHeld: true };

const earlier = (): Promise<Payable[]> =>
  Promise.all(MUTATIONS.map((one) => payable(sandbox, one, `old ${one}`)));
const later = (): Promise<Payable[]> =>
  Promise.all(MUTATIONS.map((one) => payable(sandbox, one, `new ${one}`)));

/** Nothing moves again, whoever repeats what; then an operator lets payments go on, and the next key pays. */
async function isHeld(gateway: RunningGateway, old: Payable[], paid: Payable[], redisUrl?: string) {
  // What was found of the stores answers for a second.
  await expect.poll(() => readyz(gateway)).toMatchObject(HELD);
  expect(await (await fetch(`${gateway.url}/metrics`)).text()).toContain('pasarela_payments_held 1');
  for (const payment of old) {
    expect(await told(gateway, payment)).toBe('DONE');
    expect(await pay(gateway, payment)).toBe(done(payment));
  }
  for (const payment of paid) {
    expect(await told(gateway, payment)).toBe('STORE_UNAVAILABLE');
    expect(await pay(gateway, payment)).toBe(
      payment.mutation === 'refundTransaction' ? 'PreconditionError' : 'STORE_UNAVAILABLE',
    );
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  }
  const environment = {
    UPSTREAM_URL: sandbox.url,
    WEBHOOK_SECRET: 'a secret for tests that is long enough',
    DATA_DIR: dataDir,
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
  };
  const run = (...what: string[]) => pasarela(['payments', ...what], environment);
  const status = await run('status');
  expect(status).toMatchObject({ code: 1, stdout: expect.stringContaining('their record was put back') });
  // What is printed may lack payments: the same sentence says so, beside it.
  for (const verb of ['list', 'export'])
    expect(await run(verb)).toMatchObject({ code: 0, stderr: status.stdout });
  // Not before somebody says that it was compared.
  const refused = { code: 1, stdout: status.stdout, stderr: expect.stringContaining('Nothing is changed') };
  expect(await run('resume')).toMatchObject(refused);
  expect(await run('status')).toMatchObject({ code: 1, stdout: status.stdout });
  expect(await run('resume', '--put-back')).toMatchObject({ code: 0 });
  expect(await run('status')).toMatchObject({ code: 0 });
  for (const verb of ['list', 'export']) expect(await run(verb)).toMatchObject({ code: 0, stderr: '' });
  await until(async () => (await readyz(gateway)).paymentsHeld === undefined);
  for (const payment of paid) expect(await told(gateway, payment)).toBeNull();
  const next = await payable(sandbox, 'createInternalTransaction', `next ${paid[0]?.tag}`);
  expect(await pay(gateway, next)).toBe(done(next));
}

describe('the files of a gateway without Redis', () => {
  const moment = join('..', 'backup');
  const backup = () => join(dataDir, moment);

  it.each([
    [
      'the record alone is put back over the file',
      async () => {
        for (const suffix of ['', '-wal', '-shm'])
          await rm(join(dataDir, `money.sqlite${suffix}`), { force: true });
        await cp(join(backup(), 'money.sqlite'), join(dataDir, 'money.sqlite'));
      },
    ],
    [
      'the folder is put back over what is there',
      async () => {
        for (const suffix of ['-wal', '-shm'])
          await rm(join(dataDir, `money.sqlite${suffix}`), { force: true });
        await cp(backup(), dataDir, { recursive: true });
      },
    ],
    [
      'the folder is put back as a whole',
      async () => {
        await rm(dataDir, { recursive: true });
        await cp(backup(), dataDir, { recursive: true });
      },
    ],
    [
      'the record is deleted',
      async () => {
        for (const suffix of ['', '-wal', '-shm'])
          await rm(join(dataDir, `money.sqlite${suffix}`), { force: true });
      },
    ],
  ])('hold payments when %s', async (what, restore) => {
    const [old, paid] = [await earlier(), await later()];
    const first = await start();
    for (const payment of old) expect(await pay(first, payment)).toBe(done(payment));
    await first.stop();
    await cp(dataDir, backup(), { recursive: true });
    const second = await start();
    for (const payment of paid) expect(await pay(second, payment)).toBe(done(payment));
    await second.stop();

    // Put back twice: the second time is noticed as the first was.
    for (const _time of [1, 2]) {
      await restore();
      await using third = await start();
      await isHeld(third, what.includes('deleted') ? [] : old, paid);
      await third.stop();
    }
    // Once payments go on, a key that the record has forgotten is one that was never used.
    await using last = await start();
    const forgotten = paid.filter(({ mutation }) => mutation === 'createInternalTransaction');
    for (const payment of forgotten) {
      expect(await pay(last, payment)).toBe(done(payment));
      expect(await movementsOf(sandbox, payment.tag)).toHaveLength(2);
    }
  });

  it('hold nothing in a new folder, after a start again, or where the count beside the record is gone', async () => {
    const old = await earlier();
    for (const time of [1, 2, 3]) {
      const gateway = await start();
      await expect.poll(() => readyz(gateway)).toMatchObject({ status: 'ready' });
      for (const payment of old) expect(await pay(gateway, payment)).toBe(done(payment));
      await gateway.stop();
      const names = (await readdir(dataDir)).filter((name) => name.includes('-mark-'));
      expect(names).toEqual(time === 3 ? [] : ['money.sqlite-mark-0-4']);
      if (time === 2) await rm(join(dataDir, 'money.sqlite-mark-0-4'));
    }
  });
});

describe('a Redis', () => {
  const whole = async (redis: RedisServer): Promise<void> => {
    await redis.admin.call('BGREWRITEAOF').catch(() => {});
    await until(async () => (await redis.admin.info('persistence')).includes('aof_rewrite_in_progress:0'));
  };

  it.each([
    [
      'one server',
      async () => {
        const redis = cleanup.use(await startRedis(DURABLE));
        return { url: redis.url, redis };
      },
    ],
    [
      'the node of a Cluster that has the client',
      async () => {
        const cluster = cleanup.use(await startCluster());
        return { url: cluster.url, redis: await cluster.nodeOf(sandbox.clientId) };
      },
    ],
  ])(
    'holds payments when %s was put back while the gateway runs, and when it was flushed',
    async (_what, servers) => {
      const { url, redis } = await servers();
      const [old, paid] = [await earlier(), await later()];
      await using gateway = await start(url);
      for (const payment of old) expect(await pay(gateway, payment)).toBe(done(payment));
      await whole(redis);
      await redis.kill();
      await cp(redis.dir, `${redis.dir}-backup`, { recursive: true });
      cleanup.defer(() => rm(`${redis.dir}-backup`, { recursive: true }));
      await redis.start();
      await until(async () => (await readyz(gateway)).status === 'ready');
      for (const payment of paid) await until(async () => (await pay(gateway, payment)) === done(payment));

      await redis.kill();
      await rm(join(redis.dir, 'appendonlydir'), { recursive: true });
      await cp(`${redis.dir}-backup`, redis.dir, { recursive: true });
      await redis.start();
      await until(async () => (await readyz(gateway)).paymentsHeld === true);
      await isHeld(gateway, old, paid, url);

      await redis.admin.flushall();
      for (const payment of paid) expect(await told(gateway, payment)).toBe('STORE_UNAVAILABLE');
      const again = await payable(sandbox, 'createInternalTransaction', 'after the flush');
      expect(await pay(gateway, again)).toBe('STORE_UNAVAILABLE');
      await isHeld(gateway, [], paid, url);
    },
  );

  it('holds payments when it was flushed while no gateway ran that keeps its folder', async () => {
    await using redis = await startRedis(DURABLE);
    const paid = await later();
    const first = await start(redis.url);
    for (const payment of paid) expect(await pay(first, payment)).toBe(done(payment));
    await first.stop();
    await redis.admin.flushall();
    await using second = await start(redis.url);
    await isHeld(second, [], paid, redis.url);
  });

  it('holds payments, and tells readers of the gap, when a replica that came back with nothing is promoted at once, each time', async () => {
    await using redis = await startWithSentinel();
    // Until it is told to, it replaces no primary, however long that stands still.
    await neverFailOver(redis.sentinel);
    await using gateway = await start(redis.url);
    let [leading, following] = [redis.primary, redis.replica];
    for (const time of [1, 2]) {
      const paid = await Promise.all(MUTATIONS.map((one) => payable(sandbox, one, `${time} ${one}`)));
      for (const payment of paid) await until(async () => (await pay(gateway, payment)) === done(payment));
      await using reader = await wireOverWebSocket(gateway.graphql, sandbox.accessToken, {
        query: 'subscription { events { id cursor } }',
      });
      await until(() => reader.heard.some(({ kind }) => kind === 'bookmark'));
      await missesPrimarySoon(redis);
      await following.kill();
      await rm(join(following.dir, 'appendonlydir'), { recursive: true });
      await leading.kill();
      await following.start();
      await leads(redis, following);
      // On a busy machine Sentinel would promote the one with the data again, and nothing were lost.
      await neverFailOver(redis.sentinel);
      await leading.start();
      await leading.admin.call('REPLICAOF', '127.0.0.1', following.port);
      await until(async () => (await readyz(gateway)).paymentsHeld === true);
      const told = await until(() => reader.heard.find(({ kind }) => kind === 'error'));
      expect(told).toMatchObject({ code: 'EVENTS_GAP' });
      await until(async () => !(await readyz(gateway)).degraded.includes('events'));
      await isHeld(gateway, [], paid, redis.url);
      [leading, following] = [following, leading];
    }
  });

  it('holds nothing when it is started again, or fails over, and has lost nothing', async () => {
    await using redis = await startWithSentinel();
    const [old, paid] = [await earlier(), await later()];
    await using gateway = await start(redis.url);
    for (const payment of old) expect(await pay(gateway, payment)).toBe(done(payment));
    await redis.primary.kill();
    await until(async () => (await redis.replica.admin.info('replication')).includes('role:master'));
    await until(async () => {
      const [payment] = paid;
      return payment !== undefined && (await pay(gateway, payment)) === done(payment);
    });
    for (const payment of paid.slice(1)) {
      await until(async () => (await pay(gateway, payment)) === done(payment));
    }
    for (const payment of old) expect(await pay(gateway, payment)).toBe(done(payment));
    expect((await readyz(gateway)).paymentsHeld).toBeUndefined();
    for (const payment of [...old, ...paid]) expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });
});

it('is told by the doctor', async () => {
  const paid = await later();
  const first = await start();
  for (const payment of paid) expect(await pay(first, payment)).toBe(done(payment));
  await first.stop();
  for (const suffix of ['', '-wal', '-shm'])
    await rm(join(dataDir, `money.sqlite${suffix}`), { force: true });
  await using second = await start();
  const { port } = new URL(second.url);
  const { stdout } = await pasarela(['doctor', '--json'], {
    UPSTREAM_URL: sandbox.url,
    WEBHOOK_SECRET: 'a secret for tests that is long enough',
    DATA_DIR: dataDir,
    PORT: port,
    HOST: '127.0.0.1',
  });
  const { findings } = JSON.parse(stdout);
  expect(findings).toContainEqual(
    expect.objectContaining({ status: 'failure', cure: expect.stringContaining('pasarela payments resume') }),
  );
  expect(second.log.join('\n')).toContain('payments are held');
});
