import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../../../src/events/log.ts';
import { type CepUpdate, Receipt } from '../../../src/resolvers/events/receipt.ts';
import {
  TransactionStates,
  type TransactionUpdate,
} from '../../../src/resolvers/events/transaction-states.ts';
import type { Transaction } from '../../../src/upstream/transactions.ts';
import { type Reading, type Shared, settled, share, startWatch } from './watching.ts';

const ID = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';

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

const onReceipt = (...readings: [Reading, ...Reading[]]) =>
  startWatch(
    share(),
    {
      states: new Receipt(ID),
      name: ({ kind, cep }: CepUpdate) => `${kind} ${cep.status}`,
      transactionId: ID,
    },
    ...readings,
  );
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
