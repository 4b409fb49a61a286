import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { serveComparisons } from '../../src/app/balance-comparisons.ts';
import type { Base } from '../../src/app/base.ts';
import { settleLaterOf } from '../../src/app/open-payments.ts';
import { createOwnAddresses } from '../../src/app/own-addresses.ts';
import { openRestService } from '../../src/app/rest-service.ts';
import type { ServerConfig } from '../../src/app/server-config.ts';
import { openStores } from '../../src/app/stores.ts';
import { systemAlarmClock } from '../../src/common/alarms.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { Party } from '../../src/common/party.ts';
import { Turns } from '../../src/common/turns.ts';
import { openMoney } from '../../src/money/open-money.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { requesterOfGateway } from '../../src/operation/caller-keys.ts';
import { fixedCredential } from '../../src/upstream/call/credential.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { gatewayConfig } from '../helpers/gateway-config.ts';
import { CLIENT_ID, json, startUpstream } from '../helpers/http-stub.ts';
import { serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

type Answer = Parameters<typeof startUpstream>[0];

/** Answers every call with one status. */
const always =
  (status: number): Answer =>
  (_request, response) =>
    json(response, { code: 1, details: [] }, status);

/** The parts beneath a gateway, in front of a service. */
async function startParts(answer: Answer, changes: Partial<ServerConfig> = {}, open = openMoney) {
  const upstream = await startUpstream(answer);
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  const config = { ...gatewayConfig(upstream.url, dataDir), ...changes };
  const lines: string[] = [];
  const logger = collectingLogger(lines);
  const metrics = createMetrics(() => new Map(), logger);
  const turns = new Turns(() => performance.now());
  const service = openRestService(config, { metrics, turns, logger });
  /** Over which connections each of the gateway's own calls goes. */
  const kinds: string[] = [];
  const restService: Base['restService'] = {
    ...service,
    rest(clientId, authorize, over) {
      kinds.push(over);
      return service.rest(clientId, authorize, over);
    },
  };
  const addresses = createOwnAddresses(config);
  const base: Base = { config, logger, metrics, clock: systemAlarmClock, turns, addresses, restService };
  const stores = await openStores(base, open);
  return {
    base,
    stores,
    kinds,
    lines,
    upstream,
    async [Symbol.asyncDispose]() {
      await Promise.all([stores.events.stop(), stores.money.stop(), stores.auth.stop()]);
      await service.http.close();
      await upstream[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true });
    },
  };
}

const service = serviceFor({ clientId: CLIENT_ID, apiKey: 'key', clientSecret: 'secret' });

it('the gateway asks for its own token over connections that neither reads nor payments take', async () => {
  await using parts = await startParts(always(403), { service });
  await expect(async () => parts.stores.auth.authorize('', CLIENT_ID)()).rejects.toThrow();
  expect(parts.upstream.requests).toEqual([`POST /v1/clients/${CLIENT_ID}/auth/credential-tokens`]);
  expect(parts.kinds).toEqual(['probes']);
});

it('settles under a token of its caller until that ends, or until the service refuses it', async () => {
  const caller = {
    ...{ clientId: CLIENT_ID, customerId: undefined, subject: undefined, keyOwner: undefined },
    scopes: new Set<never>(),
  };
  for (const status of [503, 401]) {
    await using parts = await startParts(always(status));
    const later = settleLaterOf(parts.base, parts.stores);
    const of = (expiresAt: number | undefined) =>
      later?.({
        caller: { ...caller, expiresAt },
        requester: { caller: 'one', group: 'one' },
        authorize: fixedCredential({ authorization: 'Bearer token' }),
        requestedBy: 'a digest',
      });
    const end = Date.now() + 60_000;
    expect(of(end)?.until).toBe(end);
    // A token that does not say when it ends is not used for ever.
    expect(of(undefined)?.until).toBeGreaterThan(end);
    expect(of(undefined)?.until).toBeLessThan(end + 24 * 60 * 60_000);
    const calls = of(end)?.calls();
    const other = of(end)?.calls();
    expect(calls?.isOver()).toBe(false);
    // What it looks for matters to nobody here: the service answers no call.
    await calls?.look(REFUND, { couldBe: async () => [] } as never).catch(() => undefined);
    expect(parts.upstream.requests.length).toBeGreaterThan(0);
    expect([calls?.isOver(), other?.isOver()]).toEqual([status === 401, false]);
  }
});

/** As much of an open refund as a look needs to make its first call. */
const REFUND = {
  asked: { operation: 'refundTransaction' },
  original: '22222222-2222-4333-8444-555555555555',
  name: { clientId: CLIENT_ID },
} as never;

it('a comparison of balances that is given up gives up the call that it waits for', async () => {
  const held: ServerResponse[] = [];
  const answer: Answer = ({ method }, response) => {
    if (method === 'POST') json(response, { id: CLIENT_ID, token: 'token' }, 201);
    else held.push(response);
  };
  const reconciling = { everyMs: 20, marginMs: 0 };
  // Its own time would end the call too.
  await using parts = await startParts(answer, { service, reconciling, upstreamTimeoutMs: 600_000 });
  serveComparisons(parts.base, parts.stores);
  const [call] = await until(() => (held.length > 0 ? held : undefined));
  expect(call?.destroyed).toBe(false);
  parts.stores.money.drain();
  await until(() => call?.destroyed);
});

it('the REST calls of a comparison of balances are counted as all others are', async () => {
  const answer: Answer = ({ method }, response) =>
    method === 'POST' ? json(response, { id: CLIENT_ID, token: 'token' }, 201) : json(response, {}, 418);
  await using parts = await startParts(answer, { service, reconciling: { everyMs: 20, marginMs: 0 } });
  serveComparisons(parts.base, parts.stores);
  const { registry } = parts.base.metrics;
  await until(async () => {
    const counted = await registry.getSingleMetric('pasarela_upstream_calls_total')?.get();
    return counted?.values.some(({ labels, value }) => labels['status'] === '418' && value > 0);
  });
  parts.stores.money.drain();
});

it('each comparison of balances has the whole time for its REST calls, however long after the start it is made', async () => {
  const answer: Answer = ({ method }, response) =>
    method === 'POST' ? json(response, { id: CLIENT_ID, token: 'token' }, 201) : json(response, {}, 418);
  await using parts = await startParts(answer, { service, reconciling: { everyMs: 20, marginMs: 0 } });
  serveComparisons(parts.base, parts.stores);
  const restoreClock = useClock({ ...clock, now: () => Date.now() + 24 * 60 * 60_000 });
  const { registry } = parts.base.metrics;
  await until(async () => {
    const counted = await registry.getSingleMetric('pasarela_balance_comparisons_total')?.get();
    return counted?.values.some(({ value }) => value > 0);
  });
  parts.stores.money.drain();
  restoreClock();
  expect(parts.upstream.requests).toContainEqual(expect.stringMatching(/^GET .*\/accounts/));
});

it('the state of the stores is known also where it cannot be read whether payments are held', async () => {
  const open: typeof openMoney = async (options) =>
    Object.assign(await openMoney(options), { held: () => Promise.reject(new Error('The record is away.')) });
  await using parts = await startParts(always(200), {}, open);
  expect(await until(() => parts.stores.condition())).toMatchObject({
    events: { writable: true },
    paymentsHeld: [],
  });
});

it('a comparison of balances that hangs takes no seat of the settler', async () => {
  const held: string[] = [];
  const answer: Answer = ({ method, url = '' }, response) => {
    if (method === 'POST') json(response, { id: CLIENT_ID, token: 'token' }, 201);
    else held.push(url);
  };
  const reconciling = { everyMs: 20, marginMs: 0 };
  const hangs = { reconciling, upstreamCallsPerCaller: 1, upstreamTimeoutMs: 600_000 };
  await using parts = await startParts(answer, { service, ...hangs });
  serveComparisons(parts.base, parts.stores);
  await until(() => held.length > 0);
  const requester = requesterOfGateway('settling', CLIENT_ID);
  const party = new Party({ requester, urgency: 'streams', deadline: Date.now() + 600_000 });
  const call = { method: 'GET', path: '/v1/banks', headers: {}, timeoutMs: 600_000, party } as const;
  void parts.base.restService.http.send(call);
  await until(() => held.includes('/v1/banks'));
  parts.stores.money.drain();
});

it('the metrics tell how many REST calls wait for a seat', async () => {
  const held: ServerResponse[] = [];
  const answer: Answer = (_request, response) => held.push(response);
  // The calls have this time together.
  await using parts = await startParts(answer, { upstreamCallsPerCaller: 1, upstreamTimeoutMs: 600_000 });
  const { metrics, restService } = parts.base;
  const waiting = async () =>
    (await metrics.registry.getSingleMetric('pasarela_upstream_calls_waiting')?.get())?.values[0]?.value;
  const rest = restService.rest(CLIENT_ID, fixedCredential({ authorization: 'Bearer token' }), 'reads');
  const calls = Promise.all([rest.get('/v1/banks'), rest.get('/v1/banks'), rest.get('/v1/banks')]);
  await until(async () => (await waiting()) === 2);
  for (const left of [1, 0, 0]) {
    const response = await until(() => held.shift());
    json(response, {});
    await until(async () => (await waiting()) === left);
  }
  await calls;
});

it('the log has a line when another program begins to hold the record of payments, and one when it no longer does', async () => {
  await using parts = await startParts(always(200));
  const { lines, stores, base } = parts;
  const messages = () => lines.map((line) => String(JSON.parse(line).message));
  await until(() => stores.condition());
  using other = new DatabaseSync(join(base.config.dataDir, 'money.sqlite'));
  other.exec('BEGIN IMMEDIATE');
  await until(async () => (await stores.condition())?.paymentsProblem?.includes('locked by another program'));
  expect(messages()).toContainEqual(
    expect.stringMatching(/^No payment is sent: .*locked by another program/),
  );
  other.exec('ROLLBACK');
  await until(async () => (await stores.condition())?.paymentsAvailable);
  expect(messages().at(-1)).toBe('The record of payments can be written again');
});
