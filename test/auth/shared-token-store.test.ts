import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { ServiceToken, SharedTokenStore } from '../../src/auth/service-token.ts';
import { openSharedTokenStore } from '../../src/auth/shared-token-store.ts';
import { clock, type Timer, useClock } from '../../src/common/clock.ts';
import { entropy, useEntropy } from '../../src/common/entropy.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { Secret } from '../../src/common/secret.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

let server: RedisServer;
const stores: SharedTokenStore[] = [];
beforeAll(async () => {
  server = await startRedis([]);
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.stop()));
  await server.admin.flushall();
});
afterAll(async () => {
  await server.stop();
});

const CLIENT_ID = '11111111-2222-4333-8444-555555555555';
const LOCK = `pasarela:token:{${CLIENT_ID}}:lock`;

/** The names of the tokens in Redis. */
const names = async (): Promise<readonly string[]> =>
  (await server.admin.keys(`pasarela:token:{${CLIENT_ID}}*`)).filter((name) => name !== LOCK);

/** The store of one more process, once it answers. */
async function open(secret = 's1', apiKey = 'k1'): Promise<SharedTokenStore> {
  const store = openSharedTokenStore({
    redisUrl: server.url,
    clientId: CLIENT_ID,
    clientSecret: new Secret(secret),
    apiKey: new Secret(apiKey),
    logger: silentLogger,
  });
  stores.push(store);
  await until(async () => {
    await store.write(tokenOf('probe'));
    return (await names()).length > 0;
  });
  await server.admin.flushall();
  return store;
}

const tokenOf = (token: string): ServiceToken => ({
  token,
  issuedAt: Date.now(),
  expiresAt: Date.now() + 600_000,
  refusedAt: undefined,
});

it('gives one process what another has left', async () => {
  const [one, two] = [await open(), await open()];
  const token = tokenOf('secret-token');
  await one.write(token);
  expect(await two.read()).toEqual(token);
  const [name = ''] = await names();
  expect(name).not.toMatch(/s1|k1/);
  expect(await server.admin.get(name)).not.toContain('secret-token');
  expect(await server.admin.pttl(name)).toBeLessThanOrEqual(600_000);
});

it.each([
  ['secret', 's2', 'k1'],
  ['API key', 's1', 'k2'],
])('neither gives a process with another %s the token, nor lets it replace it', async (_, secret, apiKey) => {
  const [one, two, other] = [await open(), await open(), await open(secret, apiKey)];
  const token = tokenOf('of the first');
  await one.write(token);
  expect(await other.read()).toBeUndefined();
  await other.write(tokenOf('of the other'));
  expect(await two.read()).toEqual(token);
});

it('reads nothing that another has written under its name', async () => {
  const [one, other] = [await open(), await open('s1', 'k2')];
  await one.write(tokenOf('of the first'));
  const [first = ''] = await names();
  await other.write(tokenOf('of the other'));
  const second = (await names()).find((name) => name !== first) ?? '';
  await server.admin.rename(second, first);
  expect(await one.read()).toBeUndefined();
});

it('lets one process work at a time', async () => {
  const [one, two] = [await open(), await open()];
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const ofOne = one.exclusively(async () => {
    order.push('one begins');
    await first.promise;
    order.push('one ends');
  });
  await until(() => order.length === 1);
  const ofTwo = two.exclusively(async () => void order.push('two'));
  first.resolve();
  await Promise.all([ofOne, ofTwo]);
  expect(order).toEqual(['one begins', 'one ends', 'two']);
  expect(await server.admin.exists(LOCK)).toBe(0);
});

it('keeps the lock for as long as the work takes, and lets go of it when the work fails', async () => {
  const store = await open();
  const work = Promise.withResolvers<void>();
  const ended = store.exclusively(() => work.promise);
  const left = await until(async () => {
    const ms = await server.admin.pttl(LOCK);
    return ms > 0 && ms < 5_000 && ms;
  });
  await until(async () => (await server.admin.pttl(LOCK)) > left);
  work.reject(new Error('no token'));
  await expect(ended).rejects.toThrow('no token');
  expect(await server.admin.exists(LOCK)).toBe(0);
});

it('renews the lock no more once its work is over, whether that was done or failed', async () => {
  const store = await open();
  const real = clock;
  const renewing = new Set<Timer | undefined>();
  const back = useClock({
    ...real,
    setInterval(callback, ms) {
      const timer = real.setInterval(callback, ms);
      renewing.add(timer);
      return timer;
    },
    clearInterval(timer) {
      renewing.delete(timer);
      real.clearInterval(timer);
    },
  });
  try {
    expect(await store.exclusively(async () => renewing.size)).toBe(1);
    expect(renewing.size).toBe(0);
    const failing = store.exclusively(() => Promise.reject(new Error('no token')));
    await expect(failing).rejects.toThrow('no token');
    expect(renewing.size).toBe(0);
  } finally {
    back();
  }
});

it('takes its own lock for its own, where the reply that gave it was lost', async () => {
  const store = await open();
  await server.admin.set(LOCK, 'this owner', 'PX', 600_000);
  const back = useEntropy({ uuid: () => 'this owner', bytes: entropy.bytes, random: entropy.random });
  try {
    expect(await store.exclusively(async () => 'done')).toBe('done');
    // Without the lock it would have worked in the end as well, and have let go of nothing.
    expect(await server.admin.exists(LOCK)).toBe(0);
  } finally {
    back();
  }
});

it('does not let go of a lock that another process has taken', async () => {
  const store = await open();
  await store.exclusively(async () => {
    await server.admin.set(LOCK, 'another', 'PX', 600_000);
  });
  expect(await server.admin.get(LOCK)).toBe('another');
});

it('excludes nobody while Redis is away', async () => {
  const store = await open();
  await server.kill();
  expect(await store.exclusively(async () => 'done')).toBe('done');
  await store.write(tokenOf('kept nowhere'));
  expect(await store.read()).toBeUndefined();
  await server.start();
});
