import { beforeEach, expect, it } from 'vitest';
import { clock } from '../../src/common/clock.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';
import type { Way } from '../../src/operation/way.ts';
import { readPage } from '../docs/pages.ts';

let metrics: Metrics;
let undocumented: ReadonlyMap<string, number>;
beforeEach(() => {
  undocumented = new Map();
  metrics = createMetrics(() => undocumented, silentLogger);
});

/** Values of `pasarela_*` by name and labels, as Prometheus reads them. */
async function scrape(): Promise<(series: string) => number | undefined> {
  const lines = (await metrics.registry.metrics()).split('\n');
  return (series) => {
    const line = lines.find((one) => one.startsWith(`pasarela_${series} `));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
  };
}

it('what is asked for when somebody reads is not added up over readings', async () => {
  undocumented = new Map([['TransactionStatus', 2]]);
  metrics.operation('query', 'ok', 20);
  metrics.way({
    transport: 'fast path',
    document: 'kept',
    executor: 'plan',
    because: undefined,
    isShared: false,
  });
  for (const _reading of [1, 2]) {
    const value = await scrape();
    expect(value('undocumented_values_total{enum="TransactionStatus"}')).toBe(2);
    expect(value('operations_total{type="query",outcome="ok"}')).toBe(1);
    expect(value('operations_total{type="query",outcome="error"}')).toBe(0);
  }
});

it('tells ways apart that differ in one thing alone', async () => {
  const way: Way = {
    transport: 'yoga',
    document: 'kept',
    executor: 'graphql-js',
    because: 'defer',
    isShared: false,
  };
  const others: readonly Partial<Way>[] = [
    { transport: 'fast path' },
    { transport: 'socket' },
    { document: 'read' },
    { executor: 'plan' },
    { because: 'stream' },
    { isShared: true },
  ];
  metrics.way(way);
  for (const other of others) for (const _time of [1, 2]) metrics.way({ ...way, ...other });
  const value = await scrape();
  const count = ({ isShared, ...labels }: Way): number | undefined => {
    const texts = Object.entries({ ...labels, shared: isShared }).map(([name, text]) => `${name}="${text}"`);
    return value(`operation_ways_total{${texts.join(',')}}`);
  };
  expect(count(way)).toBe(1);
  for (const other of others) expect([other, count({ ...way, ...other })]).toEqual([other, 2]);
});

it('says in seconds how long things took, and why a call or a request has no answer', async () => {
  const call = {
    method: 'GET',
    route: '/x',
    path: '/x',
    startedAt: 0,
    cached: false,
    identifies: false,
    queuedMs: 40,
    unreadMs: 20,
  };
  metrics.upstreamCall({ ...call, status: null, milliseconds: 2_500 });
  metrics.upstreamCall({ ...call, queuedMs: 0, status: 200, milliseconds: 500 });
  metrics.upstreamCall({
    ...call,
    queuedMs: 0,
    unreadMs: 0,
    status: null,
    dropped: 'unsent',
    milliseconds: 250,
  });
  metrics.operation('mutation', 'error', 1_500);
  metrics.operationWaited(4_000);
  metrics.listWalked('/v1/clients/{clientId}/accounts', 'ok', 3_000);
  metrics.serving.answered('/graphql', undefined, 250);
  metrics.fanOut.lag(30);
  const value = await scrape();
  expect(value('upstream_request_duration_seconds_sum{method="GET",route="/x",status="0"}')).toBe(2.5);
  expect(value('upstream_request_duration_seconds_sum{method="GET",route="/x",status="200"}')).toBe(0.5);
  expect(value('upstream_request_duration_seconds_sum{method="GET",route="/x",status="unsent"}')).toBe(0.25);
  for (const status of ['0', '200', 'unsent'])
    expect(value(`upstream_calls_total{status="${status}"}`)).toBe(1);
  expect(value('upstream_calls_total{status="503"}')).toBe(0);
  expect(value('upstream_wait_seconds_sum{wait="queue"}')).toBe(0.04);
  expect(value('upstream_wait_seconds_sum{wait="turn"}')).toBe(0.04);
  expect(value('operation_duration_seconds_sum{type="mutation",outcome="error"}')).toBe(1.5);
  expect(value('operations_wait_seconds_sum')).toBe(4);
  const walked = (series: string) =>
    value(`list_walk_duration_seconds_${series.replace('accounts', '/v1/clients/{clientId}/accounts')}`);
  expect(walked('sum{route="accounts",outcome="ok"}')).toBe(3);
  expect(walked('count{route="accounts",outcome="error"}')).toBe(0);
  expect(value('http_request_duration_seconds_sum{path="/graphql",status="0"}')).toBe(0.25);
  expect(value('events_delivery_latency_seconds_sum')).toBe(0.03);
});

it('tells slow operations apart by the seconds that docs/layers.md names', async () => {
  const [, named = ''] =
    /Between ([\d., and]+) s both are estimates/.exec(await readPage('docs/layers.md')) ?? [];
  const bounds = named.split(/, | and /).map(Number);
  expect(bounds.length).toBeGreaterThan(2);
  for (const seconds of [1.5, 12, 31]) metrics.operation('query', 'ok', seconds * 1_000);
  const lines = (await metrics.registry.metrics()).split('\n');
  const buckets = lines.flatMap((line) => {
    const [, bound, count] =
      /^pasarela_operation_duration_seconds_bucket\{le="([\d.]+)",type="query",outcome="ok"\} (\d+)/.exec(
        line,
      ) ?? [];
    return bound === undefined || Number(bound) < 1 ? [] : [[Number(bound), Number(count)]];
  });
  expect(buckets.map(([bound]) => bound)).toEqual(bounds);
  expect(buckets.map(([, count]) => count)).toEqual([0, 1, 1, 1, 2]);
});

it('says when the settler has gone through the payments last, 0 before that, and nothing where there is none', async () => {
  let lastPass: number | undefined = 1_796_000_000_500;
  const payments = { oldestUnknown: async () => undefined, oldUnknown: async () => 0 };
  metrics.money.watch({
    held: async () => [],
    inFlight: () => 0,
    unwritten: () => 0,
    lastPass: () => lastPass,
    payments,
  });
  const shown = async () => (await scrape())('settler_last_pass_timestamp_seconds');
  expect(await shown()).toBe(1_796_000_000.5);
  lastPass = 0;
  expect(await shown()).toBe(0);
  lastPass = undefined;
  expect(await shown()).toBeUndefined();
});

it('asks of payments whether they are held, how many run, how much of them is unwritten, and how old the oldest unknown is', async () => {
  let held: readonly unknown[] = [];
  let oldest: () => Promise<number | undefined> = async () => undefined;
  metrics.money.watch({
    held: async () => held,
    inFlight: () => 3,
    unwritten: () => 2,
    lastPass: () => undefined,
    payments: { oldestUnknown: () => oldest(), oldUnknown: async () => 2 },
  });
  const before = await scrape();
  expect(before('payments_held')).toBe(0);
  expect(before('payments_in_flight')).toBe(3);
  expect(before('payments_unwritten')).toBe(2);
  expect(before('payments_oldest_unknown_seconds')).toBe(0);

  held = [{ why: 'stopped' }];
  oldest = async () => clock.now() - 90_000;
  const after = await scrape();
  expect(after('payments_held')).toBe(1);
  expect(after('payments_unknown_for_long')).toBe(2);
  expect(after('payments_oldest_unknown_seconds')).toBeGreaterThanOrEqual(90);
  // A day: a machine may be slow, and a thousand times as much is a wrong unit.
  expect(after('payments_oldest_unknown_seconds')).toBeLessThan(86_400);

  // The store's clock may be ahead of this one.
  oldest = async () => clock.now() + 3_600_000;
  expect((await scrape())('payments_oldest_unknown_seconds')).toBe(0);
});

it('is read also while what it asks cannot be told, and says nothing of payments that nobody knows', async () => {
  const away = () => Promise.reject(new Error('The store is away.'));
  const money = {
    held: async (): Promise<readonly unknown[]> => [{ why: 'stopped' }],
    inFlight: () => 0,
    unwritten: () => 1,
    lastPass: () => undefined,
    payments: { oldestUnknown: async (): Promise<number | undefined> => 0, oldUnknown: async () => 3 },
  };
  metrics.money.watch(money);
  const known = await scrape();
  const told = ['payments_held', 'payments_oldest_unknown_seconds', 'payments_unknown_for_long'];
  for (const one of told) expect(known(one)).toBeGreaterThan(0);
  money.held = away;
  money.payments = { oldestUnknown: away, oldUnknown: away };
  metrics.serving.watchState(() => Promise.reject(new Error('Nobody knows.')));
  metrics.operationRefused('group');
  const value = await scrape();
  expect(value('operations_refused_total{full="group"}')).toBe(1);
  expect(value('operations_refused_total{full="queue"}')).toBe(0);
  // Zero would say that there is none, and end an alert.
  for (const one of told) expect(value(one)).toBeUndefined();
  expect(value('payments_in_flight')).toBe(0);
  expect(value('payments_unwritten')).toBe(1);
  expect(value('ready')).toBe(0);
  expect(value('redis_up{store="events"}')).toBeUndefined();
});

it('adds streams that share a follower to the followers of the log, as either changes', async () => {
  const subscribers = async () => (await scrape())('events_subscribers');
  metrics.events.subscribers(2);
  for (const change of [3, 1, -2]) metrics.fanOut.sharing(change);
  expect(await subscribers()).toBe(4);
  metrics.events.subscribers(1);
  expect(await subscribers()).toBe(3);
});

it('asks how many events and readings wait, and how many seats are taken', async () => {
  let [waiting, sse] = [5, 2];
  metrics.events.watchFeeds(() => waiting);
  metrics.watchPolls(() => 2 * waiting);
  metrics.serving.watchSeats(() => ({ websocket: 7, sse }));
  const streams = ['open_streams{kind="websocket"}', 'open_streams{kind="sse"}'];
  const names = ['events_waiting', 'polls_waiting', ...streams];
  expect(names.map(await scrape())).toEqual([5, 10, 7, 2]);
  [waiting, sse] = [0, 0];
  expect(names.map(await scrape())).toEqual([0, 0, 7, 0]);
});

it('tells files of documents that were taken over from those that were not', async () => {
  for (const isTaken of [true, true, false]) metrics.trustedDocumentsReload(isTaken);
  const value = await scrape();
  expect(value('trusted_documents_reloads_total{outcome="ok"}')).toBe(2);
  expect(value('trusted_documents_reloads_total{outcome="error"}')).toBe(1);
});

it('counts closes of sockets under a code that means something, all others together', async () => {
  for (const code of [4429, 4321, 3000]) metrics.serving.socketClosed(code);
  const value = await scrape();
  expect(value('socket_closes_total{code="4429"}')).toBe(1);
  expect(value('socket_closes_total{code="other"}')).toBe(2);
});

it('shows in each scrape what one look has seen then', async () => {
  let looks = 0;
  let isUp = false;
  metrics.serving.watchState(async () => {
    looks += 1;
    return { ready: isUp, degraded: isUp ? [] : ['events'], redis: { answers: isUp, milliseconds: 2000 } };
  });
  const names = ['ready', 'degraded{part="events"}', 'redis_up{store="events"}'];
  expect(names.map(await scrape())).toEqual([0, 1, 0]);
  isUp = true;
  expect(names.map(await scrape())).toEqual([1, 0, 1]);
  expect(looks).toBe(2);
});
