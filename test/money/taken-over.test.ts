import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { inputHash, type RecordName, recordName } from '../../src/money/intent.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { NOBODYS, order, repeatable } from './orders.ts';
import { STORES } from './stores.ts';
import { startUpstream } from './upstream.ts';

async function recordsIn(
  makeStore: (typeof STORES)[number][1],
  cleanup: AsyncDisposableStack,
): Promise<MoneyRecords> {
  const store = await makeStore();
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  return records;
}

it.each(STORES)(
  'a call that gives up what another has taken over does not say that nothing will move, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const records = await recordsIn(makeStore, cleanup);
    await using upstream = await startUpstream();
    const leaving = new AbortController();
    const amount = '10.00';
    const inputs = inputHash('createMoneyOut', { amount });
    /** While the call stalls after its payment was noted as sent, its lease ends and another takes the payment over. */
    const stalling: MoneyRecords = {
      ...records,
      async markSent(name, owner, ...rest) {
        const isMarked = await records.markSent(name, owner, ...rest);
        await records.renew(name, owner, 0);
        const claim = { ...NOBODYS, owner: 'another', inputHash: inputs, leaseMs: 60_000 };
        expect(await records.claim(name, claim)).toMatchObject({ state: 'sent' });
        leaving.abort();
        return isMarked;
      },
    };
    const money = createMoney({ records: stalling, logger });
    const made = repeatable(order(upstream.url, 'createMoneyOut', 'taken-over', { amount }));
    const result = await money.execute(made, {
      deadline: Date.now() + 60_000,
      signal: leaving.signal,
    });
    expect(result).toMatchObject({ kind: 'unknown', safeToRetry: true });
    expect(upstream.received).toEqual([]);
    await money.stop();
  },
);

it.each(STORES)(
  'a customer’s call that stalls before it sends does not pay what one for the whole client then paid, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const records = await recordsIn(makeStore, cleanup);
    await using upstream = await startUpstream();
    const limits = { deadline: Date.now() + 60_000, signal: new AbortController().signal };
    const whole = createMoney({ records, logger });
    const made = order(upstream.url, 'createInternalTransaction', 'passed-over');
    let stalls = 0;
    /** While the call stalls, its lease ends. */
    const stalling: MoneyRecords = {
      ...records,
      async markSent(name, owner, ...rest) {
        stalls += 1;
        await records.renew(name, owner, 0);
        expect(await whole.execute(made, limits)).toMatchObject({ kind: 'done', replayed: false });
        return records.markSent(name, owner, ...rest);
      },
    };
    const customers = createMoney({ records: stalling, logger });
    const theirs = { ...made, customerId: 'customer' };
    for (const _call of ['the one that stalled', 'another'])
      expect(await customers.execute(theirs, limits)).toMatchObject({ kind: 'unknown', safeToRetry: false });
    expect(await whole.execute(made, limits)).toMatchObject({ kind: 'done', replayed: true });
    expect([stalls, upstream.received.length]).toEqual([1, 1]);
    await Promise.all([whole.stop(), customers.stop()]);
  },
);

/** Each takes over money out whose lease has ended, and returns what ends its own hold. */
const TAKERS: [
  string,
  (records: MoneyRecords, name: RecordName, inputs: string) => Promise<() => unknown>,
][] = [
  [
    'another call',
    async (records, name, inputs) => {
      const claim = { ...NOBODYS, owner: 'another', inputHash: inputs, leaseMs: 60_000 };
      expect(await records.claim(name, claim)).toMatchObject({ state: 'sent' });
      return () => records.renew(name, 'another', 0);
    },
  ],
  [
    'the settler',
    async (records, name) => {
      await records.hasten(name);
      const taken = await records.takeOpen(name, 'settler', 60_000);
      if (taken === undefined) throw new Error('the payment could not be taken');
      return async () => {
        await records.putOff(taken, 0, 'no-answer');
        const again = await records.takeOpen(name, 'settler', 60_000);
        expect(again).toMatchObject({ closed: null, upstreamKey: expect.any(String) });
        await records.putOff({ name, tries: again?.tries ?? 0 }, 0, 'no-answer');
      };
    },
  ],
];

const CASES = STORES.flatMap(([kind, makeStore]) =>
  TAKERS.flatMap(([taker, take]) =>
    ['in progress', 'external_transfer_not_allowed'].map((words) => ({
      kind,
      makeStore,
      taker,
      take,
      words,
    })),
  ),
);

it.each(CASES)(
  'a 409 neither closes nor refuses what $taker has taken over, whatever it says: $words, over $kind',
  async ({ makeStore, take, words }) => {
    await using cleanup = new AsyncDisposableStack();
    const records = await recordsIn(makeStore, cleanup);
    await using upstream = await startUpstream();
    const leaving = new AbortController();
    const amount = '10.00';
    const made = repeatable(order(upstream.url, 'createMoneyOut', 'taken-over', { amount }));
    let letGo: () => unknown = () => undefined;
    /** The call stalls after its payment was noted as sent, and leaves once it has told the record of the answer. */
    const stalling: MoneyRecords = {
      ...records,
      async markSent(name, owner, ...rest) {
        const isMarked = await records.markSent(name, owner, ...rest);
        await records.renew(name, owner, 0);
        letGo = await take(records, name, inputHash('createMoneyOut', { amount }));
        return isMarked;
      },
      answer: (...args) => records.answer(...args).finally(() => leaving.abort()),
    };
    // Whoever has taken it over has sent it, and the service makes it meanwhile.
    upstream.faults.push({ page: 409, served: true, words });
    const money = createMoney({ records: stalling, logger });
    cleanup.defer(() => money.stop());
    const limits = { deadline: Date.now() + 60_000, signal: leaving.signal };
    const reason = 'STILL_PROCESSING';
    expect(await money.execute(made, limits)).toMatchObject({ kind: 'unknown', reason, safeToRetry: true });
    expect(await records.read(recordName(made))).toMatchObject({ state: 'sent', answer: null });
    await letGo();
    const later = createMoney({ records, logger });
    cleanup.defer(() => later.stop());
    const whole = { ...limits, signal: new AbortController().signal };
    expect(await later.execute(made, whole)).toMatchObject({ kind: 'done', replayed: false });
    expect([...upstream.ledger.values()]).toEqual([1]);
  },
);
