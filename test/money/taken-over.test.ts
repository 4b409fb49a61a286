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
