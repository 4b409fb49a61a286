import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import { type ClientLists, createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import type { Loader } from '../../../src/upstream/lists/loader.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { startUpstream, type Upstream } from '../../helpers/http-stub.ts';
import { type Change, ChangingList, type Paging, type Snapshot } from './changing-list.ts';

const RUNS = 1_500;
const silent = silentLogger;

type Question =
  | { readonly kind: 'window'; readonly offset: number; readonly limit: number }
  | { readonly kind: 'find' | 'where'; readonly numbers: readonly number[] };

interface Operation {
  readonly questions: readonly Question[];
  /** How long after the one before, in milliseconds. */
  readonly after: number;
}

const number = fc.nat({ max: 59 });
const question: fc.Arbitrary<Question> = fc.oneof(
  fc.record({
    kind: fc.constant('window' as const),
    offset: fc.nat({ max: 50 }),
    limit: fc.integer({ min: 1, max: 30 }),
  }),
  fc.record({
    kind: fc.constant('find' as const),
    numbers: fc.array(number, { minLength: 1, maxLength: 6 }),
  }),
  fc.record({
    kind: fc.constant('where' as const),
    numbers: fc.array(number, { minLength: 1, maxLength: 4 }),
  }),
);
const operation: fc.Arbitrary<Operation> = fc.record({
  questions: fc.array(question, { minLength: 1, maxLength: 3 }),
  after: fc.constantFrom(0, 500, 3_000, 20_000),
});
const at = fc.nat({ max: 1_000 });
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 12, arbitrary: fc.constant({ kind: 'nothing' } as const) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('append' as const, 'prepend' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('reverse' as const, 'replace first by last' as const) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'insert' as const,
        'remove' as const,
        'update' as const,
        'rotate' as const,
        'move to head' as const,
      ),
      at,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cap' as const), at }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'toggle paging' } as const) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('lie' as const), by: fc.integer({ min: -9, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('repeat' as const), at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('fail' as const, 'garbage' as const) }) },
);
const paging: fc.Arbitrary<Paging> = fc.record({
  firstPage: fc.constantFrom(0 as const, 1 as const),
  defaultSize: fc.integer({ min: 2, max: 20 }),
  cap: fc.integer({ min: 2, max: 25 }),
  honours: fc.constantFrom('pages' as const, 'pages' as const, 'own size' as const, 'whole' as const),
});
const scenario = fc.record({
  size: fc.nat({ max: 60 }),
  owners: fc.integer({ min: 1, max: 30 }),
  paging,
  script: fc.array(change, { maxLength: 120 }),
  operations: fc.array(operation, { minLength: 1, maxLength: 4 }),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

/** An answer, or that there was none. */
const outcomeOf = async <T>(answer: () => T | Promise<T>): Promise<{ readonly value: T } | UpstreamError> => {
  try {
    return { value: await answer() };
  } catch (error) {
    if (error instanceof UpstreamError) return error;
    throw error;
  }
};

describe('a list that grows, shrinks, reorders, repages, lies and fails between any two calls', () => {
  let upstream: Upstream;
  let list: ChangingList;

  beforeAll(async () => {
    upstream = await startUpstream((request, response) => list.answer(request, response), {
      operationTimeoutMs: 3_600_000,
    });
  });
  afterAll(() => upstream[Symbol.asyncDispose]());

  /**
   * Checks one answer.
   *
   * @param during the list as it was during the operation.
   * @param believed the list as it was at any moment that the index may be as old as.
   */
  function check(
    question: Question,
    answer: unknown,
    during: readonly Snapshot[],
    believed: readonly Snapshot[],
  ) {
    const isOf = (item: Account) =>
      during.some((snapshot) => snapshot.some((known) => isDeepStrictEqual(known, item)));
    if (question.kind === 'window') {
      const { items } = answer as { items: readonly Account[] };
      for (const item of items) expect(isOf(item), `${item.id} was never like this`).toBe(true);
      expect(new Set(items.map(({ id }) => id)).size).toBe(items.length);
      return;
    }
    if (question.kind === 'find') {
      for (const [index, found] of (answer as readonly (Account | null)[]).entries()) {
        const id = `account-${question.numbers[index]}`;
        if (found === null) {
          const isEverywhere = believed.every((snapshot) => snapshot.some((item) => item.id === id));
          expect(isEverywhere, `${id} was there all the time, and was not found`).toBe(false);
        } else {
          expect(found.id).toBe(id);
          expect(isOf(found), `${id} was never like this`).toBe(true);
        }
      }
      return;
    }
    for (const [index, found] of (answer as readonly (readonly Account[])[]).entries()) {
      const owner = `owner-${question.numbers[index]}`;
      for (const item of found) {
        expect(item.ownerId).toBe(owner);
        expect(isOf(item), `${item.id} was never like this`).toBe(true);
      }
      const shown = new Set(found.map(({ id }) => id));
      expect(shown.size).toBe(found.length);
      const [first] = believed;
      for (const { id, ownerId } of first ?? []) {
        if (ownerId !== owner || shown.has(id)) continue;
        const isEverywhere = believed.every((snapshot) => snapshot.some((item) => item.id === id));
        expect(isEverywhere, `${id} of ${owner} was there all the time, and is not shown`).toBe(false);
      }
    }
  }

  const ask = (loader: Loader<Account>, question: Question): Promise<unknown> =>
    question.kind === 'window'
      ? Promise.resolve(loader.window(question.offset, question.limit))
      : Promise.all(
          question.numbers.map((wanted) =>
            question.kind === 'find'
              ? loader.find('id', `account-${wanted}`)
              : loader.where('ownerId', `owner-${wanted}`),
          ),
        );

  async function run({ size, owners, paging: rule, script, operations }: Scenario, maxAgeMs: number) {
    list = new ChangingList(size, owners, rule, script);
    let now = 0;
    const lists: ClientLists = createClientLists({
      maxAgeMs,
      now: () => now,
      logger: silent,
      onOutdated: () => undefined,
    });
    /** Where the snapshots stood at each moment. */
    const moments: { readonly at: number; readonly snapshot: number }[] = [];
    let answered = 0;
    for (const { questions, after } of operations) {
      now += after;
      const start = list.snapshots.length - 1;
      moments.push({ at: now, snapshot: start });
      // Where the index may have been confirmed by its ends, it may be as old as twelve of its ages.
      const oldest = moments.find((moment) => moment.at >= now - 12 * maxAgeMs)?.snapshot ?? start;
      const loader = createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists });
      const outcomes = await Promise.all(questions.map((asked) => outcomeOf(() => ask(loader, asked))));
      for (const [index, outcome] of outcomes.entries()) {
        const asked = questions[index];
        if (outcome instanceof UpstreamError || asked === undefined) continue;
        answered += 1;
        check(asked, outcome.value, list.snapshots.slice(start), list.snapshots.slice(oldest));
      }
    }
    return answered;
  }

  it.each([
    ['of which nothing is believed without asking', 0],
    ['of which what was seen is believed for a second', 1_000],
  ])(
    '%s, is shown as it was at some moment of the operation, or not at all',
    async (_, maxAgeMs) => {
      let answered = 0;
      await fc.assert(
        fc.asyncProperty(scenario, async (given) => {
          answered += await run(given, maxAgeMs);
        }),
        { numRuns: RUNS, seed: 20_261_121 + maxAgeMs },
      );
      // An implementation that only ever failed would pass as well.
      expect(answered).toBeGreaterThan(RUNS);
    },
    600_000,
  );

  it('that stays as it is answers every question', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const asked = given.operations.flatMap(({ questions }) => questions).length;
        expect(await run({ ...given, script: [] }, 1_000)).toBe(asked);
      }),
      { numRuns: 500, seed: 3 },
    );
  }, 300_000);
});
