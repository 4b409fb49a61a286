import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { Secret } from '../../../src/common/secret.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { documentOf, inject, MUTATIONS, movementsOf, type Payable, payable } from './payments.ts';

describe.each(['node:sqlite', 'Redis'] as const)('keys in service mode, over %s,', (store) => {
  let cleanup: AsyncDisposableStack;
  let sandbox: Sandbox;
  let dataDir: string;
  let redisUrl: string | undefined;
  let gateway: RunningGateway;
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  let world: any;

  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    const choices = { repeatedRefund: 'performed' } as const;
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices });
    cleanup.defer(() => sandbox.stop());
    dataDir = await mkdtemp(join(tmpdir(), 'pasarela-owners-'));
    cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
    redisUrl = store === 'Redis' ? cleanup.use(await startRedis()).url : undefined;
    gateway = cleanup.use(await start('sub'));
    world = await control(sandbox, 'GET', '/sandbox');
  });
  afterAll(() => cleanup.disposeAsync());
  beforeEach(() => control(sandbox, 'DELETE', '/sandbox/faults'));

  const start = (keyOwnerClaim: string, folder = dataDir): Promise<RunningGateway> =>
    startGateway({
      sandbox,
      webhooks: false,
      config: {
        dataDir: folder,
        redisUrl: redisUrl === undefined ? undefined : new Secret(redisUrl),
        service: { ...serviceFor(sandbox), keyOwnerClaim },
      },
    });
  const pay = async (
    { mutation, input }: Pick<Payable, 'mutation' | 'input'>,
    claims: Parameters<typeof callerToken>[0],
    at = gateway,
  ) => {
    const headers = { authorization: `Bearer ${await callerToken(claims)}` };
    const { data, errors } = await at.query(documentOf(mutation), { input }, headers);
    expect(errors).toBeUndefined();
    return data.result;
  };
  const ANA = { sub: 'ana' };
  const BEN = { sub: 'ben' };

  it.each(MUTATIONS.filter((one) => one !== 'refundTransaction'))(
    "are each subject's own: %s under one key is two payments of two, each told its own",
    async (mutation) => {
      const payment = await payable(sandbox, mutation, `subjects ${mutation}`);
      const hers = await pay(payment, ANA);
      const his = await pay(payment, BEN);
      expect(hers.moved.id).not.toBe(his.moved.id);
      expect([hers.replayed, his.replayed]).toEqual([false, false]);
      expect(await pay(payment, ANA)).toEqual({ ...hers, replayed: true });
      expect(await pay(payment, BEN)).toEqual({ ...his, replayed: true });
      expect(await movementsOf(sandbox, payment.tag)).toHaveLength(2);
      // Another payment under the key is a conflict for whoever used it.
      const other = { mutation, input: payment.otherInput };
      expect(await pay(other, BEN)).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    },
  );

  it('settle after a lost answer, each its own', async () => {
    const payment = await payable(sandbox, 'createMoneyOut', 'owners settle');
    await inject(sandbox, { method: 'POST', path: payment.path }, 'reset-after-commit', 1);
    const hers = await pay(payment, ANA);
    await inject(sandbox, { method: 'POST', path: payment.path }, 'reset-after-commit', 1);
    const his = await pay(payment, BEN);
    expect(hers.moved.id).not.toBe(his.moved.id);
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(2);
  });

  it('are shared by the callers for whom the claim reads alike that the operator names', async () => {
    await using shared = await start('iss', join(dataDir, 'of-another-process'));
    const payment = await payable(sandbox, 'createInternalTransaction', 'owners shared');
    const hers = await pay(payment, ANA, shared);
    expect(await pay(payment, BEN, shared)).toEqual({ ...hers, replayed: true });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  /** A transfer between two instruments of a customer. */
  const ofCustomer = async (tag: string) => {
    const [customer] = world.customers;
    const own = world.accounts.find(({ ownerId }: { ownerId: string }) => ownerId === customer.id);
    const instruments = await control(
      sandbox,
      'GET',
      `/v1/clients/${sandbox.clientId}/instruments?page=1&per_page=50&customer_id=${customer.id}`,
    );
    const ids: string[] = instruments.data.map(({ id }: { id: string }) => id);
    const source = own?.instrumentId ?? ids[0];
    const base = await payable(sandbox, 'createInternalTransaction', tag);
    const destinationInstrumentId = ids.find((id) => id !== source) ?? source;
    const input = { ...base.input, sourceInstrumentId: source, destinationInstrumentId };
    return { payment: { ...base, input }, claims: { sub: 'ana', customer_id: customer.id } };
  };

  it('of a customer are known to callers for the whole client: the same again is told, not paid', async () => {
    const { payment, claims } = await ofCustomer('customers own');
    const theirs = await pay(payment, claims);
    expect(theirs).toMatchObject({ replayed: false });
    const again = await pay(payment, BEN);
    expect(again).toEqual({ ...theirs, replayed: true });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  it('of callers for the whole client are no customer’s: it is told nothing of them, and pays its own', async () => {
    const { payment, claims } = await ofCustomer('whole first');
    const whole = await pay(payment, BEN);
    const theirs = await pay(payment, claims);
    expect([whole.replayed, theirs.replayed]).toEqual([false, false]);
    expect(theirs.moved.id).not.toBe(whole.moved.id);
    // From here on each is told its own.
    expect(await pay(payment, BEN)).toEqual({ ...whole, replayed: true });
    expect(await pay(payment, claims)).toEqual({ ...theirs, replayed: true });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(2);
  });

  it('are one key for a back office that pays as the customer, where the claim reads alike', async () => {
    await using shared = await start('iss', join(dataDir, 'of-a-back-office'));
    const { payment, claims } = await ofCustomer('back office');
    const office = await pay(payment, { ...claims, sub: 'back office' }, shared);
    expect(await pay(payment, claims, shared)).toEqual({ ...office, replayed: true });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  it('of the version before, which knew no owners, are found: none of them pays again', async () => {
    const payment = await payable(sandbox, 'createInternalTransaction', 'owners upgrade');
    const first = await pay(payment, ANA);
    await forgetOwners();
    for (const claims of [ANA, BEN]) expect(await pay(payment, claims)).toEqual({ ...first, replayed: true });
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  /** Makes the records what the version before wrote. */
  async function forgetOwners(): Promise<void> {
    if (redisUrl === undefined) {
      const db = new DatabaseSync(join(dataDir, 'money.sqlite'));
      db.exec('UPDATE intent SET key_owner = NULL, twin = NULL');
      db.close();
      return;
    }
    const redis = new Redis(redisUrl);
    for (const key of await redis.keys('pasarela:money:{*}:*')) {
      if ((await redis.type(key)) !== 'hash') continue;
      await redis.hdel(key, 'whose');
      // That version kept the status of what is done in a field of its own.
      const [line = '', sentAt = '', settledAt = '', attempts = '', status] =
        (await redis.hget(key, 'past'))?.split(',') ?? [];
      if (status === undefined) continue;
      await redis.hset(key, 'past', [line, sentAt, settledAt, attempts].join(','), 'status', status);
    }
    redis.disconnect();
  }
});
