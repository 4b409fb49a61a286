import { Pool } from 'undici';
import { startRedis } from '../../test/helpers/redis.ts';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { startServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';
import { moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { uuid } from '../upstream/data.ts';

const WARM_UP_MS = 2_000;
const MEASURED_MS = 10_000;
const CLIENTS = 10;
/** Deliveries under way at once: enough that several share a sync of the disk. */
const LANES = 64;

/** How many webhooks a process acknowledges in a second, each of them on disk, when as many come as it takes. */
export async function w18(): Promise<Section> {
  return {
    title: 'W18, webhooks acknowledged',
    method: `${LANES} deliveries under way at once for ${MEASURED_MS / 1_000} s, of ${CLIENTS} clients, nobody subscribed. Each is answered 201 once it is synced to disk: by SQLite, or by a Redis of its own with \`appendfsync always\`. A core's share is what comes for each second of CPU of the gateway, Redis' own not counted.`,
    columns: ['store', 'a second', 'a second and core', 'CPU ms for each', 'p50 ms', 'p99 ms', 'resident MB'],
    rows: [await measure('SQLite'), await measure('Redis')],
    goals: [],
  };
}

async function measure(store: 'SQLite' | 'Redis'): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const stub = stack.use(await startStub());
  const env: Record<string, string> = {};
  if (store === 'Redis') env['REDIS_URL'] = stack.use(await startRedis()).url;
  const server = stack.use(
    await startServer(gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, env })),
  );
  const pool = new Pool(server.url, { connections: LANES });
  stack.defer(() => pool.close());
  const paths = Array.from({ length: CLIENTS }, (_, index) => moneyInPath(uuid('merchant', index)));

  const deliver = async (until: number, took: number[], lane: number): Promise<void> => {
    for (let turn = lane; performance.now() < until; turn += 1) {
      const { body } = moneyIn(uuid('owner', 0));
      const start = performance.now();
      const answer = await pool.request({
        method: 'POST',
        path: paths[turn % CLIENTS] ?? '',
        headers: { 'content-type': 'application/json' },
        body,
      });
      await answer.body.dump();
      if (answer.statusCode !== 201) throw new Error(`A webhook was answered with ${answer.statusCode}.`);
      took.push(performance.now() - start);
    }
  };
  const run = async (ms: number): Promise<readonly number[]> => {
    const took: number[] = [];
    const until = performance.now() + ms;
    await Promise.all(Array.from({ length: LANES }, (_, lane) => deliver(until, took, lane)));
    return took;
  };
  await run(WARM_UP_MS);
  const [cpuBefore, start] = [server.cpuMs(), performance.now()];
  const took = await run(MEASURED_MS);
  const seconds = (performance.now() - start) / 1_000;
  const cpuMs = server.cpuMs() - cpuBefore;
  return [
    store,
    number(took.length / seconds),
    number((took.length / cpuMs) * 1_000),
    number(cpuMs / took.length),
    number(percentile(took, 0.5)),
    number(percentile(took, 0.99)),
    number(server.rssBytes() / 1e6),
  ];
}
