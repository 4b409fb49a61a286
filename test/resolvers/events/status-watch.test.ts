import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../../../src/events/log.ts';
import type { Context } from '../../../src/operation/context.ts';
import { type CepUpdate, Receipt } from '../../../src/resolvers/events/receipt.ts';
import { ReceiptSource, TransactionSource } from '../../../src/resolvers/events/status-source.ts';
import {
  TransactionStates,
  type TransactionUpdate,
} from '../../../src/resolvers/events/transaction-states.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import type { Transaction } from '../../../src/upstream/transactions.ts';
import { until } from '../../helpers/until.ts';
import { type Reading, type Shared, settled, share, startWatch, type WatchOptions } from './watching.ts';

const ID = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';

const OTHER = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';

const transaction = (transactionStatus: string, cep = 'PENDING'): Transaction => ({
  id: ID,
  amount: '10.00',
  currency: 'MXN',
  category: 'DEBIT_TRANS',
  subCategory: 'SPEI_DEBIT',
  trackingId: 'TRACK1',
  transactionStatus,
  metadata: { dataCep: { status: cep } },
});

const delayed: StoredEvent = {
  cursor: 'c1',
  id: 'm1',
  type: 'CEP',
  receivedAt: '2026-11-20T15:30:00Z',
  payload: { webhook_type: 'CEP', payload: { body: { id: ID, status: 'DELAYED' } } },
};

const receiptWith = (options: WatchOptions, ...readings: [Reading, ...Reading[]]) =>
  startWatch(
    share(),
    {
      ...options,
      states: new Receipt(ID),
      name: ({ kind, cep }: CepUpdate) => `${kind} ${cep.status}`,
      transactionId: ID,
    },
    ...readings,
  );
const onReceipt = (...readings: [Reading, ...Reading[]]) => receiptWith({}, ...readings);
const onTransaction = (on: Shared, ...readings: [Reading, ...Reading[]]) =>
  startWatch(
    on,
    {
      states: new TransactionStates(ID),
      name: ({ kind, transaction: { transactionStatus } }: TransactionUpdate) =>
        `${kind} ${transactionStatus}`,
      transactionId: ID,
    },
    ...readings,
  );

describe('what an operation remembers', () => {
  it('is let go of before a message is shown, which is newer', async () => {
    const watch = onReceipt(transaction('LIQUIDATED'));
    expect(await watch.next()).toBe('SNAPSHOT PENDING');
    watch.told.splice(0);
    watch.send(delayed);
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(watch.told[0]).toBe('renew');
    await watch.leave();
  });

  it('is let go of before another’s reading is shown', async () => {
    const all = share();
    const [first, second] = [
      onTransaction(all, transaction('INITIALIZED'), transaction('LIQUIDATED')),
      onTransaction(all, transaction('INITIALIZED'), transaction('LIQUIDATED')),
    ];
    for (const watch of [first, second]) expect(await watch.next()).toBe('SNAPSHOT INITIALIZED');
    for (const watch of [first, second]) watch.told.splice(0);
    const next = [first.next(), second.next()];
    await all.time.ring();
    expect(await Promise.all(next)).toEqual(['CHANGE LIQUIDATED', 'CHANGE LIQUIDATED']);
    expect(first.reads + second.reads).toBe(3);
    // The one that has read has let go of it in order to read.
    const other = first.reads === 1 ? first : second;
    expect(other.told[0]).toBe('renew');
  });

  it('is let go of while nothing is to be done', async () => {
    const watch = onTransaction(share(), transaction('INITIALIZED'));
    expect(await watch.next()).toBe('SNAPSHOT INITIALIZED');
    void watch.updates.next();
    await settled();
    expect(watch.told.at(-1)).toBe('idle');
    await watch.leave();
  });
});

it('what a caller asks is read afresh from the moment at which its own reading is shown', async () => {
  const watch = onTransaction(share(), transaction('INITIALIZED'), transaction('LIQUIDATED'));
  watch.updates.connect({
    take: ({ transaction }) => void watch.told.push(transaction.transactionStatus),
    finish: () => void watch.told.push('completed'),
  });
  await settled();
  expect(watch.told).toEqual(['tell', 'INITIALIZED', 'idle']);
  watch.told.splice(0);
  await watch.ring();
  expect(watch.told).toEqual(['tell', 'LIQUIDATED', 'completed']);
});

describe('a caller whose credential has ended', () => {
  it('is shown no message more', async () => {
    const watch = onReceipt(transaction('LIQUIDATED'));
    expect(await watch.next()).toBe('SNAPSHOT PENDING');
    watch.expire();
    watch.send(delayed);
    await expect(watch.next()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(watch.ended).toBe(true);
  });

  it('is shown no reading of another', async () => {
    const all = share();
    const [ended, other] = [
      onTransaction(all, transaction('INITIALIZED')),
      onTransaction(all, transaction('INITIALIZED'), transaction('LIQUIDATED')),
    ];
    for (const watch of [ended, other]) expect(await watch.next()).toBe('SNAPSHOT INITIALIZED');
    ended.expire();
    const refused = expect(ended.next()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    // The first reads for both, then the second.
    await all.time.ring();
    await all.time.ring();
    await refused;
    expect(await other.next()).toBe('CHANGE LIQUIDATED');
  });
});

describe('a log that was lost', () => {
  it('has the state read again, as its events may never come', async () => {
    const watch = onReceipt(transaction('LIQUIDATED'), transaction('LIQUIDATED', 'DELAYED'));
    expect(await watch.next()).toBe('SNAPSHOT PENDING');
    watch.lose();
    expect(await watch.next()).toBe('CHANGE DELAYED');
    await watch.leave();
  });

  it('has the state read once for all who share its readings', async () => {
    const all = share();
    const watches = [
      onTransaction(all, transaction('INITIALIZED')),
      onTransaction(all, transaction('INITIALIZED')),
    ];
    const reads = () => watches.reduce((sum, watch) => sum + watch.reads, 0);
    for (const watch of watches) expect(await watch.next()).toBe('SNAPSHOT INITIALIZED');
    expect(reads()).toBe(2);
    for (const watch of watches) watch.lose();
    await settled();
    expect(reads()).toBe(3);
    for (const watch of watches) await watch.leave();
  });

  it('while the feed is being attached has the state read once', async () => {
    const attached = Promise.withResolvers<void>();
    const watch = receiptWith({ attached: () => attached.promise }, transaction('LIQUIDATED'));
    const next = watch.next();
    watch.lose();
    await settled();
    attached.resolve();
    expect(await next).toBe('SNAPSHOT PENDING');
    await settled();
    expect(watch.reads).toBe(1);
    await watch.leave();
  });

  it('is followed by events of the new one', async () => {
    const watch = onReceipt(transaction('LIQUIDATED'));
    expect(await watch.next()).toBe('SNAPSHOT PENDING');
    watch.lose();
    await settled();
    watch.send(delayed);
    expect(await watch.next()).toBe('CHANGE DELAYED');
    await watch.leave();
  });
});

describe('a log that is lost while the transaction is being read for the first time', () => {
  it('has its successor followed by all that the reading tells the receipt by', async () => {
    const first = Promise.withResolvers<Transaction>();
    const again = Promise.withResolvers<void>();
    let attachings = 0;
    const attached = () => {
      attachings += 1;
      return attachings > 1 ? again.promise : undefined;
    };
    const watch = receiptWith({ attached }, first.promise, transaction('LIQUIDATED'));
    const next = watch.next();
    await settled();
    watch.lose();
    await settled();
    first.resolve(transaction('LIQUIDATED'));
    expect(await next).toBe('SNAPSHOT PENDING');
    again.resolve();
    await settled();
    const body = { id: OTHER, tracking_key: 'TRACK1', status: 'DELAYED' };
    watch.send({ ...delayed, payload: { webhook_type: 'CEP', payload: { body } } });
    expect(await watch.next()).toBe('CHANGE DELAYED');
    await watch.leave();
  });
});

describe('one who leaves', () => {
  it('while the feed is being attached is told of nothing, and has nothing read', async () => {
    const watch = onReceipt(transaction('LIQUIDATED'));
    const next = watch.next();
    await watch.leave();
    expect(await next).toBe('completed');
    await settled();
    expect([watch.ended, watch.reads]).toEqual([true, 0]);
  });

  it('while a transaction just made is waited for keeps nobody awake', async () => {
    const all = share();
    const watch = onTransaction(all, null);
    const next = watch.next();
    await settled();
    expect([watch.reads, all.time.isAsleep]).toEqual([1, true]);
    await watch.leave();
    expect(await next).toBe('completed');
    await settled();
    expect([watch.ended, all.time.isAsleep]).toEqual([true, false]);
  });
});

it('a stream whose reader fails is finished by that, and hears nothing more', async () => {
  const watch = onTransaction(share(), transaction('INITIALIZED'));
  const failure = new Error('the reader has failed');
  const finished: unknown[] = [];
  watch.updates.connect({
    take: () => Promise.reject(failure),
    finish: (error) => void finished.push(error),
  });
  await until(() => finished.length > 0);
  await settled();
  expect([finished, watch.ended]).toEqual([[failure], true]);
});

it('a reading that fails after another has been shown is told to the operator, and the watch goes on', async () => {
  const all = share();
  // The feed does not remember what came meanwhile: it is read again.
  const watch = startWatch(
    all,
    {
      states: new Receipt(ID),
      name: ({ kind, cep }: CepUpdate) => `${kind} ${cep.status}`,
      transactionId: ID,
      remembers: false,
    },
    transaction('LIQUIDATED'),
    new UpstreamError('UPSTREAM_UNAVAILABLE', 'The service cannot be reached.'),
    transaction('LIQUIDATED', 'DELAYED'),
  );
  expect(await watch.next()).toBe('SNAPSHOT PENDING');
  const next = watch.next();
  await settled();
  expect(watch.failures).toMatchObject([{ code: 'UPSTREAM_UNAVAILABLE' }]);
  await watch.ring();
  expect(await next).toBe('CHANGE DELAYED');
  await watch.leave();
});

describe('readings', () => {
  const [client, other] = ['a client', 'another'];
  const of = (clientId: string, customerId: string | undefined, group: string): Context =>
    // What tells whose readings they are needs no more of an operation.
    ({ identity: { caller: { clientId, customerId }, requester: { caller: 'a token', group } } }) as Context;

  it('of a receipt are shared by those who may see the same, and by no others', () => {
    const keys = [
      of(client, undefined, ''),
      of(client, 'one', ''),
      of(client, 'two', ''),
      of(other, 'one', ''),
    ].map((context) => new ReceiptSource(ID, context).pollKey);
    expect(new Set(keys).size).toBe(keys.length);
    const again = new ReceiptSource(ID.toUpperCase(), of(client, 'one', ''));
    expect(again.pollKey).toBe(keys[1]);
    expect(new ReceiptSource(ID, of(client, 'one', '')).pollKey).not.toBe(
      new TransactionSource(ID, of(client, 'one', '')).pollKey,
    );
  });

  it('of another are shown to a caller who is narrowed only where the transaction is still its own', async () => {
    const sees = async (customerId: string | undefined, isOwn: boolean, read: Transaction | null) => {
      const told: string[] = [];
      const renew = () => void told.push('renew');
      const owns = async () => {
        told.push('owns');
        return isOwn;
      };
      const reads = { renew, session: { transactions: { owns } } };
      // Whether a reading may be shown needs no more of an operation.
      const context = { ...of(client, customerId, ''), reads } as unknown as Context;
      return [await new TransactionSource(ID, context).sees(read), ...told];
    };
    const found = transaction('LIQUIDATED');
    // What the operation remembers of instruments is older.
    expect(await sees('one', true, found)).toEqual([true, 'renew', 'owns']);
    expect(await sees('one', false, found)).toEqual([false, 'renew', 'owns']);
    expect(await sees('one', true, null)).toEqual([false]);
    expect(await sees(undefined, false, found)).toEqual([true]);
  });

  it('have one share for all tokens that stand for one client', () => {
    expect(new TransactionSource(ID, of(client, undefined, 'the group')).pollRequester).toBe('the group');
  });
});
