import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Attempt } from '../../src/common/attempt.ts';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { isStopped, withPaymentsOff } from '../../src/money/payments-off.ts';
import { type MoneyRecords, RecordsUnavailableError } from '../../src/money/record.ts';
import type { SettlingCalls } from '../../src/money/settling/open-payment.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';
import { STORES } from './stores.ts';

/** More than are settled at once. */
const DUE = 20;
const AT_ONCE = 4;

async function leaveOpen(records: MoneyRecords, clientId: string) {
  return Promise.all(
    Array.from({ length: DUE }, async () => {
      const key = randomUUID();
      const name = recordName({ clientId, customerId: undefined, key });
      const hash = inputHash('createMoneyOut', name.hash);
      await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key });
      await records.markSent(name, 'call', '{}', { upstreamKey: key, original: null });
      await records.hasten(name);
      return name;
    }),
  );
}

/** A service that does what it is asked, each key once. */
function startService(onRepeat: () => Promise<void>) {
  const repeats: string[] = [];
  const answer: Attempt = { kind: 'answered', status: 200, text: '{}', body: {}, retryAfterMs: undefined };
  const calls: SettlingCalls = {
    async repeat(_payment, upstreamKey) {
      repeats.push(upstreamKey);
      await onRepeat();
      return answer;
    },
    reading: () => ({ compare: () => ({ kind: 'same' }), isServiceError: () => true }),
    codeOf: () => 'A_CODE',
    look: async () => ({ kind: 'open', seen: 'nothing' }),
    isOver: () => false,
  };
  return { repeats, calls };
}

it.each(STORES.slice(0, 2))(
  'an operator’s stop ends a sweep that is under way, and what it has left is settled once payments go on, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const operator = await store.open();
    cleanup.defer(() => operator.stop());
    const clientId = randomUUID();
    const names = await leaveOpen(records, clientId);
    const stopped = Promise.withResolvers<void>();
    let isFirst = true;
    const { repeats, calls } = startService(async () => {
      if (isFirst) {
        isFirst = false;
        await operator.holdPayments();
        stopped.resolve();
      }
      // Those that were on their way end after the stop.
      await stopped.promise;
    });
    const money = createMoney({ records, logger });
    cleanup.defer(() => money.stop());
    money.serve(clientId, calls);
    const states = async () => {
      const all = await Promise.all(names.map((name) => operator.read(name)));
      return all.map((record) => record?.state);
    };
    const answered = async () => (await states()).filter((state) => state === 'answered').length;

    await stopped.promise;
    const sent = await until(async () => repeats.length === (await answered()) && repeats.length);
    expect(sent).toBeLessThanOrEqual(AT_ONCE);
    // A sweep that goes on would have come past all of them by the time that it looks again.
    const looked = Promise.withResolvers<void>();
    const { due } = records;
    let looks = 0;
    records.due = (...args) => {
      looks += 1;
      if (looks > 1) looked.resolve();
      return due(...args);
    };
    await looked.promise;
    expect(repeats).toHaveLength(sent);
    await operator.resume(true);
    for (const name of names) await operator.hasten(name);
    await until(async () => (await answered()) === DUE);
    expect(new Set(repeats).size).toBe(DUE);
    expect(repeats).toHaveLength(DUE);
  },
);

it.each(['stopped by an operator', 'stopped by PAYMENTS=off'])(
  'nothing is sent again of a client whose payments are %s, also while another client’s record is put back',
  async (what) => {
    await using cleanup = new AsyncDisposableStack();
    const redis = await startRedis();
    cleanup.defer(() => redis.stop());
    const dataDir = '/dev/null/nowhere';
    const records = await openMoneyRecords({ redisUrl: redis.url, dataDir, logger });
    cleanup.defer(() => records.stop());
    const [forgotten, clientId] = [randomUUID(), randomUUID()];
    await leaveOpen(records, forgotten);
    const names = await leaveOpen(records, clientId);
    await redis.admin.del(`pasarela:money:{${forgotten}}:ledger`);
    const [lost] = await leaveOpen(records, forgotten).catch((error: unknown) => [error]);
    expect(lost).toMatchObject({ why: 'put-back' });
    const isByOperator = what.includes('operator');
    if (isByOperator) await records.holdPayments();
    const seen = isByOperator ? records : withPaymentsOff(records);
    expect(await seen.held()).toMatchObject([
      { why: isByOperator ? 'stopped' : 'off', missing: 0 },
      { why: 'put-back', missing: DUE },
    ]);
    const { repeats, calls } = startService(async () => {});
    const money = createMoney({ records: seen, logger });
    cleanup.defer(() => money.stop());
    money.serve(clientId, calls);
    const settledOr = async (state: string) => {
      const all = await Promise.all(names.map((name) => records.read(name)));
      return all.every((record) => record?.seen === state || record?.state === 'answered');
    };
    await until(() => settledOr('stopped'));
    expect(repeats).toEqual([]);
  },
);

it('a process whose PAYMENTS is off says so, and sends nothing again, while the store cannot be asked', async () => {
  const off = withPaymentsOff({
    held: () => Promise.reject(new RecordsUnavailableError('held', new Error('The store is away.'))),
  } as MoneyRecords);
  expect(await off.held()).toMatchObject([{ why: 'off' }]);
  expect(await isStopped(off, false)).toBe(true);
});

it.each(STORES.slice(0, 2))(
  'a process whose PAYMENTS is off repeats nothing, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const clientId = randomUUID();
    const names = await leaveOpen(records, clientId);
    const { repeats, calls } = startService(async () => {});
    const off = createMoney({ records: withPaymentsOff(records), logger });
    cleanup.defer(() => off.stop());
    off.serve(clientId, calls);
    await until(async () => {
      const all = await Promise.all(names.map((name) => records.read(name)));
      return all.every((record) => record?.seen === 'stopped');
    });
    expect(repeats).toEqual([]);
  },
);
