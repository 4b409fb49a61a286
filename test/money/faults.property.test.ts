import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { MoneyResult } from '../../src/money/call.ts';
import { createMoney } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { type MoneyRecords, RecordsUnavailableError } from '../../src/money/record.ts';
import { startRedis } from '../helpers/redis.ts';
import { fastAmbient, MUTATIONS, order } from './orders.ts';
import { type Fault, startUpstream, type Upstream } from './upstream.ts';

const RUNS = 150;
const SEED = 20_260_401;
const CALL_MS = 30_000;
const FACTOR = 60;

type Step = 'claim' | 'markSent' | 'answer' | 'release' | 'renew';

/** What befalls one step of the store: not reached, or done with its reply lost. */
interface StoreFault {
  readonly step: Step;
  readonly done: boolean;
}

const SILENT: Fault[] = ['hang-before', 'hang-after'];
const fault = fc.constantFrom<Fault>(
  'reset-before',
  'reset-after',
  ...SILENT,
  'truncate-after',
  'garbage-after',
  'no-transaction-after',
  '502-after',
  'other-amount-after',
  ...[400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 503].flatMap((page) => [
    { page, served: false },
    { page, served: true },
  ]),
);
/** The service's own refusals, which are true of a first request alone. */
const refusal = fc.constantFrom<Fault>(400, 401, 403, 404, 409, 429);
const scenario = fc.record({
  mutation: fc.constantFrom(...MUTATIONS),
  amount: fc.constantFrom('10.00', '10.00', '0'),
  faults: fc
    .tuple(fc.option(refusal, { freq: 2 }), fc.array(fault, { maxLength: 5 }))
    .map(([first, others]) => (first === null ? others : [first, ...others])),
  storeFaults: fc.array(
    fc.record({
      step: fc.constantFrom<Step>('claim', 'markSent', 'answer', 'release', 'renew'),
      done: fc.boolean(),
    }),
    { maxLength: 2 },
  ),
  // Rounds one after the other, each of calls at once; each call through one of two gateways.
  rounds: fc.array(fc.array(fc.nat(1), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
});

describe.each(['node:sqlite', 'Redis'])('any faults of upstream and store, over %s', (kind) => {
  let cleanup: AsyncDisposableStack;
  let stores: [MoneyRecords, MoneyRecords];
  let upstream: Upstream;
  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    const redisUrl = kind === 'Redis' ? cleanup.use(await startRedis()).url : undefined;
    upstream = cleanup.use(await startUpstream());
    const open = async (): Promise<MoneyRecords> => {
      const records = await openMoneyRecords({ redisUrl, dataDir, logger });
      cleanup.defer(() => records.stop());
      return records;
    };
    stores = [await open(), await open()];
  });
  afterAll(() => cleanup.disposeAsync());

  it(`move money at most once, and are told as they are, in ${RUNS} runs`, async () => {
    const count = { done: 0, refused: 0, unknown: 0, replayed: 0, 'nothing-moved': 0, other: 0, thrown: 0 };
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async ({ mutation, amount, faults, storeFaults, rounds }) => {
        runs += 1;
        const key = `${kind}-${runs}`;
        upstream.faults.splice(0, Infinity, ...faults);
        const open = [...storeFaults];
        const ambient = fastAmbient(FACTOR);
        const gateways = stores.map((records) =>
          createMoney({ records: faulty(records, open), logger, ambient, leaseMs: 2_000 }),
        );
        const results: (MoneyResult | 'thrown')[] = [];
        for (const round of rounds) {
          const calls = round.map((gateway) =>
            gateways[gateway]
              ?.execute(order(upstream.url, mutation, key, { amount, timeoutMs: 60 }), {
                deadline: ambient.now() + CALL_MS,
                signal: new AbortController().signal,
              })
              .catch((error: unknown) => {
                if (error instanceof RecordsUnavailableError) return 'thrown' as const;
                throw error;
              }),
          );
          for (const result of await Promise.all(calls)) if (result !== undefined) results.push(result);
          honest(results, upstream.ledger.get(key) ?? 0);
        }
        await Promise.all(gateways.map((gateway) => gateway.stop()));

        for (const result of results) {
          if (result === 'thrown') count.thrown += 1;
          else if ('replayed' in result && result.replayed) count.replayed += 1;
          else if (result.kind in count) count[result.kind as keyof typeof count] += 1;
          else count.other += 1;
        }
      }),
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
    console.info(`${kind}:`, count);
    for (const told of ['done', 'refused', 'unknown', 'replayed', 'nothing-moved', 'thrown'] as const) {
      expect(count[told], told).toBeGreaterThan(0);
    }
  });
});

/** After every round, what all callers so far were told must agree with the ledger. */
function honest(results: (MoneyResult | 'thrown')[], moved: number): void {
  const kinds = results.map((result) => (result === 'thrown' ? result : result.kind));
  expect(moved).toBeLessThanOrEqual(1);
  if (kinds.includes('done')) expect(moved).toBe(1);
  if (kinds.includes('refused')) expect(moved).toBe(0);
  // Not all may have been told that nothing happened.
  if (moved === 1) expect(kinds.some((kind) => kind === 'done' || kind === 'unknown')).toBe(true);
}

/** A store at which the given faults befall the steps they name, each once. */
function faulty(records: MoneyRecords, faults: StoreFault[]): MoneyRecords {
  return new Proxy(records, {
    get:
      (target, step: keyof MoneyRecords) =>
      async (...args: never[]) => {
        const at = faults.findIndex((fault) => fault.step === step);
        const [befalls] = at === -1 ? [] : faults.splice(at, 1);
        // The arguments are passed on as they came.
        const run = target[step] as (...args: never[]) => Promise<unknown>;
        if (befalls === undefined) return run(...args);
        if (befalls.done) await run(...args);
        throw new RecordsUnavailableError(step, new Error('fault'));
      },
  });
}
