import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { systemAmbient } from '../../src/money/ambient.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { createPersistence } from '../../src/money/persist.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { createSettler } from '../../src/money/settling/settler.ts';
import { NOBODYS } from './orders.ts';
import { STORES } from './stores.ts';

/** As many as are found in one look. */
const BATCH = 50;

/** Payments that were sent, are open, and are due. */
async function leaveOpen(records: MoneyRecords, clientId: string): Promise<void> {
  for (let count = 0; count < BATCH; count += 1) {
    const key = randomUUID();
    const name = recordName({ clientId, customerId: undefined, key });
    const hash = inputHash('createMoneyOut', name.hash);
    await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key });
    await records.markSent(name, 'call', '{}', { upstreamKey: key, original: null });
    await records.hasten(name);
  }
}

it.each(STORES)(
  'what is due and cannot be taken is looked at again after a pause, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const clientId = randomUUID();
    await leaveOpen(records, clientId);

    let looks = 0;
    const paused = Promise.withResolvers<void>();
    const contested: MoneyRecords = {
      ...records,
      due(...args) {
        looks += 1;
        // Enough to tell: a settler that never pauses would keep this process from everything else.
        return looks > 5 ? Promise.resolve([]) : records.due(...args);
      },
      // Another process has taken each of them just before.
      takeOpen: async () => undefined,
    };
    const ambient = {
      ...systemAmbient,
      sleep(ms: number, signal: AbortSignal) {
        paused.resolve();
        return systemAmbient.sleep(ms, signal);
      },
    };
    const settler = createSettler({
      records: contested,
      persistence: createPersistence(records, ambient, logger),
      ambient,
      logger,
      onUnread: () => expect.unreachable(),
    });
    const never = () => {
      throw new Error('Nothing was taken, so that nothing is asked of the service.');
    };
    settler.serve(clientId, {
      isOver: () => false,
      repeat: never,
      reading: never,
      codeOf: never,
      look: never,
    });
    await paused.promise;
    await settler.drain();
    expect(looks).toBe(1);
  },
);
