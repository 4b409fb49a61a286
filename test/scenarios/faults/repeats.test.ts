import { validate, version } from 'uuid';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { KEYLESS_CHANGES, documentOf as keylessDocument, matchOf } from '../../helpers/keyless-changes.ts';
import { until } from '../../helpers/until.ts';
import { serviceError } from '../../money/upstream.ts';
import { type Front, startFront } from './front.ts';
import { documentOf, inject, MUTATIONS, movementsOf, payable, requestsOf } from './payments.ts';

const ACCOUNTS = '{ client { accounts { totalCount } } }';
const ROUTE = 'GET /v1/clients/{clientId}/accounts';
const READ = { method: 'GET', path: '/v1/clients/*/accounts' };
// Longer than an answer takes on a busy machine: a call that ends by this is made once more than the tests count.
const UPSTREAM_TIMEOUT_MS = 3_000;

let sandbox: Sandbox;
let gateway: RunningGateway;
let front: Front;
/** Answers of the front to come, for reads of accounts and for payments. */
let limits: { readonly retryAfter: string }[];

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
  front = await startFront(sandbox.url, ({ method, path }, response) => {
    const isLimited = path.includes('/accounts') || (method === 'POST' && path.includes('transactions'));
    const limit = isLimited ? limits.shift() : undefined;
    if (limit === undefined) return false;
    response.writeHead(429, { 'retry-after': limit.retryAfter }).end(serviceError(429));
    return true;
  });
  gateway = await startGateway({
    sandbox,
    config: {
      upstreamUrl: front.url,
      upstreamTimeoutMs: UPSTREAM_TIMEOUT_MS,
      operationTimeoutMs: 25_000,
      upstreamReport: true,
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  await front[Symbol.asyncDispose]();
  await sandbox.stop();
});
beforeEach(async () => {
  limits = [];
  await control(sandbox, 'DELETE', '/sandbox/faults');
  // The gateway knows who is calling, and the last thing that it saw of the upstream is that it works.
  await until(async () => (await gateway.query(ACCOUNTS)).errors === undefined);
  await control(sandbox, 'DELETE', '/sandbox/requests');
});

const codeOf = ({ errors }: Awaited<ReturnType<RunningGateway['query']>>): unknown =>
  errors?.[0]?.extensions['code'];

describe('a read of the graph', () => {
  it.each([
    ['a 502', { status: 502 }],
    ['a 503', { status: 503 }],
    ['a 504', { status: 504 }],
    ['a connection that is reset', 'reset-before'],
    ['a connection that is reset after the work', 'reset-after-commit'],
    ['an answer that breaks off', 'truncate'],
  ])('is repeated after %s, twice at most', async (_what, fault) => {
    await inject(sandbox, READ, fault, 2);
    const { data, errors } = await gateway.query(ACCOUNTS);
    expect(errors).toBeUndefined();
    expect(data.client.accounts.totalCount).toBeGreaterThan(0);
    expect(await requestsOf(sandbox, ROUTE)).toBe(3);

    await inject(sandbox, READ, fault);
    expect(codeOf(await gateway.query(ACCOUNTS))).toBe('UPSTREAM_UNAVAILABLE');
    expect(await requestsOf(sandbox, ROUTE)).toBe(6);
  });

  it('waits as long as a 429 asks', async () => {
    limits.push({ retryAfter: '0' }, { retryAfter: '0' });
    const { errors, extensions } = await gateway.query(ACCOUNTS);
    expect(errors).toBeUndefined();
    expect(extensions?.['upstream']).toMatchObject([{ status: 429 }, { status: 429 }, { status: 200 }]);
  });

  it('does not wait when a 429 asks for longer than the operation has, and says for how long', async () => {
    limits.push({ retryAfter: '3600' });
    const answer = await gateway.query(ACCOUNTS);
    expect(answer.errors?.[0]?.extensions).toMatchObject({
      code: 'UPSTREAM_RATE_LIMITED',
      retryAfterMs: 3_600_000,
    });
    expect(await requestsOf(sandbox, ROUTE)).toBe(0);
  });

  it.each([
    ['a 429 that does not say when', { status: 429 }, 'UPSTREAM_RATE_LIMITED'],
    ['a 500', { status: 500 }, 'UPSTREAM_UNAVAILABLE'],
    ['a 400', { status: 400 }, 'BAD_USER_INPUT'],
    ['a 401', { status: 401 }, 'UNAUTHENTICATED'],
    ['a 403', { status: 403 }, 'FORBIDDEN'],
    ['an answer that cannot be read', 'garbage', 'UPSTREAM_INVALID'],
    ['a silence as long as a call may last', 'hang', 'UPSTREAM_TIMEOUT'],
  ])('is not repeated after %s', async (_what, fault, code) => {
    await inject(sandbox, READ, fault);
    expect(codeOf(await gateway.query(ACCOUNTS))).toBe(code);
    expect(await requestsOf(sandbox, ROUTE)).toBe(1);
  });
});

/** A description that every mutation allows: letters, digits and spaces, fewer than 40. */
const tagOf = (...words: readonly string[]): string => words.join(' ').replaceAll(/\W/g, '').slice(0, 39);

const LOST: readonly (readonly [what: string, fault: unknown])[] = [
  ['a 502', { status: 502, commit: true }],
  ['a 503', { status: 503 }],
  ['a 504', { status: 504, commit: true }],
  ['a 500', { status: 500 }],
  ['a 408', { status: 408 }],
  ['a reset', 'reset-before'],
  ['a reset after the work', 'reset-after-commit'],
  ['half an answer', 'truncate'],
  ['silence', 'hang'],
];

describe.each(KEYLESS_CHANGES)('$name', ({ name, route, input }) => {
  it.each(LOST)('is never repeated after %s', async (_what, fault) => {
    const world = await control(sandbox, 'GET', '/sandbox');
    const { data: webhooks } = await control(sandbox, 'GET', `/v1/clients/${world.clientId}/webhooks`);
    await inject(sandbox, matchOf(route), fault);
    await gateway.query(keylessDocument(name), { input: input({ ...world, webhookId: webhooks[0].id }) });
    const { faults } = await control(sandbox, 'GET', '/sandbox/faults');
    expect(faults).toMatchObject([{ used: 1 }]);
    expect(await requestsOf(sandbox, route)).toBe(1);
  });
});

describe.each(MUTATIONS.filter((mutation) => mutation !== 'createMoneyOut'))('%s', (mutation) => {
  it.each([...LOST, ['bytes that are no JSON', 'garbage'] as const])(
    'is never repeated after %s, and says that the outcome is unknown',
    async (what, fault) => {
      const payment = await payable(sandbox, mutation, tagOf(what, mutation));
      await inject(sandbox, { method: 'POST', path: payment.path }, fault);
      for (const _call of [1, 2]) {
        const { data } = await gateway.query(documentOf(mutation), { input: payment.input });
        expect(data.result).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: false });
      }
      expect(await requestsOf(sandbox, payment.route)).toBe(1);
    },
  );
});

describe.each(MUTATIONS)('%s', (mutation) => {
  it('says for how long a 429 asks to wait, moves nothing, and can be made afterwards', async () => {
    const tag = tagOf('a 429', mutation);
    const payment = await payable(sandbox, mutation, tag);
    const pay = () => gateway.query(documentOf(mutation), { input: payment.input });
    limits.push({ retryAfter: '30' });
    expect((await pay()).errors?.[0]?.extensions).toMatchObject({
      code: 'UPSTREAM_RATE_LIMITED',
      retryAfterMs: 30_000,
    });
    expect(await requestsOf(sandbox, payment.route)).toBe(0);
    expect((await pay()).data.result).toMatchObject({ replayed: false });
    expect(await requestsOf(sandbox, payment.route)).toBe(1);
  });
});

describe('money out', () => {
  it.each([...LOST, ['bytes that are no JSON', 'garbage'] as const])(
    'is repeated after %s, with the same bytes under the same key, and moves once',
    async (what, fault) => {
      const tag = tagOf(what, 'createMoneyOut');
      const payment = await payable(sandbox, 'createMoneyOut', tag);
      await inject(sandbox, { method: 'POST', path: payment.path }, fault, 2);
      const before = front.changes.length;
      const { data } = await gateway.query(documentOf('createMoneyOut'), { input: payment.input });
      const movements = await movementsOf(sandbox, tag);
      expect(movements).toHaveLength(1);
      expect(data.result).toMatchObject({ replayed: false, moved: { id: movements[0]?.transactionId } });
      const sent = front.changes.slice(before);
      expect(sent).toHaveLength(3);
      expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
      const keys = new Set(sent.map(({ headers }) => String(headers['idempotency-key'])));
      expect(keys.size).toBe(1);
      for (const key of keys) expect(validate(key) && version(key)).toBe(5);
    },
  );
});
