import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import type { ServerConfig } from '../../src/app/server-config.ts';
import { BELIEVED_MS } from '../../src/auth/credential-expiry.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { Secret } from '../../src/common/secret.ts';
import type { EventType } from '../../src/events/log.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { stillTime } from '../helpers/still-time.ts';
import { subscribeOverWebSocket } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

/** So long that nothing ends it but what the gateway hears. */
const MAX_AGE_MS = 600_000;
const BALANCES = '{ client { accounts(first: 100) { nodes { clabe availableBalance { amount } } } } }';

let sandbox: Sandbox;
let token: string;
/** The gateways' monotonic clock, in milliseconds. It stands still, as a machine may be slow. */
let now: number;
beforeEach(async () => {
  now = clock.monotonic();
  const restore = useClock({ ...clock, monotonic: () => now });
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  token = await callerToken();
  return async () => {
    restore();
    await sandbox.stop();
  };
});

const gatewayOn = (redis?: RedisServer, more: Partial<ServerConfig> = {}) =>
  startGateway({
    sandbox,
    webhooks: false,
    config: {
      service: serviceFor(sandbox),
      listsMaxAgeMs: MAX_AGE_MS,
      redisUrl: redis && new Secret(redis.url),
      ...more,
    },
  });

/** The balances by CLABE, and how many REST calls they took. */
async function balancesAt(gateway: RunningGateway) {
  const before = (await control(sandbox, 'GET', '/sandbox/requests')).total;
  const { data, errors } = await gateway.query(BALANCES, {}, { authorization: `Bearer ${token}` });
  expect(errors).toBeUndefined();
  const nodes: readonly { clabe: string; availableBalance: { amount: string } }[] =
    data.client.accounts.nodes;
  const balances = new Map(nodes.map(({ clabe, availableBalance }) => [clabe, availableBalance.amount]));
  return { balances, calls: (await control(sandbox, 'GET', '/sandbox/requests')).total - before };
}

/** Has a gateway keep the balances. @returns the CLABE and the balance of one of the client's own accounts */
async function keepAt(gateway: RunningGateway): Promise<readonly [clabe: string, balance: string]> {
  const { balances } = await balancesAt(gateway);
  expect(await balancesAt(gateway)).toMatchObject({ calls: 0 });
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  return [accounts[0].clabe, balances.get(accounts[0].clabe) ?? 'not listed'];
}

/** Delivers a message as the provider does. */
async function deliver(gateway: RunningGateway, type: EventType, message: object): Promise<void> {
  const { status } = await fetch(gateway.ingress.url(sandbox.clientId, type) ?? '', {
    method: 'POST',
    body: JSON.stringify(message),
  });
  expect(status).toBe(201);
}

const creditOf = (clabe: string, more: object = {}) => ({
  id_msg: 'a credit',
  body: {
    id: 'a credit',
    amount: '7.00',
    sub_category: 'SPEI_CREDIT',
    owner_id: sandbox.clientId,
    beneficiary_account: clabe,
    ...more,
  },
});

/** The money of a credit becomes available: at once, as no webhook is asked. */
const makeAvailable = (clabe: string) =>
  control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '7.00' });

const plus = (balance: string, amount: number) => (Number(balance) + amount).toFixed(2);

describe('with AUTH_MODE=service the balances that are kept for others', () => {
  it.each<[string, EventType, (clabe: string) => object]>([
    ['a credit', 'MONEY_IN', creditOf],
    ['a credit without its owner', 'MONEY_IN', (clabe) => creditOf(clabe, { owner_id: undefined })],
    [
      'a credit to an account that is no text',
      'MONEY_IN',
      (clabe) => creditOf(clabe, { beneficiary_account: 7 }),
    ],
    [
      'a receipt',
      'CEP',
      () => ({ client_id: sandbox.clientId, payload: { body: { id: 'x', status: 'OK' } } }),
    ],
    ['a change of a state', 'STATUS_UPDATE', () => ({ id_msg: 'of a transfer that came back' })],
  ])('are read again once the gateway has taken in %s', async (_what, type, messageFor) => {
    await using gateway = await gatewayOn();
    const [clabe, balance] = await keepAt(gateway);
    await makeAvailable(clabe);
    // Nothing has told the gateway of it.
    expect((await balancesAt(gateway)).balances.get(clabe)).toBe(balance);
    await deliver(gateway, type, messageFor(clabe));
    const { balances, calls } = await balancesAt(gateway);
    expect(calls).toBeGreaterThan(0);
    expect(balances.get(clabe)).toBe(plus(balance, 7));
  });

  it('are not kept while the money of a credit may become available, whoever reads them in the meantime', async () => {
    await using gateway = await gatewayOn();
    const [clabe, balance] = await keepAt(gateway);
    await deliver(gateway, 'MONEY_IN', creditOf(clabe));
    // The service has its answer, and has not made the money available yet.
    expect((await balancesAt(gateway)).balances.get(clabe)).toBe(balance);
    await makeAvailable(clabe);
    expect((await balancesAt(gateway)).balances.get(clabe)).toBe(plus(balance, 7));
  });

  it('are told in the line of an operation by how old the oldest is, and an operation that has read them itself tells none', async () => {
    await using gateway = await gatewayOn();
    await balancesAt(gateway);
    now += 3_000;
    await balancesAt(gateway);
    const ages = gateway.log
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message === 'An operation has its result')
      .map(({ oldestReadMs }) => oldestReadMs);
    expect(ages).toEqual([undefined, expect.closeTo(3_000)]);
  });

  it('are marked in the report of REST calls, with the moment at which they were asked for', async () => {
    await using gateway = await gatewayOn(undefined, { upstreamReport: true });
    const headers = { authorization: `Bearer ${token}` };
    const accountsOf = async () => (await gateway.query(BALANCES, {}, headers)).extensions?.['upstream'];
    expect(await accountsOf()).toContainEqual(
      expect.objectContaining({ cached: false, coalesced: false, began: 0 }),
    );
    now += 3_200;
    expect(await accountsOf()).toEqual([
      expect.objectContaining({ cached: true, coalesced: true, began: -3_200 }),
    ]);
  });

  it('are read again at another process once one of its streams has told the event, though the next query still read the old ones', async () => {
    await using redis = await startRedis();
    await using first = await gatewayOn(redis);
    await using second = await gatewayOn(redis);
    const [clabe, balance] = await keepAt(second);
    await using reader = subscribeOverWebSocket(second.graphql, token, {
      query:
        'subscription ($after: Cursor) { moneyIn(after: $after) { account { availableBalance { amount } } } }',
      variables: {
        after: (await second.query('{ eventCursor }', {}, { authorization: `Bearer ${token}` })).data
          .eventCursor,
      },
    });
    await deliver(first, 'MONEY_IN', creditOf(clabe));
    const [told] = await reader.received(1);
    expect(told?.data.moneyIn.account.availableBalance.amount).toBe(balance);
    expect((await balancesAt(second)).balances.get(clabe)).toBe(balance);
    await makeAvailable(clabe);
    expect((await balancesAt(second)).balances.get(clabe)).toBe(plus(balance, 7));
  });

  it('are read again once somebody has changed something, not once somebody was refused for want of the right to', async () => {
    using time = stillTime();
    await using gateway = await gatewayOn();
    await keepAt(gateway);
    const deleteAs = async (bearer: string) => {
      const document = `mutation { deleteWebhook(input: { id: "${randomUUID()}" }) { __typename } }`;
      return gateway.query(document, {}, { authorization: `Bearer ${bearer}` });
    };
    const reader = await callerToken({ scope: 'graph:read' });
    // The second time its token is verified again in the midst of the operation: it is believed for a minute.
    for (const passed of [0, BELIEVED_MS + 1_000]) {
      await time.pass(passed);
      const { errors } = await deleteAs(reader);
      expect(errors?.[0]).toMatchObject({ extensions: { code: 'FORBIDDEN' } });
      expect(await balancesAt(gateway)).toMatchObject({ calls: 0 });
    }
    expect((await deleteAs(token)).data.deleteWebhook).toBeDefined();
    expect((await balancesAt(gateway)).calls).toBeGreaterThan(0);
  });

  it('are read again once a payment whose answer was lost has been sent again', async () => {
    await using gateway = await gatewayOn(undefined, { operationTimeoutMs: 5_000 });
    const world = await control(sandbox, 'GET', '/sandbox');
    const match = { method: 'POST', path: '/v1/transactions/money_out' };
    await control(sandbox, 'POST', '/sandbox/faults', { match, fault: 'reset-before', times: 1 });
    await control(sandbox, 'POST', '/sandbox/faults', { match, fault: { status: 503 } });
    const ask = (document: string, variables: Readonly<Record<string, unknown>>) =>
      gateway.query(document, variables, { authorization: `Bearer ${token}` });
    const input = {
      idempotencyKey: 'an answer that was lost',
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.cardInstrumentIds[0],
      amount: '12.50',
      description: 'Prueba',
      externalReference: '1001',
    };
    const { data } = await ask(
      'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }',
      { input },
    );
    expect(data.createMoneyOut.__typename).toBe('OutcomeUnknown');
    // What its caller has changed is long ago.
    now += 60_000;
    const before = (await balancesAt(gateway)).balances;
    await control(sandbox, 'DELETE', '/sandbox/faults');
    await until(async () => {
      const { data } = await ask('query ($key: String!) { payment(idempotencyKey: $key) { state } }', {
        key: input.idempotencyKey,
      });
      return data.payment.state === 'DONE';
    });
    const after = (await balancesAt(gateway)).balances;
    const sum = (balances: ReadonlyMap<string, string>) =>
      [...balances.values()].reduce((total, balance) => total + Math.round(Number(balance) * 100), 0);
    expect(sum(before) - sum(after)).toBe(1_250);
  });
});
