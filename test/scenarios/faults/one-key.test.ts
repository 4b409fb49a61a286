import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { Secret } from '../../../src/common/secret.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { type GatewayProcess, startGatewayProcess } from './cell.ts';
import {
  documentOf,
  inject,
  MUTATIONS,
  movementsOf,
  type Payable,
  payable,
  requestsOf,
  typeOf,
} from './payments.ts';

describe('fifty calls at once with one key, through two gateway processes on one Redis,', () => {
  let cleanup: AsyncDisposableStack;
  let sandbox: Sandbox;
  let gateways: readonly GatewayProcess[];
  // Fifty calls at once may take a slow machine seconds.
  const operationTimeoutMs = 15_000;
  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    sandbox = cleanup.use(await startSandbox({ port: 0, speed: 0, seed: 1 }));
    const { url: redisUrl } = cleanup.use(await startRedis());
    const start = async (): Promise<GatewayProcess> => {
      const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-one-key-'));
      cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
      const config = { operationTimeoutMs, upstreamTimeoutMs: operationTimeoutMs };
      const task = { upstreamUrl: sandbox.url, redisUrl, dataDir, config, leaseMs: 60_000, kills: [] };
      return cleanup.use(await startGatewayProcess(task));
    };
    gateways = [await start(), await start()];
  });
  afterAll(() => cleanup.disposeAsync());
  beforeEach(async () => {
    await control(sandbox, 'DELETE', '/sandbox/faults');
    await control(sandbox, 'DELETE', '/sandbox/requests');
  });

  const fifty = ({ mutation, input }: Payable) =>
    Array.from({ length: 50 }, async (_, call) => {
      const graphql = gateways[call % 2]?.graphql ?? '';
      const headers = { authorization: `Bearer ${sandbox.accessToken}` };
      const { data, errors } = await sendQuery(graphql, documentOf(mutation), { input }, headers);
      expect(errors).toBeUndefined();
      return data.result;
    });

  it.each(MUTATIONS)('%s: one movement and fifty equal answers', async (mutation) => {
    const payment = await payable(sandbox, mutation, `fifty ${mutation}`);
    // Long enough for all of them to be there while the first is still under way.
    await inject(sandbox, { method: 'POST', path: payment.path }, { delayMs: 500 });
    const answers = await Promise.all(fifty(payment));
    const movements = await movementsOf(sandbox, payment.tag);
    expect(movements).toHaveLength(1);
    for (const answer of answers) {
      expect(answer).toMatchObject({
        __typename: `${typeOf(mutation)}Success`,
        moved: { id: movements[0]?.transactionId },
      });
    }
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await requestsOf(sandbox, payment.route)).toBe(1);
  });

  it('those who wait for one that hangs are told so, or that it is unknown, by their deadline', async () => {
    const tell = async (mutation: (typeof MUTATIONS)[number]): Promise<string[]> => {
      const payment = await payable(sandbox, mutation, `waiting ${mutation}`);
      await inject(sandbox, { method: 'POST', path: payment.path }, 'hang');
      const answers = await Promise.all(fifty(payment));
      expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
      return answers.map(({ __typename, code }) => code ?? __typename);
    };
    const told: string[][] = [];
    // Two at a time: in each process 64 mutations of a caller may be under way, and those behind them begin when their time is over.
    for (let first = 0; first < MUTATIONS.length; first += 2) {
      told.push(...(await Promise.all(MUTATIONS.slice(first, first + 2).map(tell))));
    }
    expect(new Set(told.flat())).toEqual(new Set(['IDEMPOTENCY_IN_PROGRESS', 'OutcomeUnknown']));
  });
});

describe.each(['node:sqlite', 'Redis'])('a key that is used for something else, over %s,', (store) => {
  let cleanup: AsyncDisposableStack;
  let gateway: RunningGateway;
  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    const redisUrl = store === 'Redis' ? new Secret(cleanup.use(await startRedis()).url) : undefined;
    gateway = cleanup.use(await startGateway({ config: { redisUrl }, webhooks: false }));
  });
  afterAll(() => cleanup.disposeAsync());
  beforeEach(async () => {
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  });

  const CONFLICT = {
    __typename: 'ConflictError',
    code: 'IDEMPOTENCY_KEY_REUSED',
    field: ['input', 'idempotencyKey'],
    upstream: null,
  };
  const call = async (mutation: Payable['mutation'], input: object) =>
    (await gateway.query(documentOf(mutation), { input })).data.result;

  it.each(MUTATIONS)('%s: a conflict, and no call to the upstream, once it is done', async (mutation) => {
    const { sandbox } = gateway;
    const { input, otherInput, tag } = await payable(sandbox, mutation, `reused ${mutation}`);
    const first = await call(mutation, input);
    expect(first.moved.id).toEqual(expect.any(String));
    const { total } = await control(sandbox, 'GET', '/sandbox/requests');
    expect(await call(mutation, otherInput)).toMatchObject(CONFLICT);
    expect((await control(sandbox, 'GET', '/sandbox/requests')).total).toBe(total);
    // The conflict has not harmed what is kept.
    expect(await call(mutation, input)).toEqual({ ...first, replayed: true });
    expect(await movementsOf(sandbox, tag)).toHaveLength(1);
  });

  it.each(MUTATIONS)('%s: likewise while the first is under way', async (mutation) => {
    const { sandbox } = gateway;
    const { input, otherInput, tag, path, route } = await payable(sandbox, mutation, `early ${mutation}`);
    await inject(sandbox, { method: 'POST', path }, { delayMs: 1_000 }, 1);
    const first = call(mutation, input);
    await until(async () => (await requestsOf(sandbox, route)) === 1);
    const { total } = await control(sandbox, 'GET', '/sandbox/requests');
    expect(await call(mutation, otherInput)).toMatchObject(CONFLICT);
    expect((await control(sandbox, 'GET', '/sandbox/requests')).total).toBe(total);
    expect(await first).toMatchObject({ replayed: false });
    expect(await movementsOf(sandbox, tag)).toHaveLength(1);
  });
});
