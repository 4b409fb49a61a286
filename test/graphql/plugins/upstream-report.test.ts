import { afterAll, beforeAll, expect, it } from 'vitest';
import { useUpstreamReport } from '../../../src/graphql/plugins/upstream-report.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { type CallerClaims, callerToken, serviceFor } from '../../helpers/service.ts';
import { subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

interface Reported {
  readonly method: string;
  readonly route: string;
  readonly path: string;
  readonly status: number | null;
  readonly began: number;
  readonly milliseconds: number;
  readonly waited: number;
  readonly batched: number;
  readonly coalesced: boolean;
  readonly cached: boolean;
  readonly identifies: boolean;
}

const INSTRUMENTS = '/v1/clients/{clientId}/instruments';
const JOIN = '{ client { instruments(first: 25) { nodes { bank { id } account { id } } } } }';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false, config: { upstreamReport: true } });
  await gateway.query('{ client { id } }');
});
afterAll(() => gateway.stop());

// The plugin makes it of this form.
const reportOf = ({ extensions }: GraphQLAnswer) => (extensions?.['upstream'] ?? []) as readonly Reported[];

const ofRoute = (answer: GraphQLAnswer, route: string) =>
  reportOf(answer).find((call) => call.route === route);

it('names each REST call beneath a result, and how many look-ups it answered', async () => {
  const answer = await gateway.query(JOIN);
  expect(
    reportOf(answer)
      .map(({ route }) => route)
      .sort(),
  ).toEqual(['/v1/banks', '/v1/clients/{clientId}/accounts', INSTRUMENTS]);
  expect(ofRoute(answer, INSTRUMENTS)).toMatchObject({
    method: 'GET',
    path: `/v1/clients/${gateway.sandbox.clientId}/instruments?page=1&per_page=25`,
    status: 200,
    batched: 1,
    coalesced: false,
    cached: false,
  });
  expect(ofRoute(answer, '/v1/banks')).toMatchObject({ status: 200, batched: 25, cached: false });
});

it('tells what only found out who is calling from what the operation asked for', async () => {
  const { sandbox } = gateway;
  await using other = await startGateway({ sandbox, webhooks: false, config: { upstreamReport: true } });
  for (const isFirst of [true, false]) {
    const calls = reportOf(await other.query(JOIN));
    expect(calls.filter(({ identifies }) => identifies).map(({ path }) => path)).toEqual(
      isFirst ? [`/v1/clients/${sandbox.clientId}/instruments?page=1&per_page=1`] : [],
    );
    expect(calls.filter(({ identifies }) => !identifies)).toHaveLength(3);
  }
  await using second = await startGateway({ sandbox, webhooks: false, config: { upstreamReport: true } });
  // The look-ups of the list whose route it shares are not its own.
  const asked =
    '{ client { one: instruments(first: 1) { totalCount } two: instruments(first: 2) { totalCount } } }';
  const shown = reportOf(await second.query(asked)).map(({ batched, identifies }) => [batched, identifies]);
  expect(shown.filter(([, identifies]) => identifies)).toEqual([[1, true]]);
  await using third = await startGateway({ sandbox, webhooks: false, config: { upstreamReport: true } });
  // It answers a question of its own, though the operation asks for nothing of its route.
  const calls = reportOf(await third.query('{ banks { id } }'));
  expect(calls.map(({ route, batched, identifies }) => [route, batched, identifies])).toEqual([
    [INSTRUMENTS, 1, true],
    ['/v1/banks', 1, false],
  ]);
});

it('says when each call began: the look-ups of a join after the list that they are for, within the time of the answer', async () => {
  const asked = async (document: string): Promise<GraphQLAnswer> => {
    const start = performance.now();
    const answer = await gateway.query(document);
    const took = performance.now() - start;
    for (const { began, milliseconds } of reportOf(answer)) {
      expect(began).toBeGreaterThanOrEqual(0);
      expect(began + milliseconds).toBeLessThanOrEqual(took);
    }
    return answer;
  };
  await asked(JOIN);
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { path: INSTRUMENTS.replace('{clientId}', '*') },
    fault: { delayMs: 200 },
  });
  const late = await asked('{ client { instruments(first: 1) { nodes { id } } } }');
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
  expect(ofRoute(late, INSTRUMENTS)?.milliseconds).toBeGreaterThanOrEqual(200);
});

it('tells how long a call waited for its seat apart from how long it took, in the report and in the metrics', async () => {
  const { sandbox } = gateway;
  await using single = await startGateway({
    sandbox,
    webhooks: false,
    config: { upstreamReport: true, upstreamCallsPerCaller: 1 },
  });
  await single.query('{ client { id } }');
  await control(sandbox, 'POST', '/sandbox/faults', {
    match: { path: '/v1/clients/*' },
    fault: { delayMs: 100 },
  });
  for (const _time of ['first', 'again']) {
    const start = performance.now();
    const answer = await single.query(
      '{ client { accounts { totalCount } instruments(first: 1) { nodes { id } } } }',
    );
    const took = performance.now() - start;
    const calls = [...reportOf(answer)].sort((one, other) => one.began - other.began);
    expect(calls).toHaveLength(2);
    const [, second] = calls;
    expect(second?.waited).toBeGreaterThan(0);
    // It left once the first had its answer, a tenth of a second later, and took its time after that. Each figure is rounded to tenths.
    expect(second?.began).toBeGreaterThanOrEqual(99);
    expect((second?.began ?? 0) + (second?.milliseconds ?? 0)).toBeLessThanOrEqual(took + 0.2);
  }
  await control(sandbox, 'DELETE', '/sandbox/faults');
  const metrics = await (await fetch(`${single.url}/metrics`)).text();
  expect(metrics).toMatch(/^pasarela_upstream_wait_seconds_count\{wait="queue"\} 2$/m);
});

it('tells the wait of the answer for its turn with that for the seat', () => {
  const call = { route: '/v1/banks', startedAt: 0, milliseconds: 5, queuedMs: 30, unreadMs: 20 };
  const report = { calls: [call], sharedCalls: [], way: undefined, lookUps: () => new Map() };
  const made: unknown[] = [];
  // Only these members of the hook's payload are used, and of what it returns.
  const onExecute = useUpstreamReport().onExecute as unknown as (payload: object) => {
    onExecuteDone(payload: object): void;
  };
  const { onExecuteDone } = onExecute({ args: { contextValue: { identity: { seesCalls: true }, report } } });
  onExecuteDone({ result: {}, setResult: (result: unknown) => made.push(result) });
  expect(made).toMatchObject([{ extensions: { upstream: [{ milliseconds: 5, waited: 50 }] } }]);
});

it('says of the bank catalog, once it has been read, that no call was made', async () => {
  await gateway.query('{ banks { id } }');
  await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  const answer = await gateway.query('{ banks { id } }');
  expect(reportOf(answer)).toMatchObject([{ route: '/v1/banks', status: null, cached: true }]);
  expect((await control(gateway.sandbox, 'GET', '/sandbox/requests')).total).toBe(0);
});

it('says of a result shared with the same query under way whose calls they were', async () => {
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { path: '/v1/clients/*/accounts' },
    fault: { delayMs: 300 },
  });
  const ask = () => gateway.query('{ client { accounts { totalCount } } }');
  // On a machine that stands still, one may come once the first is answered.
  await until(async () => {
    const calls = (await Promise.all([ask(), ask(), ask()])).flatMap(reportOf);
    expect(calls).toHaveLength(3);
    return calls.filter(({ coalesced }) => !coalesced).length === 1;
  });
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
});

it('tells a caller who is narrowed to a customer nothing of the calls', async () => {
  const { sandbox } = gateway;
  await using service = await startGateway({
    sandbox,
    webhooks: false,
    config: { upstreamReport: true, service: serviceFor(sandbox) },
  });
  const { customers } = await control(sandbox, 'GET', '/sandbox');
  const ask = async (claims: CallerClaims) =>
    service.query(JOIN, {}, { authorization: `Bearer ${await callerToken(claims)}` });
  for (const _time of ['first', 'planned']) {
    const narrowed = await ask({ customer_id: customers[0].id });
    expect(narrowed.data.client.instruments.nodes).not.toEqual([]);
    expect(narrowed.extensions?.['upstream']).toBeUndefined();
    expect(reportOf(await ask({}))).not.toEqual([]);
  }
});

it('tells a narrowed caller who joins the same query under way nothing of its calls, over HTTP and WebSocket', async () => {
  const { sandbox } = gateway;
  await using service = await startGateway({
    sandbox,
    webhooks: false,
    config: { upstreamReport: true, service: serviceFor(sandbox) },
  });
  const { customers, transactions } = await control(sandbox, 'GET', '/sandbox');
  const query = `{ transaction(id: "${transactions.moneyOutId}") { id } }`;
  const ask = (token: string) => service.query(query, {}, { authorization: `Bearer ${token}` });
  const askOverSocket = async (token: string): Promise<GraphQLAnswer> => {
    await using socket = subscribeOverWebSocket(service.graphql, token, { query });
    const [result] = await socket.received(1);
    return { status: 200, headers: new Headers(), ...result } as GraphQLAnswer;
  };
  await control(sandbox, 'POST', '/sandbox/faults', {
    match: { path: '/v1/clients/*/transactions/*' },
    fault: { delayMs: 500 },
  });
  const narrowed = await callerToken({ customer_id: customers.at(-1).id });
  const whole = await callerToken();
  const answers = async (token: string) =>
    (await Promise.all([ask(token), ask(token), ask(token), askOverSocket(token), askOverSocket(token)])).map(
      ({ data, extensions }) => ({ data, extensions }),
    );
  for (const _time of ['first', 'again']) {
    const [first, ...joined] = await answers(narrowed);
    expect(first?.extensions?.['upstream']).toBeUndefined();
    for (const answer of joined) expect(answer).toEqual(first);
    for (const { extensions } of await answers(whole)) {
      expect(extensions?.['upstream']).toMatchObject([{ status: 200 }]);
    }
  }
  await control(sandbox, 'DELETE', '/sandbox/faults');
});
