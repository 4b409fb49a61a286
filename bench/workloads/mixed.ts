import { beside, type ContenderName, EARLIER, withContenders } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { client, join, PAYMENT_DONE, payment, transaction } from '../lib/documents.ts';
import { type Measured, measureTogether, pooled, type Trial } from '../lib/rounds.ts';
import { cpuRatio, number, type Section, spread, times } from '../lib/section.ts';

const CONTENDERS: readonly ContenderName[] = [
  'baseline',
  'baseline, banks cached',
  'Pasarela',
  'Mercurius + JIT',
];

const CACHED = 'baseline, banks cached';
const COMMON = { credentials: credentials(1_000), connections: 8, rounds: 5, roundMs: 500 };

/** The works, in the order in which each round asks for them. The hand-written endpoints and Mercurius keep no record of payments, and make none. */
const TRIALS: readonly (Trial & { readonly name: string })[] = [
  { ...COMMON, name: 'W1', work: join(100) },
  { ...COMMON, name: 'W1c', work: join(100), credentials: credentials(1), connections: 32 },
  { ...COMMON, name: 'W2', work: client, warmUp: 4_000, awake: true },
  { ...COMMON, name: 'W3', work: transaction, warmUp: 4_000 },
  { ...COMMON, name: 'payment', work: payment, expects: PAYMENT_DONE, only: ['Pasarela', EARLIER] },
];

/** How often all of it is measured, with new processes each time. */
const GENERATIONS = 2;

/** W1, W1c, W2, W3 and payments by the same processes in turn: V8 compiles each of them for what all of them do. */
export async function w21(): Promise<Section> {
  const runs: (readonly (readonly Measured[])[])[] = [];
  for (let generation = 0; generation < GENERATIONS; generation += 1) {
    runs.push(
      await withContenders([...CONTENDERS, ...beside()], (contenders, stub) =>
        measureTogether(TRIALS, contenders, stub),
      ),
    );
  }
  const results = TRIALS.map(({ name }, index) => ({
    name,
    measured: pooled(runs.map((run) => run[index] ?? [])),
  }));
  return {
    title: 'W21, mixed traffic',
    method:
      'W1, W1c, W2, W3 and payments (`createInternalTransaction`, each with a key of its own) by the same processes, in turn within each round. A thousand credentials in turn, 8 requests at a time; W1c has one credential, 32 at a time. Only the gateway makes payments, and writes each down in SQLite before and after it is sent.',
    columns: [
      ...['work', 'server', 'CPU ms / request', '× baseline', '× banks cached', '× Mercurius', 'p50 ms'],
    ],
    rows: results.flatMap(({ name, measured }) => rowsOf(name, measured)),
    goals: goalsOf(results.map(({ measured }) => measured)),
  };
}

const rowsOf = (work: string, results: readonly Measured[]): string[][] =>
  results.map((result) => [
    work,
    result.name,
    spread(result.cpuMs),
    ...[CONTENDERS[0], CACHED, 'Mercurius + JIT'].map((other) =>
      results.some(({ name }) => name === other) ? times(cpuRatio(results, result.name, other ?? '')) : '',
    ),
    number(result.latencyP50Ms.median),
  ]);

const goalsOf = ([
  joins = [],
  identical = [],
  clients = [],
]: readonly (readonly Measured[])[]): Section['goals'] => [
  {
    work: 'W21',
    what: 'the join, CPU, × baseline with its banks cached',
    limit: 1.25,
    reached: cpuRatio(joins, 'Pasarela', CACHED),
    unit: '',
  },
  {
    work: 'W21',
    what: 'the join for identical callers, CPU, × baseline',
    limit: 0.5,
    reached: cpuRatio(identical, 'Pasarela', 'baseline'),
    unit: '',
  },
  {
    work: 'W21',
    what: 'the smallest query, CPU, × Mercurius + JIT',
    limit: 1.8,
    reached: cpuRatio(clients, 'Pasarela', 'Mercurius + JIT'),
    unit: '',
  },
];
