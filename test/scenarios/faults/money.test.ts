import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../../packages/sandbox/src/index.ts';
import { recordName } from '../../../src/money/intent.ts';
import { control } from '../../helpers/gateway.ts';
import { DURABLE, startRedis } from '../../helpers/redis.ts';
import { type Asked, payStubbornly } from './app.ts';
import { type Cell, LIFETIME_SECONDS, startCell } from './cell.ts';
import { lies } from './judge.ts';
import { inject, MUTATIONS, movementsOf, type Payable, payable } from './payments.ts';
import { drawRun, type Run, STRATA, UPSTREAM_TIMEOUT_MS } from './scenario.ts';

const SEED = Number(process.env['FAULTS_SEED'] ?? 20_261_120);
/** Rounds of four runs, one of each mutation. */
const ROUNDS = Number(process.env['FAULTS_ROUNDS'] ?? 66);
/** One round alone, to look at it. */
const ONLY = process.env['FAULTS_ROUND'];
/** Gateways at work at the same time. */
const CELLS = 2;

/** Long enough for a few repeats, short enough to run out under some of the faults. */
const OPERATION_TIMEOUT_MS = 2_000;
const LEASE_MS = 300;
/** Over each store. */
const KILLS_WANTED = 50;
/** Rounds that are played however long they take; the others as far as the time goes, in milliseconds. */
const ROUNDS_AT_LEAST = 6;
const TIME_FOR_ROUNDS_MS = 150_000;

interface Outcome {
  readonly round: number;
  readonly run: Run;
  readonly payment: Payable;
  readonly asked: readonly Asked[];
  readonly kill: string | undefined;
}

describe.concurrent.each(['node:sqlite', 'Redis'] as const)('money over %s, under faults', (store) => {
  let cleanup: AsyncDisposableStack;
  let cells: readonly Cell[];
  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    const redisUrl =
      store === 'Redis' ? cleanup.use(await startRedis(DURABLE, undefined, LIFETIME_SECONDS)).url : undefined;
    const config = {
      upstreamTimeoutMs: UPSTREAM_TIMEOUT_MS,
      operationTimeoutMs: OPERATION_TIMEOUT_MS,
      upstreamReport: true,
    };
    const starting = Array.from({ length: ONLY === undefined ? CELLS : 1 }, async (_, cell) =>
      cleanup.use(await startCell(cell + 1, { redisUrl, config, leaseMs: LEASE_MS })),
    );
    cells = await Promise.all(starting);
  });
  afterAll(() => cleanup.disposeAsync());

  const rounds = ONLY === undefined ? Array.from({ length: ROUNDS }, (_, round) => round) : [Number(ONLY)];

  it(`moves at most once, and is told as it was, in ${rounds.length} rounds from seed ${SEED}`, {
    timeout: 390_000,
  }, async () => {
    const waiting = inTime(rounds);
    const played = await Promise.all(
      cells.map(async (cell) => {
        const own: Outcome[] = [];
        for (const round of waiting) own.push(...(await playRound(cell, round)));
        await nothingIsUnderWay(cell);
        return judged(cell, own);
      }),
    );
    const outcomes = played.flat();
    const counts = count(outcomes, cells);
    console.info(`${store}, seed ${SEED}, ${outcomes.length} runs\n${table(counts)}`);
    expect(outcomes.flatMap(({ lies }) => lies)).toEqual([]);
    // What takes turns has had all of them.
    if (outcomes.length < STRATA * MUTATIONS.length) return;
    for (const mutation of MUTATIONS) {
      for (const [what, times] of Object.entries(counts[mutation] ?? {})) {
        expect(times, `${what} of ${mutation}`).toBeGreaterThan(0);
      }
    }
    expect(cells.flatMap(({ struck }) => struck).length).toBeGreaterThanOrEqual(KILLS_WANTED);
  });
});

/** The rounds that there is time for. A machine that is busy plays fewer of them, and none of them in less time. */
function* inTime(rounds: readonly number[]): Generator<number> {
  const start = performance.now();
  for (const [played, round] of rounds.entries()) {
    if (played >= ROUNDS_AT_LEAST && performance.now() - start > TIME_FOR_ROUNDS_MS) return;
    yield round;
  }
}

/** Four payments at once, one of each mutation, in a gateway that may die under them. */
async function playRound(cell: Cell, round: number): Promise<Outcome[]> {
  const { sandbox } = cell;
  await control(sandbox, 'DELETE', '/sandbox/faults');
  const planned = await Promise.all(
    MUTATIONS.map(async (mutation) => {
      const run = drawRun(mutation, SEED, round);
      const payment = await payable(sandbox, mutation, `round ${round} ${mutation}`, run.refusable);
      const { path } = payment;
      for (const fault of run.faults) await inject(sandbox, { method: 'POST', path }, fault, 1);
      const read = { method: 'GET', path: path.replace(/\/refund$/, '') };
      for (const fault of run.readFaults) await inject(sandbox, read, fault, 1);
      return { run, payment, kill: run.kill && { ...run.kill, ...placeOf(sandbox, payment, round) } };
    }),
  );
  await cell.arm(planned.map(({ kill }) => kill).filter((kill) => kill !== undefined));
  return Promise.all(
    planned.map(async ({ run, payment, kill }) => ({
      round,
      run,
      payment,
      asked: await payStubbornly(cell, payment, run.calls),
      kill: kill?.name,
    })),
  );
}

/** Where a kill strikes that is meant for one payment. */
function placeOf({ clientId }: Sandbox, { mutation, input, path }: Payable, round: number) {
  const key = String(input['idempotencyKey']);
  const { hash } = recordName({ clientId, customerId: undefined, key });
  return { name: `${mutation}-${round}`, hash, path };
}

/** Resolves once the upstream has performed whatever it was asked before, however long a fault has held that up. */
async function nothingIsUnderWay({ sandbox }: Cell): Promise<void> {
  await control(sandbox, 'DELETE', '/sandbox/faults');
  await inject(sandbox, { method: 'GET', path: '/v1/banks' }, { delayMs: 1_500 }, 1);
  await control(sandbox, 'GET', '/v1/banks');
}

async function judged({ sandbox }: Cell, outcomes: readonly Outcome[]) {
  return Promise.all(
    outcomes.map(async (outcome) => {
      const { run, payment, asked, round } = outcome;
      const found = lies(run, asked, await movementsOf(sandbox, payment.tag));
      const again = `FAULTS_SEED=${SEED} FAULTS_ROUND=${round} npx vitest run --project integration test/scenarios/faults/money.test.ts`;
      const story = JSON.stringify({ run, asked });
      return { ...outcome, lies: found.map((lie) => `${payment.tag} ${lie}; again: ${again}; ${story}`) };
    }),
  );
}

type Counts = Record<
  string,
  Record<'runs' | 'done' | 'refused' | 'unknown' | 'replayed' | 'nothing moved' | 'lost' | 'killed', number>
>;

/** How many runs were told each thing at least once, by mutation; and how many ended the process. */
function count(outcomes: readonly Outcome[], cells: readonly Cell[]): Counts {
  const struck = new Set(cells.flatMap((cell) => cell.struck));
  return Object.fromEntries(
    MUTATIONS.map((mutation) => {
      const runs = outcomes.filter(({ run }) => run.mutation === mutation);
      const told = (matches: (told: Asked['told'][number]) => boolean): number =>
        runs.filter(({ asked }) => asked.some((times) => times.told.some(matches))).length;
      return [
        mutation,
        {
          runs: runs.length,
          done: told(({ kind }) => kind === 'done'),
          refused: told(({ kind }) => kind === 'refused'),
          unknown: told(({ kind }) => kind === 'unknown'),
          replayed: told((one) => one.kind === 'done' && one.replayed),
          'nothing moved': told(({ kind }) => kind === 'nothing-moved'),
          lost: told(({ kind }) => kind === 'lost'),
          killed: runs.filter(({ kill }) => kill !== undefined && struck.has(kill)).length,
        },
      ];
    }),
  );
}

function table(counts: Counts): string {
  return Object.entries(counts)
    .map(([mutation, row]) => {
      const cells = Object.entries(row).map(([what, times]) => `${times} ${what}`);
      return `  ${mutation.padEnd(26)} ${cells.join(', ')}`;
    })
    .join('\n');
}
