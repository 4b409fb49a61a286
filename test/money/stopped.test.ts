import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { clock, useClock } from '../../src/common/clock.ts';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { Secret } from '../../src/common/secret.ts';
import { recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { RecordsUnavailableError } from '../../src/money/record.ts';
import { pasarela } from '../cli/run.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import {
  documentOf,
  inject,
  MUTATIONS,
  movementsOf,
  type Payable,
  payable,
  requestsOf,
} from '../scenarios/faults/payments.ts';
import { NOBODYS } from './orders.ts';
import { PROMPT_REPLICAS, STORES } from './stores.ts';
import { serviceError } from './upstream.ts';

let cleanup: AsyncDisposableStack;
let sandbox: Sandbox;
beforeEach(async () => {
  cleanup = new AsyncDisposableStack();
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  cleanup.defer(() => sandbox.stop());
});
afterEach(() => cleanup.disposeAsync());

const newFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-stopped-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'data');
};
const pay = async ({ query }: RunningGateway, { mutation, input }: Payable) => {
  const { data, errors } = await query(documentOf(mutation), { input });
  return data?.result?.__typename ?? errors?.[0];
};
const done = ({ mutation }: Payable): string => `${mutation[0]?.toUpperCase()}${mutation.slice(1)}Success`;
const readyz = async ({ url }: RunningGateway) => (await fetch(`${url}/readyz`)).json();
const STOPPED = {
  message: expect.stringContaining('stopped by the operator'),
  extensions: { code: 'PAYMENTS_STOPPED' },
};
const MONEY_OUT = 'POST /v1/transactions/money_out';
/** Has a payment be unknown. The refusal of its repeat ends the call, which else would go on until its time is over. */
const lose = async ({ path }: Payable): Promise<void> => {
  await inject(sandbox, { method: 'POST', path }, { status: 503 }, 1);
  await inject(sandbox, { method: 'POST', path }, { status: 403, body: JSON.parse(serviceError(403)) });
};

it.each(['node:sqlite', 'Redis'])(
  'stops all payments of every process at once, and lets them go on, over %s',
  async (kind) => {
    const redis = kind === 'Redis' ? await startRedis() : undefined;
    if (redis !== undefined) cleanup.defer(() => redis.stop());
    const redisUrl = redis && new Secret(redis.url);
    const dataDir = await newFolder();
    const start = async (dataDir: string) => {
      const config = { dataDir, redisUrl, ...PATIENT };
      const gateway = await startGateway({ sandbox, webhooks: false, config });
      cleanup.defer(() => gateway.stop());
      return gateway;
    };
    const one = await start(dataDir);
    const gateways = redis === undefined ? [one] : [one, await start(await newFolder())];
    const environment = {
      ...{ DATA_DIR: dataDir, UPSTREAM_URL: sandbox.url, WEBHOOK_SECRET: 'a secret that is long enough' },
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
    };
    const run = (what: string) => pasarela(['payments', what], environment);
    const old = await Promise.all(MUTATIONS.map((one) => payable(sandbox, one, `old ${one}`)));
    for (const payment of old) expect(await pay(one, payment)).toBe(done(payment));

    for (const time of ['first', 'second']) {
      const lost = await payable(sandbox, 'createMoneyOut', `lost ${time}`);
      await lose(lost);
      expect(await pay(one, lost)).toBe('OutcomeUnknown');

      expect(await run('stop')).toMatchObject({ code: 0, stdout: expect.stringContaining('operator') });
      // Not before: the gateway asks again by itself, and would settle it.
      await fetch(`${sandbox.url}/sandbox/faults`, { method: 'DELETE' });
      const sent = await requestsOf(sandbox, MONEY_OUT);
      for (const [index, gateway] of gateways.entries()) {
        for (const mutation of MUTATIONS) {
          const payment = await payable(sandbox, mutation, `${time} ${index} ${mutation}`);
          expect(await pay(gateway, payment)).toMatchObject(STOPPED);
          expect(await movementsOf(sandbox, payment.tag)).toHaveLength(0);
        }
        // What is known is told, and what is not is not sent again.
        for (const payment of old) expect(await pay(gateway, payment)).toBe(done(payment));
        expect(await pay(gateway, lost)).toBe('OutcomeUnknown');
        await until(async () => (await readyz(gateway)).paymentsHeld === true);
        expect((await readyz(gateway)).reasons).toContain('Payments are held: an operator has stopped them.');
      }
      expect(await requestsOf(sandbox, MONEY_OUT)).toBe(sent);
      expect(await run('status')).toMatchObject({ code: 1 });
      expect(await run('resume')).toMatchObject({ code: 0 });
      for (const gateway of gateways) expect(await pay(gateway, lost)).toBe('CreateMoneyOutSuccess');
      expect(await movementsOf(sandbox, lost.tag)).toHaveLength(1);
      expect(await run('status')).toMatchObject({ code: 0 });
    }
  },
);

it.each(['node:sqlite', 'Redis'])(
  'a stop holds also where the record was put back before: nothing is sent again, and both are told, over %s',
  async (kind) => {
    const redis = kind === 'Redis' ? await startRedis() : undefined;
    if (redis !== undefined) cleanup.defer(() => redis.stop());
    const dataDir = await newFolder();
    const redisUrl = redis && new Secret(redis.url);
    const gateway = await startGateway({
      ...{ sandbox, webhooks: false, config: { dataDir, redisUrl, ...PATIENT } },
    });
    cleanup.defer(() => gateway.stop());
    const run = (...what: string[]) =>
      pasarela(['payments', ...what], {
        ...{ DATA_DIR: dataDir, UPSTREAM_URL: sandbox.url, WEBHOOK_SECRET: 'a secret that is long enough' },
        ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
      });
    const lost = await payable(sandbox, 'createMoneyOut', 'lost');
    await lose(lost);
    expect(await pay(gateway, lost)).toBe('OutcomeUnknown');

    // The record forgets payments: less are counted in it than outside.
    if (redis === undefined) await writeFile(join(dataDir, 'money.sqlite-mark-0-1000'), '');
    else await redis.admin.hset(`pasarela:money:{${sandbox.clientId}}:ledger`, 'sent', 0);
    const first = await payable(sandbox, 'createInternalTransaction', 'first');
    const refused = await until(async () => {
      // Without Redis a gateway compares at its start.
      if (redis === undefined)
        await (await openMoneyRecords({ redisUrl: undefined, dataDir, logger })).stop();
      const told = await pay(gateway, first);
      return told.extensions?.code === 'STORE_UNAVAILABLE' && told;
    });
    expect(refused.message).toContain('put back to an earlier state. This call has sent nothing.');
    expect(await run('stop')).toMatchObject({
      ...{ code: 0, stdout: expect.stringMatching(/an operator has stopped them.*was put back/s) },
    });
    await fetch(`${sandbox.url}/sandbox/faults`, { method: 'DELETE' });
    const sent = await requestsOf(sandbox, MONEY_OUT);
    expect(await pay(gateway, lost)).toBe('OutcomeUnknown');
    expect(await pay(gateway, first)).toMatchObject(STOPPED);
    expect(await requestsOf(sandbox, MONEY_OUT)).toBe(sent);
    await until(async () => (await readyz(gateway)).reasons?.length > 1);
    expect((await readyz(gateway)).reasons).toEqual([
      'Payments are held: an operator has stopped them.',
      'Payments are held: their record has been put back to an earlier state.',
    ]);
    expect(await run('status')).toMatchObject({
      ...{ code: 1, stdout: expect.stringMatching(/an operator has stopped them.*was put back/s) },
    });
    expect(await run('resume')).toMatchObject({ code: 1 });
    expect(await run('resume', '--put-back')).toMatchObject({ code: 0 });
    expect(await run('status')).toMatchObject({ code: 0, stdout: 'Payments are not held.\n' });
    expect(await pay(gateway, lost)).toBe('CreateMoneyOutSuccess');
    expect(await movementsOf(sandbox, lost.tag)).toHaveLength(1);
  },
);

it('a stop that does not reach the ledgers of clients says that their payments may go on', async () => {
  const redis = await startRedis();
  cleanup.defer(() => redis.stop());
  const dataDir = await newFolder();
  // It looks at the holds when it is asked, and not by itself every ten seconds: the command may take as long.
  const looking = { unref: () => looking };
  onTestFinished(useClock({ ...clock, setInterval: () => looking, clearInterval: () => {} }));
  const gateway = await openMoneyRecords({ redisUrl: redis.url, dataDir, logger });
  cleanup.defer(() => gateway.stop());
  const send = async (key: string) => {
    const name = recordName({ clientId: 'client', customerId: undefined, key });
    await gateway.claim(name, { ...NOBODYS, owner: key, inputHash: key, leaseMs: 0, twin: key });
    return gateway.markSent(name, key, '{}');
  };
  expect(await send('a first key')).toBe(true);
  const run = (what: string) => pasarela(['payments', what], { DATA_DIR: dataDir, REDIS_URL: redis.url });
  // The set of clients cannot be read: Redis fails between the two parts of the stop.
  const keys = ['~pasarela:money:stopped', '~pasarela:money:held', '~pasarela:money:{*'];
  await redis.admin.call('ACL', 'SETUSER', 'default', 'resetkeys', ...keys);
  const told = await run('stop');
  expect(told).toMatchObject({ code: 1, stderr: expect.stringContaining('may go on for up to ten seconds') });
  expect(told.stderr).toContain('an operator has stopped them');
  expect(await send('another key')).toBe(true);
  expect(await gateway.held()).toMatchObject([{ why: 'stopped' }]);
  await expect(send('a key after the look')).rejects.toMatchObject({ why: 'stopped' });
  await redis.admin.call('ACL', 'SETUSER', 'default', '~*');
  expect(await run('stop')).toMatchObject({ code: 0 });
  await expect(send('a third key')).rejects.toMatchObject({ why: 'stopped' });
});

/** Runs something while Redis refuses the gateway and its commands all but some keys. */
async function within(redis: RedisServer, keys: readonly string[], what: () => Promise<void>): Promise<void> {
  await redis.admin.call('ACL', 'SETUSER', 'default', 'resetkeys', ...keys.map((key) => `~${key}`));
  try {
    await what();
  } finally {
    await redis.admin.call('ACL', 'SETUSER', 'default', '~*');
  }
}

it('a stop that the ledger of a client alone did not take is told as failed, however much else was stopped', async () => {
  const redis = cleanup.use(await startRedis());
  const gateway = await openMoneyRecords({ redisUrl: redis.url, dataDir: await newFolder(), logger });
  cleanup.defer(() => gateway.stop());
  const name = recordName({ clientId: 'client', customerId: undefined, key: 'a first key' });
  await gateway.claim(name, { ...NOBODYS, owner: 'me', inputHash: 'input', leaseMs: 0, twin: 'twin' });
  expect(await gateway.markSent(name, 'me', '{}')).toBe(true);
  await within(redis, ['pasarela:money:[^{]*'], async () => {
    await expect(gateway.holdPayments()).rejects.toBeInstanceOf(RecordsUnavailableError);
  });
  expect(await gateway.held()).toMatchObject([{ why: 'stopped' }]);
  await gateway.holdPayments();
  expect(await redis.admin.hget('pasarela:money:{client}:ledger', 'stopped')).toBe('1');
});

it.each([
  ['a resumption', 'pasarela:money:[^{]*', 'stop', 'resume'],
  ['a stop', '*{client}*', undefined, 'stop'],
] as const)(
  '%s that was cut short leaves nobody stopped once payments are resumed',
  async (_what, reached, before, cut) => {
    const redis = cleanup.use(await startRedis());
    const dataDir = await newFolder();
    const gateway = await openMoneyRecords({ redisUrl: redis.url, dataDir, logger });
    cleanup.defer(() => gateway.stop());
    const send = async (key: string) => {
      const name = recordName({ clientId: 'client', customerId: undefined, key });
      await gateway.claim(name, { ...NOBODYS, owner: key, inputHash: key, leaseMs: 0, twin: key });
      return gateway.markSent(name, key, '{}');
    };
    const run = (what: string) => pasarela(['payments', what], { DATA_DIR: dataDir, REDIS_URL: redis.url });
    expect(await send('a first key')).toBe(true);
    if (before !== undefined) expect(await run(before)).toMatchObject({ code: 0 });
    await within(redis, [reached, 'pasarela:money:clients', 'pasarela:money:held'], async () => {
      const told = await run(cut);
      expect(told.code).toBe(1);
      if (cut === 'stop') expect(told.stderr).toContain('not stopped, or those of some clients alone');
    });
    await expect(send('another key')).rejects.toMatchObject({ why: 'stopped' });
    // As long as one client may be stopped, everybody is told so.
    if (cut === 'resume') expect(await gateway.held()).toMatchObject([{ why: 'stopped' }]);
    expect(await run('resume')).toMatchObject({ code: 0 });
    expect(await send('another key')).toBe(true);
  },
);

it.each(STORES)(
  'payments that nobody holds may be resumed, which changes nothing, over %s',
  async (_kind, makeStore) => {
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const [operator, gateway] = [await store.open(), await store.open()];
    for (const records of [operator, gateway]) cleanup.defer(() => records.stop());
    const name = recordName({ clientId: 'client', customerId: undefined, key: 'a first key' });
    await gateway.claim(name, { ...NOBODYS, owner: 'me', inputHash: 'input', leaseMs: 0, twin: 'twin' });
    for (const _time of ['first', 'second']) {
      await operator.resume(false);
      expect(await gateway.held()).toEqual([]);
      expect(await gateway.isPutBack('client')).toBe(false);
      expect(await gateway.markSent(name, 'me', '{}')).toBe(true);
    }
  },
);

it('sends nothing from the start where PAYMENTS is off, and goes on where it is on', async () => {
  const dataDir = await newFolder();
  const payment = await payable(sandbox, 'createInternalTransaction', 'off, then on');
  const start = (arePaymentsOff: boolean) =>
    startGateway({ sandbox, webhooks: false, config: { dataDir, arePaymentsOff } });
  const off = await start(true);
  expect(await pay(off, payment)).toMatchObject(STOPPED);
  expect(await readyz(off)).toMatchObject({
    ...{ status: 'degraded', paymentsHeld: true, reasons: ['Payments are held: PAYMENTS is off.'] },
  });
  expect(off.log.join('\n')).toContain('PAYMENTS is off');
  await off.stop();
  expect(await movementsOf(sandbox, payment.tag)).toHaveLength(0);
  const on = await start(false);
  expect(await pay(on, payment)).toBe(done(payment));
  await on.stop();
});

it('a stop that the replica does not have is told as uncertain, and stays once it is told as done', async () => {
  const primary = await startRedis(PROMPT_REPLICAS);
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(primary.port)]);
  for (const server of [primary, replica]) cleanup.defer(() => server.stop());
  await until(async () => (await primary.admin.info('replication')).includes('state=online'));
  const environment = { DATA_DIR: await newFolder(), REDIS_URL: primary.url };
  const dataDir = await newFolder();
  const [operator, gateway] = [
    await openMoneyRecords({ redisUrl: primary.url, dataDir, logger }),
    await openMoneyRecords({ redisUrl: primary.url, dataDir, logger }),
  ];
  for (const records of [operator, gateway]) cleanup.defer(() => records.stop());
  const name = recordName({ clientId: 'client', customerId: undefined, key: 'a first key' });
  const claim = { ...NOBODYS, owner: 'me', inputHash: 'input', leaseMs: 60_000, twin: 'twin' };
  await gateway.claim(name, claim);
  await until(() =>
    gateway.markSent(name, 'me', '{}').then(
      () => true,
      () => false,
    ),
  );
  for (const _time of ['first', 'second']) {
    replica.freeze();
    await expect(operator.holdPayments()).rejects.toBeInstanceOf(RecordsUnavailableError);
    // It stops them all the same.
    expect(await gateway.held()).toMatchObject([{ why: 'stopped' }]);
    replica.thaw();
    await until(() =>
      operator.holdPayments().then(
        () => true,
        () => false,
      ),
    );
    expect(await replica.admin.hget('pasarela:money:{client}:ledger', 'stopped')).toBe('1');
    expect(await replica.admin.get('pasarela:money:stopped')).not.toBeNull();
    await operator.resume(false);
  }
  replica.freeze();
  // A command that starts later than that has never seen it answer.
  await until(async () => {
    const [, lag] = /state=online,offset=\d+,lag=(\d+)/.exec(await primary.admin.info('replication')) ?? [];
    return Number(lag) > 2;
  });
  const told = await pasarela(['payments', 'stop'], environment);
  expect(told).toMatchObject({ code: 1, stderr: expect.stringContaining('a failover may forget the stop') });
});

it.each(STORES)(
  'a stop reaches clients who have never paid at once, and once more after they may pay, over %s',
  async (_kind, makeStore) => {
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const [operator, gateway] = [await store.open(), await store.open()];
    for (const records of [operator, gateway]) cleanup.defer(() => records.stop());
    const send = async (clientId: string, key: string) => {
      const name = recordName({ clientId, customerId: undefined, key });
      await gateway.claim(name, { ...NOBODYS, owner: key, inputHash: key, leaseMs: 0, twin: key });
      return gateway.markSent(name, key, '{}');
    };
    for (const [first, second] of [
      ['one', 'two'],
      ['three', 'four'],
    ] as const) {
      await operator.holdPayments();
      await expect(send(first, 'a first key')).rejects.toMatchObject({ why: 'stopped' });
      await operator.resume(false);
      expect(await send(second, 'a first key')).toBe(true);
      await operator.holdPayments();
      await expect(send(second, 'another key')).rejects.toMatchObject({ why: 'stopped' });
      await operator.resume(false);
    }
  },
);

it('a first payment is not sent where its client could not be noted, as a stop would not find it', async () => {
  const redis = cleanup.use(await startRedis());
  const dataDir = await newFolder();
  const records = await openMoneyRecords({ redisUrl: redis.url, dataDir, logger });
  cleanup.defer(() => records.stop());
  const name = recordName({ clientId: 'client', customerId: undefined, key: 'a first key' });
  const claim = { ...NOBODYS, owner: 'me', inputHash: 'input', leaseMs: 60_000, twin: 'twin' };
  await redis.admin.call('ACL', 'SETUSER', 'default', '-sadd');
  await records.claim(name, claim);
  await expect(records.markSent(name, 'me', '{}')).rejects.toBeInstanceOf(RecordsUnavailableError);
  await redis.admin.call('ACL', 'SETUSER', 'default', '+sadd');
  expect(await records.markSent(name, 'me', '{}')).toBe(true);
  expect(await redis.admin.smembers('pasarela:money:clients')).toEqual(['client']);
});

it('a stop after a put-back stops a client that a process has paid for before it', async () => {
  const redis = await startRedis();
  cleanup.defer(() => redis.stop());
  const [gateway, operator] = await Promise.all(
    ['gateway', 'operator'].map(async () => {
      const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: await newFolder(), logger });
      cleanup.defer(() => records.stop());
      return records;
    }),
  );
  if (gateway === undefined || operator === undefined) throw new Error('both were opened');
  const send = async (key: string) => {
    const name = recordName({ clientId: 'client', customerId: undefined, key });
    await gateway.claim(name, { ...NOBODYS, owner: key, inputHash: key, leaseMs: 60_000, twin: key });
    return gateway.markSent(name, key, '{}');
  };
  expect(await send('before')).toBe(true);
  await redis.admin.flushall();
  await expect(send('while it is put back')).rejects.toMatchObject({ why: 'put-back' });
  await operator.resume(true);
  expect(await gateway.held()).toEqual([]);
  await operator.holdPayments();
  await expect(send('after the stop')).rejects.toMatchObject({ why: 'stopped' });
});
