import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../../src/common/logger.ts';
import { systemAmbient } from '../../../src/money/ambient.ts';
import { nextReadings, type Readings } from '../../../src/money/reconciling/readings.ts';
import { type ReconcilingCalls, reconcileBalances } from '../../../src/money/reconciling/reconciler.ts';
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
