import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
import { NOBODYS, SHOWN } from './orders.ts';
import { STORES } from './stores.ts';

const HOUR = 60 * 60_000;

it.each(STORES.slice(0, 2))(
  'a payment is of unknown outcome no less long while the gateway is at it, and counts apart after two days, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const key = randomUUID();
    const name = recordName({ clientId: randomUUID(), customerId: undefined, key });
    const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
    const hash = inputHash('createMoneyOut', key);
    await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key, asked });
    await records.markSent(name, 'call', '{}', { upstreamKey: key, original: null });
    await records.hasten(name);
    expect(await records.takeOpen(name, 'settler', 60_000)).toBeDefined();
    const record = await records.read(name);
    expect(record?.isHeld).toBe(true);

    const payments = createPayments(records);
    expect(await payments.oldestUnknown()).toBe(record?.createdAt);
    expect(await payments.oldUnknown()).toBe(0);
    const spy = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 49 * HOUR);
    cleanup.defer(() => spy.mockRestore());
    expect(await payments.oldestUnknown()).toBeUndefined();
    expect(await payments.oldUnknown()).toBe(1);
    await records.answer(name, hash, { kind: 'done', status: 201, text: '{}' }, randomUUID());
    expect(await payments.oldUnknown()).toBe(0);
  },
);

it('a payment counts also where the process settles its client’s payments and has paid nothing for it', async () => {
  await using cleanup = new AsyncDisposableStack();
  const store = await (STORES[0] as (typeof STORES)[number])[1]();
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const [clientId, key] = [randomUUID(), randomUUID()];
  const name = recordName({ clientId, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', key);
  await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key });
  await records.markSent(name, 'call', '{}', { upstreamKey: null, original: null });
  const money = createMoney({ records: { ...records, clients: async () => [] }, logger });
  cleanup.defer(() => money.stop());
  expect(await money.payments.oldestUnknown()).toBeUndefined();
  const never = () => {
    throw new Error('It is not due yet.');
  };
  money.serve(clientId, {
    ...{ repeat: never, reading: never, codeOf: never, look: never, isOver: () => false },
  });
  expect(await money.payments.oldestUnknown()).toBe((await records.read(name))?.createdAt);
});
