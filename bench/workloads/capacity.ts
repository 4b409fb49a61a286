import { Pool } from 'undici';
import { type RedisServer, startRedis } from '../../test/helpers/redis.ts';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { PAYMENT_DONE, payment } from '../lib/documents.ts';
import { type RunningServer, startServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';
import { moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { uuid } from '../upstream/data.ts';

const WARM_UP_MS = 2_000;
const MEASURED_MS = 10_000;
const CLIENTS = 10;
/** Requests under way at once: enough that several share a sync of the disk. */
const LANES = 64;
const SECONDS = MEASURED_MS / 1_000;
const DISK =
  'SQLite syncs it, or a Redis of its own with `appendfsync always`. The rate of a core is what comes for each second of CPU of the gateway; that of Redis, and the memory that each leaves in it, stand beside it';

/** What the store needed itself, where it is a process of its own. */
interface StoreUse {
  readonly cpuMs: number;
  readonly bytes: number;
}

/** One request, of a number from 0, which throws where it is not answered as it should be. */
type Shoot = (pool: Pool, index: number) => Promise<void>;

/** How many webhooks a process acknowledges in a second, each of them on disk, when as many come as it takes. */
export async function w18(): Promise<Section> {
  const paths = Array.from({ length: CLIENTS }, (_, index) => moneyInPath(uuid('merchant', index)));
  return section({
    title: 'W18, webhooks acknowledged',
    method: `${LANES} deliveries under way at once for ${SECONDS} s, of ${CLIENTS} clients, nobody subscribed. Each is answered 201 once it is on disk: ${DISK}.`,
    async shoot(pool, index) {
      const { body } = moneyIn(uuid('owner', 0));
      const answer = await pool.request({
        method: 'POST',
        path: paths[index % CLIENTS] ?? '',
        headers: { 'content-type': 'application/json' },
        body,
      });
      await answer.body.dump();
      if (answer.statusCode !== 201) throw new Error(`A webhook was answered with ${answer.statusCode}.`);
    },
  });
}

/** How many payments a process makes in a second, the record of each on disk before and after it is sent. */
export async function w19(): Promise<Section> {
  const callers = credentials(CLIENTS);
  return section({
    title: 'W19, payments',
    method: `${LANES} \`createInternalTransaction\` under way at once for ${SECONDS} s, each with a key of its own, of ${CLIENTS} callers; the REST service answers at once. The record of a payment is on disk before it is sent, and its answer before it is told: ${DISK}.`,
    async shoot(pool, index) {
      const { query, variables } = payment();
      const answer = await pool.request({
        method: 'POST',
        path: '/graphql',
        headers: { 'content-type': 'application/json', authorization: callers[index % CLIENTS] ?? '' },
        body: JSON.stringify({ query, variables }),
      });
      const text = await answer.body.text();
      if (!text.includes(PAYMENT_DONE)) throw new Error(text.slice(0, 300));
    },
  });
}

async function section(work: {
  readonly title: string;
  readonly method: string;
  readonly shoot: Shoot;
}): Promise<Section> {
  const { title, method, shoot } = work;
  return {
    title,
    method,
    columns: [
      ...['store', 'a second', 'a second and core', 'CPU ms for each', 'p50 ms', 'p99 ms', 'resident MB'],
      ...['Redis: CPU ms for each', 'Redis: KiB for each'],
    ],
    rows: [await measure('SQLite', shoot), await measure('Redis', shoot)],
    goals: [],
  };
}

async function measure(store: 'SQLite' | 'Redis', shoot: Shoot): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const stub = stack.use(await startStub());
  const redis = store === 'Redis' ? stack.use(await startRedis()) : undefined;
  const env: Record<string, string> = redis === undefined ? {} : { REDIS_URL: redis.url };
  const server = stack.use(
    await startServer(gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, env })),
  );
  const pool = new Pool(server.url, { connections: LANES });
  stack.defer(() => pool.close());
  return [store, ...(await rates(server, pool, shoot, () => useOf(redis)))];
}

/** What a Redis has needed so far (INFO); undefined where there is none. */
async function useOf(redis: RedisServer | undefined): Promise<StoreUse | undefined> {
  if (redis === undefined) return undefined;
  const info = `${await redis.admin.info('cpu')}${await redis.admin.info('memory')}`;
  const read = (name: string) => Number(new RegExp(`^${name}:([0-9.]+)`, 'm').exec(info)?.[1]);
  return {
    cpuMs: (read('used_cpu_user') + read('used_cpu_sys')) * 1_000,
    bytes: read('used_memory') - read('mem_clients_normal'),
  };
}

async function rates(
  server: RunningServer,
  pool: Pool,
  shoot: Shoot,
  use: () => Promise<StoreUse | undefined>,
): Promise<readonly string[]> {
  const run = async (ms: number): Promise<readonly number[]> => {
    const took: number[] = [];
    const until = performance.now() + ms;
    const lane = async (first: number): Promise<void> => {
      for (let index = first; performance.now() < until; index += 1) {
        const start = performance.now();
        await shoot(pool, index);
        took.push(performance.now() - start);
      }
    };
    await Promise.all(Array.from({ length: LANES }, (_, index) => lane(index)));
    return took;
  };
  await run(WARM_UP_MS);
  const usedBefore = await use();
  const [cpuBefore, start] = [server.cpuMs(), performance.now()];
  const took = await run(MEASURED_MS);
  const seconds = (performance.now() - start) / 1_000;
  const cpuMs = server.cpuMs() - cpuBefore;
  const used = await use();
  const more = (name: keyof StoreUse) =>
    used === undefined || usedBefore === undefined
      ? undefined
      : (used[name] - usedBefore[name]) / took.length;
  const [storeCpuMs, storeBytes] = [more('cpuMs'), more('bytes')];
  return [
    number(took.length / seconds),
    number((took.length / cpuMs) * 1_000),
    number(cpuMs / took.length),
    number(percentile(took, 0.5)),
    number(percentile(took, 0.99)),
    number(server.rssBytes() / 1e6),
    storeCpuMs === undefined ? '' : number(storeCpuMs),
    storeBytes === undefined ? '' : number(storeBytes / 1_024),
  ];
}
