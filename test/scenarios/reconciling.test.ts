import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import type { ServerConfig } from '../../src/app/server-config.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { Secret } from '../../src/common/secret.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor, serviceForAll } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { documentOf, MUTATIONS, payable } from './faults/payments.ts';

const TIMES = { everyMs: 400, marginMs: 100 };
const TOLD = 'a balance has changed by what the gateway does not know';

let cleanup: AsyncDisposableStack;
beforeEach(() => {
  cleanup = new AsyncDisposableStack();
});
afterEach(() => cleanup.disposeAsync());

async function aSandbox(seed = 1): Promise<Sandbox> {
  const sandbox = await startSandbox({ port: 0, speed: 1, seed });
  cleanup.defer(() => sandbox.stop());
  return sandbox;
}

async function aGateway(
  sandbox: Sandbox,
  config: Partial<ServerConfig> = {},
  webhooks = true,
): Promise<RunningGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-reconciling-'));
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
  const service = serviceFor(sandbox);
  // A process that stands still for seconds has not failed to compare.
  const all = { dataDir, service, reconciling: TIMES, upstreamTimeoutMs: 60_000, ...config };
  const gateway = await startGateway({ sandbox, webhooks, config: all });
  cleanup.defer(() => gateway.stop());
  return gateway;
}

interface Told {
  readonly clientId: string;
  readonly account: string;
  readonly amount: string;
}
const linesOf = ({ log }: RunningGateway): Record<string, unknown>[] => log.map((line) => JSON.parse(line));
const toldBy = (...gateways: readonly RunningGateway[]): Told[] =>
  gateways.flatMap((gateway) =>
    linesOf(gateway)
      .filter(({ message }) => message === TOLD)
      .map((line) => ({
        clientId: String(line['clientId']),
        account: String(line['account']),
        amount: String(line['amount']),
      })),
  );

/** How many comparisons have ended in this way, by the metrics of all gateways. */
async function counted(gateways: readonly RunningGateway[], series: string): Promise<number> {
  const counts = await Promise.all(
    gateways.map(async ({ url }) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      const line = text.split('\n').find((one) => one.startsWith(series));
      return Number(line?.split(' ').at(-1) ?? 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
const COMPARED = 'pasarela_balance_comparisons_total{outcome="compared"}';
/** Until balances were compared so many times more. */
async function compared(times: number, ...gateways: readonly RunningGateway[]): Promise<void> {
  const before = await counted(gateways, COMPARED);
  await until(async () => (await counted(gateways, COMPARED)) >= before + times);
}

const credit = (sandbox: Sandbox, clabe: string, amount: string) =>
  control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });

async function traffic(gateway: RunningGateway, tag: string): Promise<void> {
  const { sandbox } = gateway;
  const headers = { authorization: `Bearer ${await callerToken()}` };
  const world = await control(sandbox, 'GET', '/sandbox');
  await credit(sandbox, world.accounts[0].clabe, '250.00');
  for (const mutation of MUTATIONS) {
    const { input } = await payable(sandbox, mutation, `${tag} ${mutation}`);
    const { data } = await gateway.query(documentOf(mutation), { input }, headers);
    expect(data?.result?.__typename).toMatch(/Success$/);
  }
}

async function elsewhere(sandbox: Sandbox, amount: string): Promise<void> {
  const { centralizingInstrumentId, cardInstrumentIds } = await control(sandbox, 'GET', '/sandbox');
  await control(sandbox, 'POST', '/v1/transactions/money_out', {
    client_id: sandbox.clientId,
    source_instrument_id: centralizingInstrumentId,
    destination_instrument_id: cardInstrumentIds[0],
    transaction_request: { external_reference: '1', description: 'elsewhere', amount, currency: 'MXN' },
  });
}

it.each([
  ['a gateway tells', 'node:sqlite'],
  ['two gateways beside each other tell', 'Redis'],
])(
  '%s once of a credit whose webhook was lost, a payment made elsewhere and a fee, and of nothing else, over %s',
  async (_who, kind) => {
    const sandbox = await aSandbox();
    const redis = kind === 'Redis' ? await startRedis() : undefined;
    if (redis !== undefined) cleanup.defer(() => redis.stop());
    const config = redis === undefined ? {} : { redisUrl: new Secret(redis.url) };
    const one = await aGateway(sandbox, config);
    const both = redis === undefined ? [one] : [one, await aGateway(sandbox, config, false)];
    const told = () => toldBy(...both);
    const world = await control(sandbox, 'GET', '/sandbox');
    const [{ clabe, id: account }] = world.accounts;

    for (const tag of ['first', 'second', 'third']) {
      await traffic(one, tag);
      // The first may have begun before the traffic, and another process may read right after it. The third reading is long after it: of what
      // is near a reading, any part may be taken for the explanation of a difference.
      await compared(3, ...both);
    }
    expect(told()).toEqual([]);

    await control(sandbox, 'POST', '/sandbox/lost-messages', { type: 'MONEY_IN', times: 1 });
    await credit(sandbox, clabe, '77.70');
    await until(() => told().length === 1);
    await elsewhere(sandbox, '12.34');
    await until(() => told().length === 2);
    await elsewhere(sandbox, '1.16');
    await until(() => told().length === 3);
    await traffic(one, 'fourth');
    await compared(4, ...both);
    const { clientId } = sandbox;
    // Either of them may have told each: their logs have no common order.
    const byAmount = told().toSorted((a, b) => Number(b.amount) - Number(a.amount));
    expect(byAmount).toMatchObject([
      { clientId, account, amount: '+77.70' },
      { clientId, amount: '-1.16' },
      { clientId, amount: '-12.34' },
    ]);
    expect(await counted(both, 'pasarela_balance_differences_total{direction="more"}')).toBe(1);
    expect(await counted(both, 'pasarela_balance_differences_total{direction="less"}')).toBe(2);
    expect(await counted(both, 'pasarela_balance_comparisons_total{outcome="failed"}')).toBe(0);
  },
);

it('each client of a gateway is compared by itself, also where the credentials of another are wrong, and while payments are off', async () => {
  const sandbox = await aSandbox();
  const { otherClients, ...demo } = await control(sandbox, 'GET', '/sandbox');
  const wrong = { ...otherClients[0], clientSecret: 'not the secret' };
  const service = serviceForAll(demo, wrong);
  const gateway = await aGateway(sandbox, { service, arePaymentsOff: true });
  await compared(2, gateway);
  await elsewhere(sandbox, '12.34');
  await until(() => toldBy(gateway).length === 1);
  expect(toldBy(gateway)).toMatchObject([{ clientId: sandbox.clientId, amount: '-12.34' }]);
  const failed = 'pasarela_balance_comparisons_total{outcome="failed"}';
  await until(async () => (await counted([gateway], failed)) > 0);
  expect(gateway.log.join()).toContain('balances could not be compared');
});

it('a gateway that is started again goes on from the readings of the one before', async () => {
  const sandbox = await aSandbox();
  const redis = await startRedis();
  cleanup.defer(() => redis.stop());
  const config = { redisUrl: new Secret(redis.url) };
  const first = await aGateway(sandbox, config);
  await compared(2, first);
  await first.stop();
  await elsewhere(sandbox, '12.34');
  const second = await aGateway(sandbox, config, false);
  await until(() => toldBy(second).length === 1);
  await compared(3, second);
  expect(toldBy(first, second)).toMatchObject([{ amount: '-12.34' }]);
});

it('a process that ends gives a comparison up, leaves it to the next at once, and does not call it failed', async () => {
  const sandbox = await aSandbox();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-reconciling-'));
  const gateway = await aGateway(sandbox, { dataDir });
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
  const next = await openMoneyRecords({ redisUrl: undefined, dataDir, logger: silentLogger });
  cleanup.defer(() => next.stop());
  await compared(1, gateway);
  const calls = async () => {
    const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
    return Object.entries<number>(counts).reduce((sum, [, count]) => sum + count, 0);
  };
  await control(sandbox, 'POST', '/sandbox/faults', { match: { path: '/v1/' }, fault: { delayMs: 2_500 } });
  const before = await calls();
  await until(async () => (await calls()) > before);

  // A connection on which a second request has begun: the end waits for it, with the log closed already.
  const lingering = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  lingering.on('error', () => {});
  await once(lingering, 'connect');
  lingering.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\nGET /healthz HTTP/1.1\r\n');
  await once(lingering, 'data');
  const stopped = gateway.stop();
  await until(() => next.readings.take(sandbox.clientId, 'next', 60_000));
  lingering.destroy();
  await stopped;
  expect(gateway.log.join('\n')).not.toContain('balances could not be compared');
});

it('begins anew, and says so, where the log no longer holds the events since', async () => {
  const sandbox = await aSandbox();
  const gateway = await aGateway(sandbox, { eventsRetention: 1 });
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  await until(async () => {
    for (const amount of ['1.00', '2.00', '3.00']) await credit(sandbox, accounts[0].clabe, amount);
    return gateway.log.join().includes('the comparison of balances begins anew');
  });
  expect(toldBy(gateway)).toEqual([]);
});
