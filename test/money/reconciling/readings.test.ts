import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../../src/common/logger.ts';
import { systemAmbient } from '../../../src/money/ambient.ts';
import { firstReadings, nextReadings, type Readings } from '../../../src/money/reconciling/readings.ts';
import {
  BaselineLostError,
  type ReconcilingCalls,
  reconcileBalances,
} from '../../../src/money/reconciling/reconciler.ts';
import type { MoneyRecords } from '../../../src/money/record.ts';
import { STORES } from '../stores.ts';

const HOUR = 3_600_000;
const CLIENT = 'client';

const readingAt = (hour: number, missing: number, late: number) => ({
  ...{ from: hour * HOUR, to: hour * HOUR },
  balances: { missing, late },
});

it.each([
  ['goes on from the reading before where nothing is missing', 0, 0, ['second', 'third']],
  ['goes on from the reading before with all that was told', 100, 0, ['second', 'third']],
  ['stays at its beginning, told or not, while something may only be late', 100, 50, ['first', 'third']],
] as const)('a comparison %s', async (_what, missing, late, cursors) => {
  const kept: Readings = {
    baseline: readingAt(0, 0, 0),
    previous: readingAt(1, missing, late),
    cursors: ['first', 'second'],
    open: [],
  };
  const look = { cursor: 'third', reading: readingAt(2, missing, 0), accounts: [] };
  const gathered = { movements: [], open: [], amountUnknown: [] };
  const { readings, differences } = await nextReadings(kept, look, gathered, 0, () => undefined);
  expect(differences.map(({ account }) => account)).toEqual(missing === 0 ? [] : ['missing']);
  expect(readings.cursors).toEqual(cursors);
});

it('what is open is read before the first balances, as what is settled by then is in them', async () => {
  const asked: string[] = [];
  const stopping = new AbortController();
  const calls: ReconcilingCalls = {
    turn: () => undefined,
    async open() {
      asked.push('open');
      return ['one'];
    },
    async look() {
      asked.push('balances');
      return { cursor: 'first', reading: readingAt(0, 0, 0), accounts: [] };
    },
    gather: () => Promise.reject(new Error('Nothing has been read that could be compared.')),
  };
  const readings = {
    take: async () => ({ text: undefined }),
    async keep() {
      stopping.abort();
      return true;
    },
  };
  // As much of the record as a first reading asks for.
  const records = { readings } as unknown as MoneyRecords;
  const told = { onComparison: () => {}, onDifference: () => expect.unreachable() };
  const parts = { records, ambient: systemAmbient, logger, everyMs: HOUR, marginMs: 0, ...told };
  await reconcileBalances(new Map([[CLIENT, calls]]), parts, stopping.signal);
  expect(asked).toEqual(['open', 'balances']);
});

it.each(STORES.slice(0, 2))(
  'the readings of a process that ends while it compares are another’s at once, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const looking = Promise.withResolvers<void>();
    const never = () => Promise.reject(new Error('Nothing has been read that could be compared.'));
    const calls: ReconcilingCalls = {
      turn: () => undefined,
      open: async () => [],
      look: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          looking.resolve();
        }),
      gather: never,
    };
    const stopping = new AbortController();
    const told = { onComparison: () => expect.unreachable(), onDifference: () => expect.unreachable() };
    const parts = { records, ambient: systemAmbient, logger, everyMs: HOUR, marginMs: 0, ...told };
    const running = reconcileBalances(new Map([[CLIENT, calls]]), parts, stopping.signal);
    await looking.promise;
    expect(await records.readings.take(CLIENT, 'another', HOUR)).toBeUndefined();
    stopping.abort();
    await running;
    expect(await records.readings.take(CLIENT, 'another', HOUR)).toEqual({ text: undefined });
  },
);

it.each(STORES.slice(0, 2))(
  'what is still to be told is nobody else’s to tell, however soon the next comparison is due, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    let looks = 0;
    const calls: ReconcilingCalls = {
      turn: () => undefined,
      open: async () => [],
      async look() {
        looks += 1;
        return { cursor: `${looks}`, reading: readingAt(looks, looks === 1 ? 0 : 100, 0), accounts: [] };
      },
      gather: async () => ({ movements: [], open: [], amountUnknown: [] }),
    };
    const stopping = new AbortController();
    const taken = Promise.withResolvers<unknown>();
    const told = {
      onComparison: () => undefined,
      onDifference: () => taken.resolve(records.readings.take(CLIENT, 'another', HOUR)),
    };
    const parts = { records, ambient: systemAmbient, logger, everyMs: 0, marginMs: 0, ...told };
    const running = reconcileBalances(new Map([[CLIENT, calls]]), parts, stopping.signal);
    expect(await taken.promise).toBeUndefined();
    stopping.abort();
    await running;
  },
);

it.each(STORES.slice(0, 2))(
  'what one keeps from whom another has taken the readings counts for nothing, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const { readings, stop } = await store.open();
    cleanup.defer(() => stop());
    await readings.take(CLIENT, 'one', 0);
    expect(await readings.take(CLIENT, 'another', HOUR)).toEqual({ text: undefined });
    expect(await readings.keep(CLIENT, 'one', 'late', 0)).toBe(false);
    expect(await readings.take(CLIENT, 'a third', HOUR)).toBeUndefined();
    expect(await readings.keep(CLIENT, 'another', 'in time', 0)).toBe(true);
    expect(await readings.take(CLIENT, 'a third', HOUR)).toEqual({ text: 'in time' });
  },
);

/** What a process leaves that dies before it tells a difference. */
const LEFT = JSON.stringify({
  readings: {
    ...{ baseline: readingAt(0, 0, 0), previous: readingAt(1, 0, 0) },
    ...{ cursors: ['first', 'second'], open: [] },
  },
  untold: [{ account: 'missing', cents: -100, from: 0, to: HOUR, amountUnknown: 0 }],
});
const NOTHING_MOVED: ReconcilingCalls['gather'] = async () => ({
  ...{ movements: [], open: [], amountUnknown: [] },
});

/** Compares the balances once, and returns what was told. */
async function compareOnce(
  records: Pick<MoneyRecords, 'search' | 'read' | 'readings'>,
  gather: ReconcilingCalls['gather'],
): Promise<string[]> {
  const stopping = new AbortController();
  const told: string[] = [];
  const calls: ReconcilingCalls = {
    turn: () => undefined,
    open: async () => [],
    look: async () => ({ cursor: 'third', reading: readingAt(2, 0, 0), accounts: [] }),
    gather,
  };
  const ambient = { ...systemAmbient, sleep: async () => stopping.abort() };
  const parts = {
    ...{ records, ambient, logger, everyMs: HOUR, marginMs: 0 },
    onComparison: (outcome: string) => told.push(outcome),
    onDifference: (direction: string) => told.push(direction),
  };
  await reconcileBalances(new Map([[CLIENT, calls]]), parts, stopping.signal);
  return told;
}

it.each<[string, ReconcilingCalls['gather'], string]>([
  ['goes on', NOTHING_MOVED, 'compared'],
  ['begins anew', () => Promise.reject(new BaselineLostError('The events are gone.')), 'first'],
])(
  'what a process has found that died is told by the next, whose comparison %s',
  async (_how, gather, outcome) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await STORES[0]?.[1]();
    if (store === undefined) throw new Error('There is a store.');
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    await records.readings.take(CLIENT, 'the one that died', HOUR);
    await records.readings.keep(CLIENT, 'the one that died', LEFT, 0);
    expect(await compareOnce(records, gather)).toEqual([outcome, 'less']);
  },
);

it('a process from which another has taken the readings meanwhile tells nothing', async () => {
  const never = () => expect.unreachable();
  const readings = { take: async () => ({ text: LEFT }), keep: async () => false };
  expect(await compareOnce({ search: never, read: never, readings }, NOTHING_MOVED)).toEqual([]);
});

it('a second reading counts as the first of two that can be compared, and a third one as compared', async () => {
  const never = () => expect.unreachable();
  const look = { cursor: 'first', reading: readingAt(0, 0, 0), accounts: [] };
  let text = JSON.stringify({ readings: firstReadings(look, []), untold: [] });
  const readings = {
    take: async () => ({ text }),
    async keep(_clientId: string, _owner: string, next: string | undefined) {
      text = next ?? text;
      return true;
    },
  };
  const records = { search: never, read: never, readings };
  expect(await compareOnce(records, NOTHING_MOVED)).toEqual(['first']);
  expect(await compareOnce(records, NOTHING_MOVED)).toEqual(['compared']);
});

/** Has one client's comparisons fail once at each of these hours, and returns what was told. */
async function failAt(hours: readonly number[], text: string | undefined): Promise<string[]> {
  const never = () => expect.unreachable();
  const [begin = 0, ...later] = hours.map((hour) => hour * HOUR);
  let now = begin;
  const stopping = new AbortController();
  const told: string[] = [];
  const away = () => Promise.reject(new Error('The service gives no token.'));
  const calls: ReconcilingCalls = { turn: () => undefined, open: away, look: away, gather: never };
  const ambient = {
    ...systemAmbient,
    now: () => now,
    async sleep() {
      const next = later.shift();
      if (next === undefined) stopping.abort();
      else now = next;
    },
  };
  const readings = { take: async () => ({ text }), keep: async () => true };
  const parts = {
    ...{ records: { search: never, read: never, readings }, ambient, logger, everyMs: HOUR, marginMs: 0 },
    ...{ onComparison: (outcome: string) => told.push(outcome), onDifference: never },
  };
  await reconcileBalances(new Map([[CLIENT, calls]]), parts, stopping.signal);
  return told;
}

it('a comparison that fails is overdue more than two hours after its time, whoever has read the balances last', async () => {
  // The second reading was made at one o’clock.
  expect(await failAt([2, 4, 4.01], LEFT)).toEqual(['failed', 'failed', 'overdue']);
  const look = { cursor: 'first', reading: readingAt(3, 0, 0), accounts: [] };
  const first = JSON.stringify({ readings: firstReadings(look, []), untold: [] });
  expect(await failAt([6, 6.01], first)).toEqual(['failed', 'overdue']);
});

it('a client whose balances nobody has read is overdue by the time since which the process compares', async () => {
  expect(await failAt([10, 13, 13.01], undefined)).toEqual(['failed', 'failed', 'overdue']);
});
