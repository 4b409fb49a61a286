import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { systemAmbient } from '../../src/money/ambient.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { createPersistence } from '../../src/money/persist.ts';
import { type MoneyRecords, RecordsUnavailableError } from '../../src/money/record.ts';
import type { SettlingCalls } from '../../src/money/settling/open-payment.ts';
import { createSettler } from '../../src/money/settling/settler.ts';
import { fastAmbient, NOBODYS } from './orders.ts';
import { STORES } from './stores.ts';

/** As many as are found in one look. */
const BATCH = 50;

const never = () => {
  throw new Error('This is not asked of the service.');
};
const CALLS: SettlingCalls = {
  ...{ isOver: () => false, repeat: never, reading: never, codeOf: never, look: never },
};

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
    settler.serve(clientId, CALLS);
    await paused.promise;
    await settler.drain();
    expect(looks).toBe(1);
  },
);

it.each(STORES)(
  'what was given up is looked for as its caller asks, though the store is away for a moment then, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const clientId = randomUUID();
    const name = recordName({ clientId, customerId: undefined, key: randomUUID() });
    const asked = { ...NOBODYS.asked, operation: 'createInternalTransaction' } as const;
    const hash = inputHash(asked.operation, name.hash);
    await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: hash, leaseMs: 0 });
    await records.markSent(name, 'call', '{}', { upstreamKey: null, original: null });
    await records.hasten(name);
    const payment = await records.takeOpen(name, 'before', 0);
    if (payment === undefined) throw new Error('It is due.');
    await records.putOff(payment, undefined, 'nothing');

    let looks = 0;
    const taken = Promise.withResolvers<boolean>();
    const away: MoneyRecords = {
      ...records,
      async takeOpen(...args) {
        looks += 1;
        if (looks === 1) throw new RecordsUnavailableError('takeOpen', new Error('The store is away.'));
        const found = await records.takeOpen(...args);
        taken.resolve(found !== undefined);
        return found;
      },
    };
    const ambient = fastAmbient(30);
    const settler = createSettler({
      records: away,
      persistence: createPersistence(records, ambient, logger),
      ambient,
      logger,
      onUnread: () => expect.unreachable(),
    });
    const calls: SettlingCalls = { ...CALLS, look: async () => ({ kind: 'open', seen: 'nothing' }) };
    const later = { calls: () => calls, until: Number.POSITIVE_INFINITY, credential: 'token' };
    settler.remember(name, later);
    expect(await taken.promise).toBe(true);
    await settler.drain();
  },
);
