import { beside, type ContenderName, withContenders } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { client, join, transaction, type Work } from '../lib/documents.ts';
import { load } from '../lib/load.ts';
import { type Measured, measure, pooled, type Trial } from '../lib/rounds.ts';
import {
  cpuRatio,
  HTTP_COLUMNS,
  httpRows,
  named,
  number,
  type Section,
  spread,
  times,
} from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import type { Stub } from '../lib/stub.ts';
import { BANKS_PATH } from '../upstream/data.ts';

const ALL: readonly ContenderName[] = [
  'baseline',
  'baseline, banks cached',
  'Pasarela',
  'Mercurius + JIT',
  'Yoga',
  'Apollo Server',
];

const DISTINCT = credentials(1_000);
const DEFAULTS = { credentials: DISTINCT, connections: 8, rounds: 4, roundMs: 600 };
/** How often a work is measured, with new processes each time: one may be a tenth dearer than the next for all its life. */
const GENERATIONS = 4;

async function trial(
  names: readonly ContenderName[],
  work: Work,
  changes: Partial<Trial> = {},
): Promise<readonly Measured[]> {
  const parts: (readonly Measured[])[] = [];
  for (let generation = 0; generation < GENERATIONS; generation += 1) {
    parts.push(
      await withContenders([...names, ...beside()], (contenders, stub) =>
        measure({ ...DEFAULTS, work, ...changes }, contenders, stub),
      ),
    );
  }
  return pooled(parts);
}

const cpuBars = (title: string, results: readonly Measured[]) => ({
  title: `${title}: CPU ms per request`,
  bars: results.map(({ name, cpuMs }) => ({ label: name, value: cpuMs.median })),
});

export async function w1(): Promise<Section> {
  const results = await trial(ALL, join(100));
  return {
    title: 'W1, the join',
    method:
      '100 instruments, each with bank, customer, and the customer’s account with balance. A thousand credentials in turn, 8 requests at a time.',
    columns: HTTP_COLUMNS,
    rows: httpRows(results),
    goals: [
      goal('W1', 'CPU, × baseline', 1.5, cpuRatio(results, 'Pasarela', 'baseline')),
      goal('W1', 'CPU, × Mercurius + JIT', 0.7, cpuRatio(results, 'Pasarela', 'Mercurius + JIT')),
    ],
    bars: cpuBars('W1, the join', results),
  };
}

export async function w1c(): Promise<Section> {
  const results = await trial(['baseline', 'Pasarela', 'Mercurius + JIT', 'Yoga'], join(100), {
    credentials: DISTINCT.slice(0, 1),
    connections: 32,
  });
  return {
    title: 'W1c, the join for identical callers',
    method: 'As W1, with one credential, 32 identical requests at a time.',
    columns: HTTP_COLUMNS,
    rows: httpRows(results),
    goals: [goal('W1c', 'CPU, × baseline', 0.5, cpuRatio(results, 'Pasarela', 'baseline'))],
    bars: cpuBars('W1c, identical callers', results),
  };
}

const LATENCY_MS = 50;

export async function w1l(): Promise<Section> {
  return await withContenders(ALL, async (contenders, stub) => {
    await stub.configure({ latencyMs: LATENCY_MS });
    const roundTripMs = await roundTrip(stub);
    const results = await measure(
      { ...DEFAULTS, work: join(100), connections: 4, rounds: 3, roundMs: 1_500 },
      contenders,
      stub,
    );
    const trips = (name: string) => named(results, name).latencyP50Ms.median / roundTripMs;
    return {
      title: 'W1L, the join with latency',
      method: `As W1, 4 requests at a time, with ${LATENCY_MS} ms of upstream latency: one call takes ${number(roundTripMs)} ms at the median.`,
      columns: ['server', 'p50 ms', 'round trips', 'REST calls'],
      rows: results.map(({ name, latencyP50Ms, calls }) => [
        name,
        spread(latencyP50Ms),
        trips(name).toFixed(2),
        number(calls.median),
      ]),
      goals: [goal('W1L', 'p50, upstream round trips', 1.3, trips('Pasarela'))],
      bars: {
        title: 'W1L, 50 ms upstream: p50 ms',
        bars: results.map(({ name, latencyP50Ms }) => ({ label: name, value: latencyP50Ms.median })),
      },
    };
  });
}

/** The median time of one REST call, in milliseconds. */
async function roundTrip(stub: Stub): Promise<number> {
  const { latenciesMs } = await load({
    url: stub.url,
    requests: 40,
    connections: 1,
    shot: () => ({ method: 'GET', path: BANKS_PATH, headers: {} }),
    check: () => {},
  });
  return percentile(latenciesMs, 0.5);
}

export async function w1n(): Promise<Section> {
  const names: readonly ContenderName[] = ['baseline', 'Pasarela', 'Mercurius + JIT'];
  const cells = await withContenders(names, async (contenders, stub) => {
    const measured: { instruments: number; customers: number; results: readonly Measured[] }[] = [];
    for (const customers of [20, 1_000]) {
      for (const instruments of [10, 100]) {
        await stub.configure({ customers });
        const results = await measure(
          { ...DEFAULTS, work: join(instruments), rounds: 5, roundMs: 1_000 },
          contenders,
          stub,
        );
        measured.push({ instruments, customers, results });
      }
    }
    return measured;
  });
  const callsOf = cells.map(({ results }) => named(results, 'Pasarela').calls.median);
  return {
    title: 'W1n, the join in four sizes',
    method:
      'As W1. The upstream shows its whole lists of customers and accounts on one page each. Where there is part of a call more, the minute for which the gateway believes a credential was over in the midst of a round.',
    columns: ['instruments', 'customers', 'server', 'CPU ms / request', '× baseline', 'REST calls'],
    rows: cells.flatMap(({ instruments, customers, results }) =>
      results.map(({ name, cpuMs, calls }) => [
        String(instruments),
        number(customers),
        name,
        spread(cpuMs),
        times(cpuRatio(results, name, 'baseline')),
        number(calls.median),
      ]),
    ),
    goals: [
      goal('W1n', 'REST calls, most in any size', 4, Math.max(...callsOf)),
      goal(
        'W1n',
        'CPU, × baseline, worst size',
        1.5,
        Math.max(...cells.map(({ results }) => cpuRatio(results, 'Pasarela', 'baseline'))),
      ),
    ],
  };
}

/** V8 compiles the gateway's part of a small query within some 10,000 requests; on a busy machine the rounds before the first hold half of that. */
const SMALL_WARM_UP = 4_000;

const small = async (
  id: string,
  title: string,
  method: string,
  work: Work,
  changes: Partial<Trial> = {},
): Promise<Section> => {
  const results = await trial(
    ALL.filter((name) => name !== 'baseline, banks cached'),
    work,
    { warmUp: SMALL_WARM_UP, ...changes },
  );
  return {
    title,
    method,
    columns: HTTP_COLUMNS,
    rows: httpRows(results),
    goals: [goal(id, 'CPU, × Mercurius + JIT', 2, cpuRatio(results, 'Pasarela', 'Mercurius + JIT'))],
    bars: cpuBars(title, results),
  };
};

export const w2 = (): Promise<Section> =>
  small(
    'W2',
    'W2, the smallest query',
    '`{ client { id } }`. Credentials and connections as in W1. It asks the upstream nothing, which leaves the load generator a core of its own to wait on: it does not sleep between answers, as waking it would be booked on the server.',
    client,
    { awake: true },
  );

export const w3 = (): Promise<Section> =>
  small(
    'W3',
    'W3, one transaction',
    'One transaction by its id. Credentials and connections as in W1.',
    transaction,
  );

const goal = (work: string, what: string, limit: number, reached: number) => ({
  work,
  what,
  limit,
  reached,
  unit: '',
});
