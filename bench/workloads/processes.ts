import { startRedis } from '../../test/helpers/redis.ts';
import { dataOf } from '../lib/answers.ts';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { client, join, type Work } from '../lib/documents.ts';
import { load } from '../lib/load.ts';
import { freePort } from '../lib/port.ts';
import { type RunningServer, startServer } from '../lib/process.ts';
import { number, type Section, spread, times } from '../lib/section.ts';
import { percentile, spreadOf } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';

const ROUNDS = 7;
const REQUESTS = 2_000;
/** The kernel spreads connections over the processes by their addresses: many, so that both get their half. */
const CONNECTIONS = 64;
const CREDENTIALS = credentials(100);

interface Entrant {
  readonly processes: readonly RunningServer[];
  readonly perSecond: number[];
  readonly cpuMs: number[];
  /** Share of the busiest process in the CPU time of all. */
  readonly share: number[];
}

/** One process against two on one port, with one Redis. */
export async function w8(): Promise<Section> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const stub = stack.use(await startStub());

  const start = async (count: number): Promise<Entrant> => {
    const port = await freePort();
    const processes: RunningServer[] = [];
    for (let index = 0; index < count; index += 1) {
      const folder = stack.use(await temporaryFolder());
      const env = { PORT: String(port), REUSE_PORT: 'true', REDIS_URL: redis.url };
      const program = gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, env });
      processes.push(stack.use(await startServer(program)));
    }
    return { processes, perSecond: [], cpuMs: [], share: [] };
  };
  const one = await start(1);
  const two = await start(2);

  const send = (work: Work, { processes: [first] }: Entrant, requests: number) =>
    load({
      url: first?.url ?? '',
      requests,
      connections: CONNECTIONS,
      shot: (index) => ({
        method: 'POST',
        path: '/graphql',
        headers: {
          authorization: CREDENTIALS[index % CREDENTIALS.length] ?? '',
          'content-type': 'application/json',
        },
        body: JSON.stringify({ query: work.query, variables: work.variables }),
      }),
      check: dataOf,
    });

  const work = join(100);
  for (const entrant of [one, two]) {
    await send(client, entrant, 1_000);
    await send(work, entrant, REQUESTS);
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const entrant of [one, two]) {
      const before = entrant.processes.map((process) => process.cpuMs());
      const { wallMs } = await send(work, entrant, REQUESTS);
      const used = entrant.processes.map((process, index) => process.cpuMs() - (before[index] ?? 0));
      const all = used.reduce((sum, ms) => sum + ms, 0);
      entrant.perSecond.push((REQUESTS / wallMs) * 1_000);
      entrant.cpuMs.push(all / REQUESTS);
      entrant.share.push(Math.max(...used) / all);
    }
  }

  const gain = percentile(
    two.perSecond.map((perSecond, round) => perSecond / (one.perSecond[round] ?? Number.NaN)),
    0.5,
  );
  const row = (what: string, { perSecond, cpuMs, share }: Entrant): string[] => [
    what,
    spread(spreadOf(perSecond)),
    spread(spreadOf(cpuMs)),
    `${number(percentile(share, 0.5) * 100)} %`,
  ];
  return {
    title: 'W8, two processes on one port',
    method: `The join of W1 over ${CONNECTIONS} connections, to one process and to two with \`REUSE_PORT\`, both with one Redis. The load and the upstream have no cores of their own: they take theirs from the processes that are measured. Two have ${times(gain)} the throughput of one.`,
    columns: ['', 'requests / s', 'CPU ms / request', 'busiest process'],
    rows: [row('one process', one), row('two processes', two)],
    goals: [],
  };
}
