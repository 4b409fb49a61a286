import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alternativeChoices, defaultChoices, type Sandbox } from '../../../packages/sandbox/src/index.ts';
import { Secret } from '../../../src/common/secret.ts';
import { type SteppedClock, steppedClock } from '../../helpers/clock.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { type RedisServer, startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { subscribeOverWebSocket, TRANSPORTS } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

const STATUS = `subscription ($id: ID!) {
  transactionStatus(transactionId: $id) { kind transaction { id status rawStatus source { ownerId } } }
}`;
const PAY = `mutation ($input: CreateMoneyOutInput!) {
  createMoneyOut(input: $input) { ... on CreateMoneyOutSuccess { transaction { id } } ... on UserError { message } }
}`;
const VALIDATE = `mutation ($input: CreatePennyValidationInput!) {
  createPennyValidation(input: $input) {
    ... on CreatePennyValidationSuccess { transaction { id } } ... on UserError { message }
  }
}`;
const NOBODYS = '00000000-0000-4000-8000-000000000000';
/** The first wait of the schedule. */
const FIRST = 2_000;
/** Waits for a reading that lags behind a transaction just made. */
const LAGS = [250, 500, 1_000, 2_000, 4_000];
const TRANSACTION = 'GET /v1/clients/{clientId}/transactions/{transactionId}';

// biome-ignore lint/suspicious/noExplicitAny: what the sandbox says of itself.
type Seeded = any;

const advance = (sandbox: Sandbox, advanceSeconds: number) =>
  control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds });

async function pay({ query }: RunningGateway, seeded: Seeded, token?: string): Promise<string> {
  const input = {
    idempotencyKey: randomUUID(),
    sourceInstrumentId: seeded.centralizingInstrumentId,
    destinationInstrumentId: seeded.cardInstrumentIds[0],
    amount: '10.00',
    description: 'Pago',
    externalReference: '1234567',
  };
  const answer = await query(PAY, { input }, token === undefined ? {} : { authorization: `Bearer ${token}` });
  return answer.data.createMoneyOut.transaction.id;
}

async function readings(sandbox: Sandbox, work: () => Promise<void>): Promise<number> {
  await control(sandbox, 'DELETE', '/sandbox/requests');
  await work();
  const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
  return counts[TRANSACTION] ?? 0;
}

/** Posts a message that names a transaction in a way that nobody has described. */
async function tell({ ingress, sandbox }: RunningGateway, id: string): Promise<void> {
  const response = await fetch(ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
    method: 'POST',
    body: JSON.stringify({ changes: [{ href: `/v1/transactions/${id.toUpperCase()}?state=new` }] }),
  });
  expect(response.status).toBe(201);
}

const statuses = (results: readonly { readonly data?: Seeded }[]): string[] =>
  results.map(({ data }) => `${data.transactionStatus.kind} ${data.transactionStatus.transaction.rawStatus}`);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

describe.each([
  ['with the log in SQLite, on the sandbox as it comes', defaultChoices, false],
  ['with the log in SQLite, on a sandbox that chooses otherwise', alternativeChoices, false],
  ['with the log in Redis, on the sandbox as it comes', defaultChoices, true],
  ['with the log in Redis, on a sandbox that chooses otherwise', alternativeChoices, true],
] as const)('%s,', (_name, choices, inRedis) => {
  let gateway: RunningGateway;
  let clock: SteppedClock;
  let seeded: Seeded;
  beforeAll(async () => {
    clock = steppedClock();
    gateway = await startGateway({
      // One Redis remembers the payments of both sandboxes: what is made in them must have ids of its own.
      sandboxOptions: { choices, run: randomUUID() },
      webhooks: ['CEP', 'MONEY_IN', 'STATUS_UPDATE'],
      config: { ...PATIENT, redisUrl: inRedis ? new Secret(redis.url) : undefined },
      clock,
    });
    seeded = await control(gateway.sandbox, 'GET', '/sandbox');
  });
  afterAll(() => gateway.stop());

  describe.each(TRANSPORTS)('over %s', (transport, subscribe) => {
    const follow = (id: string) =>
      subscribe(gateway.graphql, gateway.sandbox.accessToken, { query: STATUS, variables: { id } });

    it('a payout is followed until it settles, by its STATUS_UPDATE alone', async () => {
      const id = await pay(gateway, seeded);
      await using subscriber = follow(id);
      await subscriber.received(1);
      // The gateway's clock stands still: nothing is read but what a message hints at.
      await advance(gateway.sandbox, choices.moneyOutSeconds);
      expect(await subscriber.ended).toBeUndefined();
      expect(statuses(subscriber.results)).toEqual(['SNAPSHOT INITIALIZED', 'CHANGE LIQUIDATED']);
      expect(subscriber.results[1]?.data.transactionStatus.transaction).toEqual({
        id,
        status: 'LIQUIDATED',
        rawStatus: 'LIQUIDATED',
        source: { ownerId: expect.any(String) },
      });
    });

    it('a payout whose STATUS_UPDATE is lost is followed by reading, through states that nobody has described', async () => {
      await control(gateway.sandbox, 'POST', '/sandbox/lost-messages', { type: 'STATUS_UPDATE', times: 1 });
      const id = await pay(gateway, seeded);
      await using subscriber = follow(id);
      await subscriber.received(1);
      await clock.asleep(FIRST);
      await advance(gateway.sandbox, choices.moneyOutSeconds / 2);
      await clock.pass(FIRST);
      await clock.asleep(FIRST);
      if (choices.valuesBeyondTheSpec) {
        await subscriber.received(2);
        expect(subscriber.results[1]?.data.transactionStatus.transaction.status).toBe('OTHER');
      }
      await advance(gateway.sandbox, choices.moneyOutSeconds);
      await clock.pass(FIRST);
      expect(await subscriber.ended).toBeUndefined();
      expect(statuses(subscriber.results)).toEqual([
        'SNAPSHOT INITIALIZED',
        ...(choices.valuesBeyondTheSpec ? ['CHANGE IN_PROCESS'] : []),
        'CHANGE LIQUIDATED',
      ]);
    });

    it('a payout whose reader leaves in the midst of a reading is read at once for the others', async () => {
      // Over a socket a reading is made to its end.
      if (transport !== 'SSE') return;
      await control(gateway.sandbox, 'POST', '/sandbox/lost-messages', { type: 'STATUS_UPDATE', times: 1 });
      const id = await pay(gateway, seeded);
      await using first = follow(id);
      await first.received(1);
      await using second = follow(id);
      await second.received(1);
      await advance(gateway.sandbox, choices.moneyOutSeconds);
      const path = `/v1/clients/${gateway.sandbox.clientId}/transactions/${id}`;
      await control(gateway.sandbox, 'POST', '/sandbox/faults', { match: { path }, fault: 'hang', times: 1 });
      await clock.pass(FIRST);
      await until(async () => {
        const { faults } = await control(gateway.sandbox, 'GET', '/sandbox/faults');
        return faults.some(({ used }: { readonly used: number }) => used === 1);
      });
      await first.leave();
      expect(await second.ended).toBeUndefined();
      expect(statuses(second.results)).toEqual(['SNAPSHOT INITIALIZED', 'CHANGE LIQUIDATED']);
    });

    it('a payout that has settled is told at once, and the stream completes', async () => {
      const id = await pay(gateway, seeded);
      await advance(gateway.sandbox, choices.moneyOutSeconds);
      await using subscriber = follow(id);
      expect(await subscriber.ended).toBeUndefined();
      expect(statuses(subscriber.results)).toEqual(['SNAPSHOT LIQUIDATED']);
    });

    it('a credit that is LIQUIDATED is followed on to its refund, which a message names anywhere', async () => {
      const { transaction } = await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
        clabe: seeded.accounts[0].clabe,
        amount: '25.00',
      });
      await using subscriber = follow(transaction.id);
      await subscriber.received(1);
      await control(gateway.sandbox, 'POST', '/sandbox/refunds', { transactionId: transaction.id });
      await tell(gateway, transaction.id);
      expect(await subscriber.ended).toBeUndefined();
      expect(statuses(subscriber.results)).toEqual(['SNAPSHOT LIQUIDATED', 'CHANGE REFUNDED']);
    });

    it('a penny validation is followed by the messages of its receipt', async () => {
      await control(gateway.sandbox, 'POST', '/sandbox/lost-messages', { type: 'STATUS_UPDATE', times: 1 });
      const { data } = await gateway.query(VALIDATE, {
        input: {
          idempotencyKey: randomUUID(),
          sourceInstrumentId: seeded.centralizingInstrumentId,
          destinationInstrumentId: seeded.clabeInstrumentIds[0],
        },
      });
      await using subscriber = follow(data.createPennyValidation.transaction.id);
      await subscriber.received(1);
      await advance(gateway.sandbox, 300);
      expect(await subscriber.ended).toBeUndefined();
      expect(statuses(subscriber.results)).toEqual(['SNAPSHOT INITIALIZED', 'CHANGE LIQUIDATED']);
    });

    it('a transaction that stays unknown is BAD_USER_INPUT, and so is what is no id', async () => {
      await using unknown = follow(NOBODYS);
      for (const lag of LAGS) await clock.pass(lag);
      expect(await unknown.ended).toBeUndefined();
      expect(unknown.results).toMatchObject([{ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] }]);
      await using malformed = follow('../banks');
      await malformed.ended;
      expect(malformed.results).toMatchObject([{ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] }]);
    });
  });
});

it('the metrics tell how many readings wait for the rate', async () => {
  const clock = steppedClock();
  await using gateway = await startGateway({
    webhooks: false,
    config: { ...PATIENT, pollsPerSecond: 1 },
    clock,
  });
  const seeded = await control(gateway.sandbox, 'GET', '/sandbox');
  const waiting = () => readMetric(gateway.url, 'pasarela_polls_waiting');
  const follow = async () => {
    const variables = { id: await pay(gateway, seeded) };
    const { accessToken } = gateway.sandbox;
    const subscriber = subscribeOverWebSocket(gateway.graphql, accessToken, { query: STATUS, variables });
    await subscriber.received(1);
    return subscriber;
  };
  {
    await using _first = await follow();
    await using _second = await follow();
    await using _third = await follow();
    expect(await waiting()).toBe(0);
    await clock.pass(FIRST);
    await until(async () => (await waiting()) === 2);
    await clock.pass(1_000);
    await until(async () => (await waiting()) === 1);
  }
  await until(async () => (await waiting()) === 0);
});

describe.each([
  ['the sandbox as it comes', defaultChoices],
  ['a sandbox that chooses otherwise', alternativeChoices],
])('callers of the operator, on %s,', (_variant, choices) => {
  let gateway: RunningGateway;
  let clock: SteppedClock;
  let seeded: Seeded;
  beforeAll(async () => {
    clock = steppedClock();
    const direct = await startGateway({ sandboxOptions: { choices }, webhooks: false });
    const { sandbox } = direct;
    const service = await startGateway({
      sandbox,
      webhooks: ['CEP', 'MONEY_IN', 'STATUS_UPDATE'],
      config: { ...PATIENT, service: serviceFor(sandbox) },
      clock,
    });
    gateway = {
      ...service,
      async stop() {
        await service.stop();
        await direct.stop();
      },
    };
    seeded = await control(sandbox, 'GET', '/sandbox');
  });
  afterAll(() => gateway.stop());

  const credit = async (clabe: string): Promise<string> => {
    const arrived = await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
      clabe,
      amount: '25.00',
    });
    return arrived.transaction.id;
  };
  const refund = (transactionId: string) =>
    control(gateway.sandbox, 'POST', '/sandbox/refunds', { transactionId });
  const follow = (token: string, id: string) =>
    subscribeOverWebSocket(gateway.graphql, token, { query: STATUS, variables: { id } });

  it('who are narrowed follow their own transactions, and others are as if there were none', async () => {
    const [own, others] = seeded.customerIds;
    const { clabe } = seeded.accounts.find(({ ownerId }: Seeded) => ownerId === own);
    const id = await credit(clabe);
    const narrowed = await callerToken({ customer_id: others });
    // One after the other: the clock is stepped for those who wait at that moment.
    const answerTo = async (asked: string): Promise<string> => {
      await using subscriber = follow(narrowed, asked);
      // A message that names it tells them nothing either.
      await tell(gateway, asked);
      for (const lag of LAGS) await clock.pass(lag);
      await subscriber.ended;
      expect(subscriber.results).toHaveLength(1);
      return JSON.stringify(subscriber.results)
        .replaceAll(asked, 'ID')
        .replace(/"requestId":"[^"]*"/, '');
    };
    const foreign = await answerTo(id);
    const unknown = await answerTo(NOBODYS);
    expect(foreign).toContain('BAD_USER_INPUT');
    expect(foreign).toBe(unknown);
    await using mine = follow(await callerToken({ customer_id: own }), id);
    await mine.received(1);
    await refund(id);
    await tell(gateway, id);
    expect(await mine.ended).toBeUndefined();
    expect(statuses(mine.results)).toEqual(['SNAPSHOT LIQUIDATED', 'CHANGE REFUNDED']);
  });

  it('who watch one transaction share one reading, however many they are and whatever they may see besides', async () => {
    const [own] = seeded.customerIds;
    const { clabe } = seeded.accounts.find(({ ownerId }: Seeded) => ownerId === own);
    const id = await credit(clabe);
    const tokens = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        callerToken({ sub: `caller ${index}`, ...(index % 2 === 0 ? {} : { customer_id: own }) }),
      ),
    );
    const subscribers = tokens.map((token) => follow(token, id));
    await Promise.all(subscribers.map((subscriber) => subscriber.received(1)));
    expect(
      await readings(gateway.sandbox, async () => {
        await clock.pass(FIRST);
        await clock.asleep(FIRST);
      }),
    ).toBe(1);
    await refund(id);
    expect(
      await readings(gateway.sandbox, async () => {
        await tell(gateway, id);
        for (const { ended } of subscribers) expect(await ended).toBeUndefined();
      }),
    ).toBe(1);
    for (const { results } of subscribers) {
      expect(statuses(results)).toEqual(['SNAPSHOT LIQUIDATED', 'CHANGE REFUNDED']);
    }
  });

  it('are asked nothing by a message that names something else', async () => {
    const id = await pay(gateway, seeded, await callerToken());
    await using subscriber = follow(await callerToken(), id);
    await subscriber.received(1);
    expect(
      await readings(gateway.sandbox, async () => {
        for (let message = 0; message < 20; message += 1) await tell(gateway, randomUUID());
        const { errors } = await sendQuery(
          gateway.graphql,
          '{ eventCursor }',
          {},
          {
            authorization: `Bearer ${await callerToken()}`,
          },
        );
        expect(errors).toBeUndefined();
      }),
    ).toBe(0);
  });
});
