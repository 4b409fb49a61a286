import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { recordName } from '../../src/money/intent.ts';
import { RecordsUnavailableError } from '../../src/money/record.ts';
import { until } from '../helpers/until.ts';
import { order, repeatable } from './orders.ts';
import { STORES } from './stores.ts';
import { startUpstream } from './upstream.ts';

it.each(
  STORES.slice(0, 2).flatMap(([kind, makeStore]) =>
    (['createInternalTransaction', 'createPennyValidation'] as const).map(
      (mutation) => [mutation, kind, makeStore] as const,
    ),
  ),
)(
  'a stop waits until the key is free again of a %s that was told as not sent, over %s',
  async (mutation, _kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const upstream = cleanup.use(await startUpstream());
    const records = await store.open();
    const other = await store.open();
    cleanup.defer(() => other.stop());
    const [slow, again] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let tries = 0;
    const money = createMoney({
      records: {
        ...records,
        // The store has done it, and its reply is lost.
        async markSent(...args) {
          await records.markSent(...args);
          throw new RecordsUnavailableError('sent', new Error('The connection is closed.'));
        },
        // The first try fails after the stop has begun, and the next one takes its time.
        async release(...args) {
          tries += 1;
          if (tries === 1) {
            await slow.promise;
            throw new RecordsUnavailableError('release', new Error('The connection is closed.'));
          }
          await again.promise;
          return records.release(...args);
        },
      },
      logger,
    });
    const asked = repeatable(order(upstream.url, mutation, 'a key'));
    const limits = { deadline: Date.now() + 25_000, signal: new AbortController().signal };
    await expect(money.execute(asked, limits)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    let hasStopped = false;
    const stopped = money.stop().then(() => {
      hasStopped = true;
    });
    // All else that a stop waits for ends within these turns.
    const takesTurns = async () => {
      for (let turn = 0; turn < 100; turn += 1) {
        expect(await other.read(recordName(asked))).toMatchObject({ state: 'sent' });
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(hasStopped).toBe(false);
    };
    await takesTurns();
    slow.resolve();
    await until(() => tries === 2);
    await takesTurns();
    again.resolve();
    await stopped;
    await records.stop();
    expect(await other.read(recordName(asked))).toBeUndefined();
    expect(upstream.received).toEqual([]);
  },
);
