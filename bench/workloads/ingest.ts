import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { startRedis } from '../../test/helpers/redis.ts';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { startServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { subscribeAll } from '../lib/sockets.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';
import { until } from '../lib/until.ts';
import { MONEY_IN, moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { uuid } from '../upstream/data.ts';

const PER_SECOND = 1_000;
const SECONDS = 10;
const WARM_UP_SECONDS = 2;
const CLIENTS = 10;
const SUBSCRIBERS_PER_CLIENT = 10;
const DRAIN_TIMEOUT_MS = 20_000;

interface Sent {
  readonly at: number;
  /** Which of the client's subscribers have it, a bit for each. */
  received: number;
}

export async function w5(): Promise<Section> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const redis = stack.use(await startRedis());
  const stub = stack.use(await startStub());
  const clients = Array.from({ length: CLIENTS }, (_, index) => uuid('merchant', index));
  const server = stack.use(
    await startServer(
      gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, env: { REDIS_URL: redis.url } }),
    ),
  );

  // What this process collects of its own garbage is time in which it does not read events: one small object for each
  // event, and room for all delays from the start.
  const events = new Map<string, Sent>();
  const delaysMs = new Float64Array(2 * PER_SECOND * SECONDS * SUBSCRIBERS_PER_CLIENT);
  let deliveries = 0;
  const subscribers = await subscribeAll(CLIENTS * SUBSCRIBERS_PER_CLIENT, (index) => ({
    url: server.url,
    authorization: credentials(1, clients[index % CLIENTS])[0] ?? '',
    query: MONEY_IN,
    onNext: (payload) => {
      const id = /"id":"([^"]+)"/.exec(payload)?.[1] ?? '';
      const sent = events.get(id);
      if (sent === undefined) return;
      const subscriber = 1 << Math.floor(index / CLIENTS);
      if ((sent.received & subscriber) !== 0) throw new Error(`Event ${id} came twice.`);
      sent.received |= subscriber;
      delaysMs[deliveries] = performance.now() - sent.at;
      deliveries += 1;
    },
  }));
  const paths = clients.map(moneyInPath);
  const pool = new Pool(server.url, { connections: 64 });
  stack.defer(() => pool.close());
  const post = async (index: number): Promise<void> => {
    const { id, body } = moneyIn(uuid('owner', 0));
    events.set(id, { at: performance.now(), received: 0 });
    const answer = await pool.request({
      method: 'POST',
      path: paths[index % CLIENTS] ?? '',
      headers: { 'content-type': 'application/json' },
      body,
    });
    await answer.body.dump();
    if (answer.statusCode !== 201) throw new Error(`A webhook was answered with ${answer.statusCode}.`);
  };

  const appendMs: number[] = [];
  const append = async (): Promise<void> => {
    const { body } = moneyIn(uuid('owner', 0));
    const start = performance.now();
    await redis.admin.xadd('bench', '*', 'event', body);
    appendMs.push(performance.now() - start);
  };

  await atRate(WARM_UP_SECONDS, append);
  await atRate(WARM_UP_SECONDS, post);
  await until(() => deliveries >= events.size * SUBSCRIBERS_PER_CLIENT, DRAIN_TIMEOUT_MS, 'the warm-up');
  appendMs.length = 0;
  await atRate(SECONDS / 2, append);
  deliveries = 0;
  events.clear();
  globalThis.gc?.();
  const cpuBefore = server.cpuMs();
  await atRate(SECONDS, post);
  const expected = events.size * SUBSCRIBERS_PER_CLIENT;
  const complete = await until(() => deliveries >= expected, DRAIN_TIMEOUT_MS).then(
    () => true,
    () => false,
  );
  const cpuMs = (server.cpuMs() - cpuBefore) / events.size;
  await atRate(SECONDS / 2, append);
  for (const subscriber of subscribers) subscriber.close();

  const delays = delaysMs.subarray(0, deliveries);
  const over = percentile(delays, 0.99) - percentile(appendMs, 0.99);
  const row = (what: string, values: Iterable<number>): string[] => [
    what,
    ...[0.5, 0.99, 1].map((share) => number(percentile(values, share))),
  ];
  return {
    title: 'W5, ingest',
    method: `${number(PER_SECOND)} webhooks a second for ${SECONDS} s into Redis with \`appendfsync always\`; ${CLIENTS} clients with ${SUBSCRIBERS_PER_CLIENT} subscribers each. Redis' own append is an XADD of the same body at the same rate, before and after. ${number(deliveries)} of ${number(expected)} deliveries arrived, none twice; ${number(cpuMs)} ms CPU for each webhook with its ${SUBSCRIBERS_PER_CLIENT} deliveries.`,
    columns: ['', 'p50 ms', 'p99 ms', 'max ms'],
    rows: [row('Redis’ own append', appendMs), row('webhook to subscriber', delays)],
    goals: [
      {
        work: 'W5',
        what: 'deliveries lost',
        limit: 0,
        reached: complete ? 0 : expected - deliveries,
        unit: '',
      },
      {
        work: 'W5',
        what: 'webhook to subscriber, p99 over Redis’ own',
        limit: 20,
        reached: over,
        unit: ' ms',
      },
    ],
  };
}

/** Starts `PER_SECOND` calls a second, however long each takes, and waits for all of them. */
async function atRate(seconds: number, call: (index: number) => Promise<void>): Promise<void> {
  const calls: Promise<void>[] = [];
  const start = performance.now();
  while (calls.length < PER_SECOND * seconds) {
    const due = Math.min(PER_SECOND * seconds, ((performance.now() - start) / 1_000) * PER_SECOND);
    while (calls.length < due) calls.push(call(calls.length));
    await pause(1);
  }
  await Promise.all(calls);
}
