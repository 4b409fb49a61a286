import { expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { Secret } from '../../src/common/secret.ts';
import { readPage } from '../docs/pages.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { documentOf, MUTATIONS, payable } from './faults/payments.ts';

/** Rows of the table of which nothing stays behind everyday traffic. */
const SELDOM = [
  'pasarela:money:{C}:due',
  'pasarela:money:{C}:twin:<hash>',
  'pasarela:money:held',
  'pasarela:money:stopped',
  'pasarela:probe',
  'pasarela:probe:<n>',
  'pasarela:token:{C}:lock',
  '{C}:index',
  '{C}:indexed',
  '{C}:meta:probe',
  '{C}:names',
  'pasarela:money:{C}::probe',
];

/** A key that is there for a moment. */
const isBrief = (name: string): boolean => /:probe$|:lock$/.test(name);

/** The names of keys in the table of docs/redis.md, each with the pattern that it stands for. */
async function documented(): Promise<readonly { readonly name: string; readonly pattern: RegExp }[]> {
  const page = await readPage('docs/redis.md');
  const section = /^### The keys in Redis\n(.*?)^##/ms.exec(page)?.[1] ?? '';
  const cells = [...section.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = '']) => cell);
  const names = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
  return names.map((name) => {
    const pattern = name
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace('\\{C\\}', '\\{[\\w-]+\\}')
      .replace('<hash>', '[\\w-]{43}')
      .replace(/<[^>]+>/g, '[\\w*-]+');
    return { name, pattern: new RegExp(`^${pattern}$`) };
  });
}

it('each key that traffic leaves in Redis is in the table of docs/redis.md', async () => {
  await using redis = await startRedis();
  await using cleanup = new AsyncDisposableStack();
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const config = {
    redisUrl: new Secret(redis.url),
    service: serviceFor(sandbox),
    reconciling: { everyMs: 400, marginMs: 100 },
  };
  const gateway = cleanup.use(await startGateway({ sandbox, config }));
  const headers = { authorization: `Bearer ${await callerToken({ sub: 'alma' })}` };
  for (const mutation of MUTATIONS) {
    const { input } = await payable(sandbox, mutation, `keys ${mutation}`);
    const { data } = await gateway.query(documentOf(mutation), { input }, headers);
    expect(data.result.replayed).toBe(false);
  }
  const world = await control(sandbox, 'GET', '/sandbox');
  const credit = { clabe: world.accounts[0].clabe, amount: '5.00' };
  await control(sandbox, 'POST', '/sandbox/spei-credits', credit);
  const search = `{ events(first: 1, clabe: "${credit.clabe}") { nodes { id } } payments(first: 1) { nodes { id } } }`;
  await until(async () => (await gateway.query(search, {}, headers)).data?.events?.nodes.length === 1);

  const rows = await documented();
  const unseen = (keys: readonly string[]) =>
    rows
      .filter(({ name, pattern }) => !isBrief(name) && !keys.some((key) => pattern.test(key)))
      .map(({ name }) => name);
  const expected = SELDOM.filter((name) => !isBrief(name)).toSorted();
  // A comparison of balances comes by itself.
  const keys = await until(async () => {
    const found = await redis.admin.keys('*');
    return found.some((key) => key.endsWith(':readings')) ? found : undefined;
  });
  expect(keys.filter((key) => !rows.some(({ pattern }) => pattern.test(key)))).toEqual([]);
  expect(unseen(keys).toSorted()).toEqual(expected);
});
