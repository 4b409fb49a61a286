import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import {
  control,
  type GraphQLAnswer,
  type RunningGateway,
  sendQuery,
  startGateway,
} from '../helpers/gateway.ts';
import { newToken } from '../helpers/new-token.ts';
import { ASKING } from '../helpers/raw.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { type Front, startFront } from './faults/front.ts';

const INSTRUMENT = 'query ($id: ID!) { instrument(id: $id) { id } }';
const CLIENT = '{ client { id } }';
/** What one caller may have under way (UPSTREAM_CALLS_PER_CALLER), and what more of it waits here. */
const UNDER_WAY = 16;
const QUEUE = 3;

describe('one caller with more operations than its share', () => {
  let sandbox: Sandbox;
  let front: Front;
  let gateway: RunningGateway;
  let another: string;
  /** While it is there, the service answers nothing about an instrument. */
  let held: PromiseWithResolvers<void> | undefined;
  const hold = () => {
    held = Promise.withResolvers();
  };
  const letGo = () => {
    held?.resolve();
    held = undefined;
  };

  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    front = await startFront(sandbox.url, async ({ path }) => {
      if (path.includes('/instruments/')) await held?.promise;
      return false;
    });
    gateway = await startGateway({
      sandbox,
      webhooks: false,
      config: {
        upstreamUrl: front.url,
        operationsQueue: QUEUE,
        // What is held back may be so for as long as a slow machine takes.
        upstreamTimeoutMs: 60_000,
        operationTimeoutMs: 60_000,
      },
    });
    another = await newToken(gateway.sandbox);
    // Both are known: strangers share what their address may have.
    await gateway.query(CLIENT);
    await gateway.query(CLIENT, {}, { authorization: `Bearer ${another}` });
  });
  afterAll(async () => {
    letGo();
    await gateway.stop();
    await front[Symbol.asyncDispose]();
    await sandbox.stop();
  });

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
  };

  it('waits, and is told when to come back beyond that; another is served meanwhile', async () => {
    hold();
    const answers: GraphQLAnswer[] = [];
    const asked = Array.from({ length: UNDER_WAY + QUEUE + 5 }, (_, index) =>
      gateway.query(INSTRUMENT, { id: `slow-${index}` }).then((answer) => answers.push(answer)),
    );
    const refused = await until(async () => (answers.length === 5 ? answers : undefined));
    expect(await metric('pasarela_operations_waiting')).toBe(QUEUE);
    expect(await metric('pasarela_operations_refused_total{full="queue"}')).toBe(5);
    for (const { status, headers, errors } of refused.slice(0, 5)) {
      expect(status).toBe(429);
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(errors?.[0]?.extensions).toMatchObject({
        code: 'RATE_LIMITED',
        retryAfterMs: expect.any(Number),
        requestId: expect.any(String),
      });
      expect(errors?.[0]?.extensions).not.toHaveProperty('http');
    }
    const beside = await sendQuery(
      gateway.graphql,
      '{ client { accounts(first: 1) { totalCount } } }',
      {},
      { authorization: `Bearer ${another}` },
    );
    expect(beside.errors).toBeUndefined();
    // Nobody else has had to wait for the others' answers.
    expect(answers).toHaveLength(5);
    letGo();
    await Promise.all(asked);
    const served = answers.filter(({ errors }) => errors === undefined);
    expect(served).toHaveLength(UNDER_WAY + QUEUE);
    expect(await metric('pasarela_operations_waiting')).toBe(0);
    expect(await metric('pasarela_operations_wait_seconds_count')).toBe(QUEUE);
  });

  it.each(ASKING)('is told over %s as an error of the operation', async (_, ask) => {
    hold();
    const waiting = Array.from({ length: UNDER_WAY + QUEUE }, (_unused, index) =>
      gateway.query(INSTRUMENT, { id: `busy-${index}` }),
    );
    await until(async () => ((await metric('pasarela_operations_waiting')) === QUEUE ? true : undefined));
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, {
      query: '{ instrument(id: "beyond") { id } }',
    });
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: expect.any(Number) });
    expect(errors?.[0]?.extensions).not.toHaveProperty('http');
    letGo();
    await Promise.all(waiting);
  });
});

describe('an operation that would begin too late to be served', () => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway({ webhooks: false, config: { operationTimeoutMs: 3_000 } });
    await gateway.query(CLIENT);
  });
  afterAll(() => gateway.stop());

  it('is refused before it begins', async () => {
    // No seat comes free before the time of those who have one is over.
    await control(gateway.sandbox, 'POST', '/sandbox/faults', {
      match: { path: `/v1/clients/*/instruments/*` },
      fault: 'hang',
    });
    const ask = async () => {
      const answers = await Promise.all(
        Array.from({ length: UNDER_WAY + 1 }, (_, index) =>
          gateway.query(INSTRUMENT, { id: `late-${index}` }),
        ),
      );
      const codes = answers.map(({ errors }) => errors?.[0]?.extensions?.['code']);
      return codes.filter((code) => code !== 'UPSTREAM_TIMEOUT');
    };
    // On a busy machine the last one may come so late that it gets the seat of the first.
    const refused = await until(async () => {
      const codes = await ask();
      return codes.length > 0 && codes;
    });
    expect(refused).toEqual(['RATE_LIMITED']);
  });
});

describe('the cost of a document', () => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway({ webhooks: false });
  });
  afterAll(() => gateway.stop());

  it('lets a query through that a person writes, whose nested pages nobody has sized', async () => {
    const { data, errors } = await gateway.query(
      '{ client { instruments(first: 100) { nodes { customer { accounts { nodes { availableBalance { amount } } } } } } } }',
    );
    expect(errors).toBeUndefined();
    expect(data.client.instruments.nodes.length).toBeGreaterThan(10);
  });

  it('names the pages that make it too dear', async () => {
    const { errors } = await gateway.query(
      '{ client { customers(first: 90) { nodes { accounts(first: 80) { nodes { instrument { id } } } } } } }',
    );
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('customers(first: 90) × accounts(first: 80)'),
      extensions: { code: 'TOO_COMPLEX' },
    });
  });

  it('holds pages that nobody has sized to the limit when they turn out to be large', async () => {
    await using strict = await startGateway({
      sandbox: gateway.sandbox,
      webhooks: false,
      config: { limits: { tokens: 2_000, depth: 15, aliases: 30, directives: 50, cost: 5 } },
    });
    const { errors } = await strict.query('{ client { id webhooks(first: 1) { totalCount } } }');
    expect(errors).toBeUndefined();
    const many = await strict.query(
      '{ client { a: instruments(first: 100) { totalCount } b: accounts(first: 100) { totalCount } } }',
    );
    expect(many.errors?.[0]?.extensions).toMatchObject({ code: 'TOO_COMPLEX' });
  });
});

describe('two hundred callers of service mode, narrowed to a customer each', () => {
  it('cost six reads of accounts and six of customers at most in ten seconds in which nothing happens, and see their own writes at once', async () => {
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    await using gateway = await startGateway({
      sandbox,
      webhooks: false,
      config: { service: serviceFor(sandbox) },
    });
    const { customers } = await control(sandbox, 'GET', '/sandbox');
    const headersOf = async (index: number) => ({
      authorization: `Bearer ${await callerToken({
        customer_id: customers[index % customers.length].id,
        sub: `person ${index}`,
      } as Parameters<typeof callerToken>[0])}`,
    });
    const query =
      '{ client { customers(first: 10) { nodes { id } } accounts(first: 10) { totalCount nodes { owner { __typename } } } instruments(first: 10) { totalCount } } }';
    await control(sandbox, 'DELETE', '/sandbox/requests');
    const start = performance.now();
    for (let index = 0; index < 200; index += 1) {
      const { data, errors } = await gateway.query(query, {}, await headersOf(index));
      expect(errors).toBeUndefined();
      expect(data.client.customers.nodes).toEqual([{ id: customers[index % customers.length].id }]);
    }
    const seconds = (performance.now() - start) / 1_000;
    const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
    for (const [route, count] of Object.entries(counts)) {
      if (!/customers|accounts/.test(route)) continue;
      expect(count, route).toBeLessThanOrEqual(6 * Math.max(1, seconds / 10));
    }

    const headers = await headersOf(0);
    const totalCount = async () => (await gateway.query(query, {}, headers)).data.client.accounts.totalCount;
    const before = await totalCount();
    const created = await gateway.query(
      'mutation ($id: ID!) { createCustomerPrivateAccount(input: { customerId: $id }) { __typename } }',
      { id: customers[0].id },
      headers,
    );
    expect(created.data.createCustomerPrivateAccount.__typename).toBe('CreateCustomerPrivateAccountSuccess');
    expect(await totalCount()).toBe(before + 1);
  });
});
