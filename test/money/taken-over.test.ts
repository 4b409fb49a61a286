import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { inputHash } from '../../src/money/intent.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { NOBODYS, order, repeatable } from './orders.ts';
import { STORES } from './stores.ts';
import { startUpstream } from './upstream.ts';

it.each(STORES)(
  'a call that gives up what another has taken over does not say that nothing will move, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
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
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
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
