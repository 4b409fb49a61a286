import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect, promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { MONEY_MUTATIONS, type RecordName } from '../../src/money/intent.ts';
import { JOURNAL_RETENTION_MS } from '../../src/money/journal/journal.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { type MoneyRecords, PAYMENT_CLASSES, RETENTION_DAYS, RETENTION_MS } from '../../src/money/record.ts';
import { OtherRefundError } from '../../src/money/record-parts.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';
import { clusterReady, clusterUrl, PROMPT_REPLICAS, STORES, type Store, startCluster } from './stores.ts';

const HASH = 'input-one';
/** Longer than any test. */
const LEASE_MS = 600_000;
const DONE = { kind: 'done', status: 200, text: '{"id":"ñandú ✓"}' } as const;

let names = 0;
const freshName = (): RecordName => {
  names += 1;
  return { clientId: '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11', hash: `name-${names}` };
};

describe.each(STORES)('the record of an intent, over %s', (_kind, makeStore) => {
  let store: Store;
  let one: MoneyRecords;
  let two: MoneyRecords;
  beforeAll(async () => {
    store = await makeStore();
    one = await store.open();
    two = await store.open();
  });
  afterAll(async () => {
    await one.stop();
    await two.stop();
    await store.close();
  });

  const claim = (
    records: MoneyRecords,
    name: RecordName,
    owner: string,
    leaseMs = LEASE_MS,
    inputHash = HASH,
  ) => records.claim(name, { owner, inputHash, leaseMs, ...NOBODYS });

  it('gives a fresh key to one of many who claim it at once, over two instances', async () => {
    const name = freshName();
    const claims = Array.from({ length: 50 }, (_, i) => claim(i % 2 === 0 ? one : two, name, `owner-${i}`));
    const states = (await Promise.all(claims)).map(({ state }) => state);
    expect(states.filter((state) => state === 'claimed')).toHaveLength(1);
    expect(states.filter((state) => state === 'busy')).toHaveLength(49);
  });

  it('keeps an owner of a key to the name that it has used, whatever became of the first owner’s record', async () => {
    const [first, own] = [freshName(), freshName()];
    const byAna = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, keyOwner: 'ana' };
    const byBen = { ...byAna, keyOwner: 'ben' };
    const atFirst = { ...byBen, other: { hash: own.hash, isFirst: false } };
    const atOwn = { ...byBen, other: { hash: first.hash, isFirst: true } };
    await one.claim(first, { ...byAna, owner: 'a' });
    expect(await two.claim(first, { ...atFirst, owner: 'b' })).toEqual({ state: 'not-yours' });
    expect(await two.claim(own, { ...atOwn, owner: 'b' })).toEqual({ state: 'claimed' });
    expect(await one.release(first, 'a')).toBe(true);
    for (const step of ['claimed', 'sent', 'answered'] as const) {
      if (step === 'sent') await two.markSent(own, 'b', '{}');
      if (step === 'answered') await two.answer(own, HASH, DONE);
      expect(await one.claim(first, { ...atFirst, owner: 'c' })).toEqual({ state: 'not-yours' });
    }
    expect(await one.claim(own, { ...atOwn, owner: 'c' })).toMatchObject({ state: 'answered' });
  });

  it('leads an owner back to the first name, where a call of its own has taken that meanwhile', async () => {
    const [first, own] = [freshName(), freshName()];
    const byBen = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, keyOwner: 'ben' };
    const atOwn = { ...byBen, other: { hash: first.hash, isFirst: true } };
    await one.claim(first, { ...byBen, owner: 'b', other: { hash: own.hash, isFirst: false } });
    expect(await two.claim(own, { ...atOwn, owner: 'c' })).toEqual({ state: 'not-yours' });
    expect(await two.claim(own, { ...atOwn, owner: 'c', keyOwner: 'ana' })).toEqual({ state: 'claimed' });
  });

  it.each(['done', 'refused'] as const)(
    'that is %s is kept no longer where it is answered again',
    async (kind) => {
      const name = freshName();
      await claim(one, name, 'a');
      await one.markSent(name, 'a', '{}');
      const answer = { ...DONE, kind };
      await one.answer(name, HASH, answer);
      const end = await store.endSooner(name, 86_400_000);
      for (const again of [answer, { ...DONE, kind: 'unknown' } as const])
        expect(await two.answer(name, HASH, again)).toBe(true);
      expect(await store.endSooner(name, 0)).toBe(end);
      expect(await one.read(name)).toMatchObject({ answer });
    },
  );

  it.each(['done', 'refused', 'unknown'] as const)(
    'that is gone begins again with its answer, and is its owner’s, where that is %s',
    async (kind) => {
      const name = freshName();
      const byAna = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, keyOwner: 'ana' };
      await one.claim(name, { ...byAna, owner: 'a' });
      await one.markSent(name, 'a', '{}');
      // As a repeat does that learns that nothing has moved, while the first call waits for its answer still.
      expect(await two.release(name, 'a')).toBe(true);
      const answer = { ...DONE, kind };
      for (let times = 0; times < 2; times += 1) {
        expect(await one.answer(name, HASH, answer, undefined, undefined, byAna)).toBe(true);
      }
      expect(await two.read(name)).toMatchObject({ keyOwner: 'ana', asked: NOBODYS.asked, answer });
      expect(await two.claim(name, { ...byAna, owner: 'b', keyOwner: 'ben' })).toEqual({
        state: 'not-yours',
      });
      expect(await two.claim(name, { ...byAna, owner: 'c' })).toEqual({ state: 'answered', answer });
    },
  );

  it.each([
    ['was given back meanwhile', 'done', async () => undefined],
    ['was given back meanwhile', 'refused', async () => undefined],
    // As by the next call with its key, which has not sent yet.
    ['was given back and claimed anew', 'done', (name: RecordName) => claim(one, name, 'b')],
  ] as const)('that %s is found by a search once its answer comes: %s', async (_what, kind, next) => {
    const name = { ...freshName(), clientId: randomUUID() };
    await claim(one, name, 'a');
    await one.markSent(name, 'a', '{}');
    await two.release(name, 'a');
    await next(name);
    const begun = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS };
    await one.answer(name, HASH, { ...DONE, kind }, undefined, undefined, begun);
    const search = {
      ...{ clientId: name.clientId, customerId: undefined, from: undefined, to: undefined },
      ...{
        operations: MONEY_MUTATIONS,
        classes: PAYMENT_CLASSES,
        beyond: undefined,
        isBack: false,
        limit: 9,
      },
    };
    const { records } = await two.search(search);
    expect(records).toMatchObject([{ hash: name.hash, attempts: 1, answer: { kind } }]);
    // Nothing says any more when it was sent: no later than its answer.
    expect(records[0]?.sent?.sentAt).toBe(records[0]?.settledAt);
  });

  it('of a customer that is gone begins again with its answer, which people of the client are told', async () => {
    const [theirs, whole] = [freshName(), freshName()];
    const twin = `twin-${theirs.hash}`;
    const byCustomer = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, twin, isCustomers: true };
    await one.claim(theirs, { ...byCustomer, owner: 'a' });
    await one.markSent(theirs, 'a', '{}');
    await two.release(theirs, 'a');
    await one.answer(theirs, HASH, DONE, undefined, undefined, byCustomer);
    const byClient = { ...byCustomer, isCustomers: false, owner: 'b' };
    expect(await two.claim(whole, byClient)).toEqual({ state: 'customers', answer: DONE });
  });

  it.each(['done', 'unknown'] as const)(
    'of a customer of which the store has lost everything names its twin again with its answer, where that is %s',
    async (kind) => {
      const [theirs, whole] = [freshName(), freshName()];
      const twin = `twin-${theirs.hash}`;
      const byCustomer = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, twin, isCustomers: true };
      const answer = { ...DONE, kind };
      // The store was emptied after the payment was sent: nothing of its claim is left.
      await one.answer(theirs, HASH, answer, undefined, undefined, byCustomer);
      const byClient = { ...byCustomer, isCustomers: false, owner: 'b' };
      expect(await two.claim(whole, byClient)).toEqual({ state: 'customers', answer });
    },
  );

  describe('of a refund', () => {
    let credits = 0;
    const freshCredit = () => {
      credits += 1;
      return `CREDIT-${credits}`;
    };
    const send = async (records: MoneyRecords, name: RecordName, original: string) => {
      await claim(records, name, 'a');
      return records.markSent(name, 'a', '{}', { upstreamKey: null, original });
    };

    it.each([
      ['is sent', async () => {}],
      ['is unknown', (name: RecordName) => one.answer(name, HASH, { ...DONE, kind: 'unknown' })],
      ['is done', (name: RecordName) => one.answer(name, HASH, DONE)],
    ] as const)('lets no other of the credit be sent while it %s', async (_state, next) => {
      const [first, other, elsewhere] = [freshName(), freshName(), freshName()];
      const credit = freshCredit();
      expect(await send(one, first, credit)).toBe(true);
      await next(first);
      await expect(send(two, other, credit.toLowerCase())).rejects.toBeInstanceOf(OtherRefundError);
      expect(await two.read(other)).toMatchObject({ state: 'claimed' });
      expect(await send(two, elsewhere, freshCredit())).toBe(true);
    });

    it.each([
      [
        'was refused',
        (name: RecordName) => one.answer(name, HASH, { ...DONE, kind: 'refused', status: 400 }),
      ],
      ['was given back', (name: RecordName) => one.release(name, 'a')],
    ] as const)('lets another of the credit be sent once it %s', async (_state, next) => {
      const [first, other] = [freshName(), freshName()];
      const credit = freshCredit();
      await send(one, first, credit);
      await next(first);
      expect(await send(two, other, credit)).toBe(true);
    });

    it('lets another of the credit be sent once it was given back, and its key is used for another credit', async () => {
      const [first, other] = [freshName(), freshName()];
      const credit = freshCredit();
      await send(one, first, credit);
      await one.release(first, 'a');
      const [next, third] = [freshCredit(), freshName()];
      expect(await send(one, first, next)).toBe(true);
      expect(await send(two, other, credit)).toBe(true);
      await expect(send(two, third, next)).rejects.toBeInstanceOf(OtherRefundError);
    });

    it.each([
      ['is sent', async () => {}, 'open'],
      ['is unknown', (name: RecordName) => one.answer(name, HASH, { ...DONE, kind: 'unknown' }), 'open'],
      ['is done', (name: RecordName) => one.answer(name, HASH, DONE), 'done'],
      [
        'was refused',
        (name: RecordName) => one.answer(name, HASH, { ...DONE, kind: 'refused', status: 400 }),
        undefined,
      ],
      ['was given back', (name: RecordName) => one.release(name, 'a'), undefined],
    ] as const)('is told to whoever asks for the credit while it %s: %o', async (_state, next, told) => {
      const [name, credit] = [freshName(), freshCredit()];
      const { clientId } = name;
      expect(await two.refundOf(clientId, credit)).toBeUndefined();
      await send(one, name, credit);
      await next(name);
      for (const written of [credit, credit.toLowerCase()])
        expect(await two.refundOf(clientId, written)).toBe(told);
      expect(await two.refundOf(clientId, freshCredit())).toBeUndefined();
      expect(await two.refundOf('another-client', credit)).toBeUndefined();
    });

    it('is told as done for as long as its record is kept, though another was sent after two days', async () => {
      const [name, next, credit] = [freshName(), freshName(), freshCredit()];
      const { clientId } = name;
      await send(one, name, credit);
      await one.answer(name, HASH, DONE);
      await store.endRefund(clientId, credit.toLowerCase());
      expect(await two.refundOf(clientId, credit)).toBe('done');
      expect(await send(two, next, credit)).toBe(true);
      await two.answer(next, HASH, { ...DONE, kind: 'refused', status: 400 });
      expect(await two.refundOf(clientId, credit)).toBe('done');
    });

    it.each([
      [
        'was refused',
        (name: RecordName) => two.answer(name, HASH, { ...DONE, kind: 'refused', status: 400 }),
      ],
      ['was given back', (name: RecordName) => two.release(name, 'a')],
    ] as const)(
      'is told while it is unknown, though another was sent after two days that %s',
      async (_end, end) => {
        const [name, next, last, credit] = [freshName(), freshName(), freshName(), freshCredit()];
        const { clientId } = name;
        await send(one, name, credit);
        await store.endRefund(clientId, credit.toLowerCase());
        expect(await send(two, next, credit)).toBe(true);
        await end(next);
        expect(await one.refundOf(clientId, credit)).toBe('open');
        // Nor does the one that ended keep others from being sent.
        expect(await send(two, last, credit)).toBe(true);
        await one.answer(name, HASH, DONE);
        expect(await two.refundOf(clientId, credit)).toBe('done');
      },
    );

    it('may be marked twice by its own call', async () => {
      const [name, credit] = [freshName(), freshCredit()];
      expect(await send(one, name, credit)).toBe(true);
      expect(await send(one, name, credit)).toBe(true);
    });

    it('is the only one of many that begin at once', async () => {
      const credit = freshCredit();
      const sent = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) => send(i % 2 === 0 ? one : two, freshName(), credit)),
      );
      expect(sent.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    });

    it('is no longer the only one after 48 hours', async () => {
      const [first, other] = [freshName(), freshName()];
      const credit = freshCredit();
      await send(one, first, credit);
      await store.endRefund(first.clientId, credit.toLowerCase());
      expect(await send(two, other, credit)).toBe(true);
    });
  });

  it('holds up a caller for the whole client while a customer’s same payment is under way, claimed or sent', async () => {
    const [theirs, whole] = [freshName(), freshName()];
    const alike = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, twin: `twin of ${whole.hash}` };
    const ask = () => two.claim(whole, { ...alike, owner: 'whole' });
    await one.claim(theirs, { ...alike, owner: 'theirs', isCustomers: true });
    expect(await ask()).toEqual({ state: 'busy' });
    await one.markSent(theirs, 'theirs', '{}');
    expect(await ask()).toEqual({ state: 'busy' });
    await one.renew(theirs, 'theirs', 0);
    expect(await ask()).toEqual({ state: 'customers', answer: undefined });
    await one.answer(theirs, HASH, DONE);
    expect(await ask()).toEqual({ state: 'customers', answer: DONE });
    expect(await two.read(whole)).toBeUndefined();
  });

  /** Claims of one input under one key: of customers, and for the whole client. */
  const twins = () => {
    const [theirs, others, whole] = [freshName(), freshName(), freshName()];
    const alike = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, twin: `twin of ${whole.hash}` };
    const byCustomer = (name: RecordName, owner: string) =>
      one.claim(name, { ...alike, owner, isCustomers: true });
    const byClient = (owner: string) => two.claim(whole, { ...alike, owner });
    return { theirs, others, whole, alike, byCustomer, byClient };
  };

  it('takes a customer’s claim whose lease has ended from its call, where one for the whole client goes on', async () => {
    const { theirs, whole, byCustomer, byClient } = twins();
    await byCustomer(theirs, 'late');
    await one.renew(theirs, 'late', 0);
    expect(await byClient('whole')).toEqual({ state: 'claimed' });
    expect(await one.markSent(theirs, 'late', '{}')).toBe(false);
    expect(await byCustomer(theirs, 'late')).toEqual({ state: 'busy' });
    expect(await two.markSent(whole, 'whole', '{}')).toBe(true);
    expect(await byCustomer(theirs, 'again')).toEqual({ state: 'busy' });
    await two.renew(whole, 'whole', 0);
    expect(await byCustomer(theirs, 'again')).toEqual({ state: 'passed-over' });
    await two.answer(whole, HASH, DONE);
    expect(await byCustomer(theirs, 'again')).toEqual({ state: 'passed-over' });
    expect(await one.markSent(theirs, 'again', '{}')).toBe(false);
  });

  it('gives a customer the claim back that was passed over, once the client’s call has moved nothing', async () => {
    for (const end of ['released', 'refused', 'ended'] as const) {
      const { theirs, whole, byCustomer, byClient } = twins();
      await byCustomer(theirs, 'late');
      await one.renew(theirs, 'late', 0);
      await byClient('whole');
      if (end === 'released') await two.release(whole, 'whole');
      if (end === 'refused') await two.answer(whole, HASH, { kind: 'refused', status: 400, text: '' });
      if (end === 'ended') await two.renew(whole, 'whole', 0);
      expect(await byCustomer(theirs, 'late')).toEqual({ state: 'claimed' });
      expect(await two.markSent(whole, 'whole', '{}')).toBe(false);
      expect(await one.markSent(theirs, 'late', '{}')).toBe(true);
    }
  });

  it('finds the payment of one customer, whatever another does under the same key before it or after it', async () => {
    for (const order of ['before', 'after'] as const) {
      for (const end of ['released', 'claimed', 'refused'] as const) {
        const { theirs, others, byCustomer, byClient } = twins();
        const pay = async () => {
          await byCustomer(theirs, 'pays');
          await one.markSent(theirs, 'pays', '{}');
          await one.answer(theirs, HASH, DONE);
        };
        if (order === 'after') await pay();
        expect(await byCustomer(others, 'other')).toEqual({ state: 'claimed' });
        if (order === 'before') await pay();
        if (end === 'released') await one.release(others, 'other');
        if (end === 'claimed') await one.renew(others, 'other', 0);
        if (end === 'refused') await one.answer(others, HASH, { kind: 'refused', status: 400, text: '' });
        expect(await byClient('whole')).toEqual({ state: 'customers', answer: DONE });
      }
    }
  });

  it('waits for a customer’s payment under way, and pays nothing while one is unknown, whatever another’s became', async () => {
    const { theirs, others, byCustomer, byClient } = twins();
    await byCustomer(theirs, 'refused');
    await byCustomer(others, 'open');
    await one.answer(theirs, HASH, { kind: 'refused', status: 400, text: '' });
    expect(await byClient('whole')).toEqual({ state: 'busy' });
    await one.markSent(others, 'open', '{}');
    expect(await byClient('whole')).toEqual({ state: 'busy' });
    await one.renew(others, 'open', 0);
    expect(await byClient('whole')).toEqual({ state: 'customers', answer: undefined });
  });

  it('passes over a customer’s payment of another input, which the key was taken for after nothing had moved', async () => {
    const { theirs, alike, byCustomer, byClient } = twins();
    await byCustomer(theirs, 'first');
    await one.release(theirs, 'first');
    const second = { ...alike, inputHash: 'input-two', twin: `${alike.twin}, input-two`, isCustomers: true };
    await one.claim(theirs, { ...second, owner: 'second' });
    await one.markSent(theirs, 'second', '{}');
    await one.answer(theirs, 'input-two', DONE);
    expect(await byClient('whole')).toEqual({ state: 'claimed' });
  });

  it('gives the owner its claim again, so that a claim whose reply was lost can be repeated', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    expect(await claim(two, name, 'a')).toEqual({ state: 'claimed' });
  });

  it('lets an expired claim be taken over, after which its first owner can send nothing', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    expect(await claim(two, name, 'b')).toEqual({ state: 'busy' });
    await one.renew(name, 'a', 0);
    expect(await claim(two, name, 'b')).toEqual({ state: 'claimed' });
    expect(await one.markSent(name, 'a', '{}')).toBe(false);
    expect(await two.markSent(name, 'b', '{}')).toBe(true);
  });

  it('ends a lease by itself', async () => {
    const name = freshName();
    const begun = performance.now();
    await claim(one, name, 'a', 200);
    await until(async () => (await claim(two, name, 'b')).state === 'claimed');
    // By the clock: the first look of a machine that stands still may come too late. Stores cut times to milliseconds.
    expect(performance.now() - begun).toBeGreaterThan(190);
  });

  it('lets an expired claim be taken over with another input: nothing had left', async () => {
    const name = freshName();
    await claim(one, name, 'a', 0);
    expect(await claim(two, name, 'b', LEASE_MS, 'input-two')).toEqual({ state: 'claimed' });
    expect(await claim(one, name, 'c', LEASE_MS, HASH)).toEqual({ state: 'other-input' });
  });

  it('keeps the very bytes of what was sent, and their time, for whoever takes over', async () => {
    const name = freshName();
    const body = '{"amount":"10.00","description":"año 2026 — ✓ \\u0000 \\"q\\""}\n';
    await claim(one, name, 'a');
    const before = Date.now();
    expect(await one.markSent(name, 'a', body)).toBe(true);
    const after = Date.now();
    expect(await claim(two, name, 'b')).toEqual({ state: 'busy' });
    await one.renew(name, 'a', 0);
    const taken = await claim(two, name, 'b');
    // All of these stores tell the time by this machine's clock.
    const found = taken.state === 'sent' ? taken : undefined;
    expect(found?.body).toBe(body);
    expect(found?.sentAt).toBeGreaterThanOrEqual(before);
    expect(found?.sentAt).toBeLessThanOrEqual(after);
    expect(found?.ageMs).toBeGreaterThanOrEqual(0);
    // The kernel's clock shows hundredths of a second.
    expect(found?.ageMs).toBeLessThanOrEqual(Date.now() - before + 10);
    expect(await claim(one, name, 'c')).toEqual({ state: 'busy' });
  });

  it('does nothing when a step is repeated by its owner', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    expect(await one.markSent(name, 'a', '{}')).toBe(true);
    expect(await one.markSent(name, 'a', '{}')).toBe(true);
    await one.answer(name, HASH, DONE);
    await one.answer(name, HASH, DONE);
    expect(await claim(two, name, 'b')).toEqual({ state: 'answered', answer: DONE });
  });

  it('refuses the sending of whoever never claimed, and of whoever comes after the answer', async () => {
    const name = freshName();
    expect(await one.markSent(name, 'a', '{}')).toBe(false);
    await claim(one, name, 'a');
    await one.answer(name, HASH, DONE);
    expect(await one.markSent(name, 'a', '{}')).toBe(false);
  });

  it('moves the lease of the owner alone', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    await two.renew(name, 'b', 0);
    expect(await claim(two, name, 'b')).toEqual({ state: 'busy' });
    await one.renew(name, 'a', 0);
    await one.renew(name, 'a', LEASE_MS);
    expect(await claim(two, name, 'b')).toEqual({ state: 'busy' });
    await one.renew(name, 'a', 0);
    expect(await claim(two, name, 'b')).toEqual({ state: 'claimed' });
  });

  it.each(['claimed', 'sent'])('frees a key that is %s for its owner alone', async (state) => {
    const name = freshName();
    await claim(one, name, 'a');
    if (state === 'sent') await one.markSent(name, 'a', '{}');
    expect(await two.release(name, 'b')).toBe(false);
    expect(await claim(two, name, 'b')).toEqual({ state: 'busy' });
    // What is repeated, as its reply was lost, says the same.
    for (const _time of ['once', 'again']) expect(await one.release(name, 'a')).toBe(true);
    expect(await claim(two, name, 'b', LEASE_MS, 'input-two')).toEqual({ state: 'claimed' });
  });

  it('never frees by a late release what somebody else has taken over', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    await one.markSent(name, 'a', '{}');
    await one.renew(name, 'a', 0);
    await claim(two, name, 'b');
    expect(await one.release(name, 'a')).toBe(false);
    expect(await claim(one, name, 'c')).toEqual({ state: 'busy' });
  });

  it('leaves what cannot be sent again to its sender, whoever calls with its key', async () => {
    const name = freshName();
    const asked = { ...NOBODYS.asked, operation: 'createInternalTransaction' } as const;
    const call = (records: MoneyRecords, owner: string) =>
      records.claim(name, { owner, inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, asked });
    await call(one, 'a');
    await one.markSent(name, 'a', '{"sent":true}');
    expect(await call(two, 'b')).toEqual({ state: 'busy' });
    await one.renew(name, 'a', 0);
    for (const owner of ['b', 'c'])
      expect(await call(two, owner)).toMatchObject({ state: 'sent', body: '{"sent":true}' });
    expect(await two.release(name, 'b')).toBe(false);
    expect(await one.release(name, 'a')).toBe(true);
    expect(await call(two, 'b')).toEqual({ state: 'claimed' });
  });

  it('never frees an answered key', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    await one.answer(name, HASH, DONE);
    expect(await one.release(name, 'a')).toBe(false);
    expect(await claim(two, name, 'b')).toEqual({ state: 'answered', answer: DONE });
  });

  it('keeps the first done or refused, whoever writes it', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    await one.markSent(name, 'a', '{}');
    await one.renew(name, 'a', 0);
    await claim(two, name, 'b');
    await one.answer(name, HASH, DONE);
    await two.answer(name, HASH, { kind: 'refused', status: 400, text: '' });
    expect(await claim(two, name, 'c')).toEqual({ state: 'answered', answer: DONE });
  });

  it('lets an unknown give way to what is learnt late, and not the other way round', async () => {
    const name = freshName();
    const unknown = { kind: 'unknown', status: 409, text: 'in progress' } as const;
    await claim(one, name, 'a');
    await one.answer(name, HASH, unknown);
    expect(await claim(two, name, 'b')).toEqual({ state: 'answered', answer: unknown });
    await one.answer(name, HASH, DONE);
    await two.answer(name, HASH, unknown);
    expect(await claim(two, name, 'b')).toEqual({ state: 'answered', answer: DONE });
  });

  it.each(['unknown', 'refused'] as const)(
    'is %s by the answer to a first request while nobody has taken the payment over from its sender, or settled it',
    async (kind) => {
      const first = { kind, status: 409, text: 'first' } as const;
      const told = async (name: RecordName) => (await two.read(name))?.answer;
      const [own, taken, done, lost] = [freshName(), freshName(), freshName(), freshName()];
      for (const name of [own, taken, done]) {
        await claim(one, name, 'a');
        await one.markSent(name, 'a', '{}');
        await one.renew(name, 'a', 0);
      }
      for (const name of [taken, done]) expect(await claim(two, name, 'b')).toMatchObject({ state: 'sent' });
      await two.answer(done, HASH, DONE);
      // What is repeated, as its reply was lost, says the same.
      for (const _time of ['once', 'again']) {
        for (const name of [own, lost])
          expect(await one.answer(name, HASH, { ...first, onlyOf: 'a' })).toBe(true);
        for (const name of [taken, done])
          expect(await one.answer(name, HASH, { ...first, onlyOf: 'a' })).toBe(false);
      }
      expect(await Promise.all([own, lost, taken, done].map(told))).toEqual([first, first, null, DONE]);
      expect(await two.answer(taken, HASH, { ...first, onlyOf: 'b' })).toBe(true);
      expect(await told(taken)).toEqual(first);
    },
  );

  it('notes no sending of what is answered, though its end is unknown', async () => {
    const name = freshName();
    const unknown = { kind: 'unknown', status: 409, text: 'in progress' } as const;
    await claim(one, name, 'a');
    await one.answer(name, HASH, unknown);
    expect(await one.markSent(name, 'a', '{}')).toBe(false);
    expect(await claim(two, name, 'b')).toEqual({ state: 'answered', answer: unknown });
  });

  it('takes an answer for a record that was lost, but never for another intent', async () => {
    const lost = freshName();
    await one.answer(lost, HASH, DONE);
    expect(await claim(two, lost, 'b')).toEqual({ state: 'answered', answer: DONE });
    const reused = freshName();
    await claim(one, reused, 'a', LEASE_MS, 'input-two');
    await two.answer(reused, HASH, DONE);
    expect(await claim(one, reused, 'a', LEASE_MS, 'input-two')).toEqual({ state: 'claimed' });
  });

  it('gives the answer of a record that was lost to whoever has the key, as nobody knows any more whose it was', async () => {
    const [name, other] = [freshName(), freshName().hash];
    await one.answer(name, HASH, DONE);
    const byAna = { ...NOBODYS, keyOwner: 'ana', other: { hash: other, isFirst: false } };
    expect(await two.claim(name, { owner: 'ana', inputHash: HASH, leaseMs: LEASE_MS, ...byAna })).toEqual({
      state: 'answered',
      answer: DONE,
    });
  });

  it('takes no answer that is the one to another payment of the client, and the right one after it', async () => {
    const [first, second] = [freshName(), freshName()];
    const id = `Transaction-${first.hash}`;
    await claim(one, second, 'a');
    await one.markSent(second, 'a', '{}');
    expect(await one.answer(first, HASH, DONE, id)).toBe(true);
    for (const _time of [1, 2]) {
      expect(await two.answer(second, HASH, DONE, id.toLowerCase())).toBe(false);
      expect(await two.read(second)).toMatchObject({ state: 'sent', answer: null });
      expect(await two.answer(first, HASH, DONE, id)).toBe(true);
    }
    expect(await one.readByTransactions(first.clientId, [id])).toMatchObject([{ hash: first.hash }]);
    expect(await one.answer(second, HASH, DONE, `${id}-2`)).toBe(true);
    // What is settled stays, whatever comes later.
    expect(await one.answer(second, HASH, DONE, id)).toBe(true);
    expect(await one.readByTransactions(first.clientId, [`${id}-2`])).toMatchObject([{ hash: second.hash }]);
    const elsewhere = { ...freshName(), clientId: `${first.clientId}-other` };
    expect(await one.answer(elsewhere, HASH, DONE, id)).toBe(true);
  });

  it('tells another use of the key at every state', async () => {
    const name = freshName();
    const other = () => claim(two, name, 'b', LEASE_MS, 'input-two');
    await claim(one, name, 'a');
    expect(await other()).toEqual({ state: 'other-input' });
    await one.markSent(name, 'a', '{}');
    expect(await other()).toEqual({ state: 'other-input' });
    await one.renew(name, 'a', 0);
    expect(await other()).toEqual({ state: 'other-input' });
    await one.answer(name, HASH, DONE);
    expect(await other()).toEqual({ state: 'other-input' });
  });

  it('keeps names of one hash apart by client', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    expect(await claim(two, { ...name, clientId: 'another' }, 'b')).toEqual({ state: 'claimed' });
  });

  it('is there for an instance that is opened later', async () => {
    const name = freshName();
    await claim(one, name, 'a');
    await one.markSent(name, 'a', '{"x":1}');
    const three = await store.open();
    await one.renew(name, 'a', 0);
    expect(await claim(three, name, 'c')).toMatchObject({ state: 'sent', body: '{"x":1}' });
    await three.stop();
  });

  it('fails with STORE_UNAVAILABLE once it is stopped', async () => {
    const three = await store.open();
    await three.stop();
    const name = freshName();
    const failure = { code: 'STORE_UNAVAILABLE' };
    await expect(claim(three, name, 'a')).rejects.toMatchObject(failure);
    await expect(three.markSent(name, 'a', '')).rejects.toMatchObject(failure);
    await expect(three.renew(name, 'a', 0)).rejects.toMatchObject(failure);
    await expect(three.answer(name, HASH, DONE)).rejects.toMatchObject(failure);
    await expect(three.release(name, 'a')).rejects.toMatchObject(failure);
  });
});

describe('the record over node:sqlite', () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  const HOUR_MS = 3_600_000;
  const DAY_MS = 24 * HOUR_MS;

  it(`forgets an intent ${RETENTION_DAYS} days after its answer was stored, however far the clock of the machine leaps`, async () => {
    let [now, monotonic] = [Date.now(), 0];
    const open = () =>
      openSqliteRecords(
        join(dataDir, 'money.sqlite'),
        () => now,
        () => monotonic,
      );
    const name = freshName();
    let records = open();
    const claim = (owner: string) => records.claim(name, { owner, inputHash: HASH, leaseMs: 0, ...NOBODYS });
    const listed = async () => {
      const every = {
        customerId: undefined,
        from: undefined,
        to: undefined,
        beyond: undefined,
        isBack: false,
      };
      const of = { clientId: name.clientId, operations: ['createMoneyOut'], classes: ['done'] } as const;
      return (await records.search({ ...every, ...of, limit: 10 })).records.map(({ hash }) => hash);
    };
    await claim('a');
    now += 365 * DAY_MS;
    expect(await records.markSent(name, 'a', '{}')).toBe(true);
    now += 365 * DAY_MS;
    expect(await claim('b')).toMatchObject({ state: 'sent' });
    await records.answer(name, HASH, DONE);
    await records.stop();
    now += 365 * DAY_MS;
    monotonic = 0;
    records = open();
    monotonic = RETENTION_MS - 1;
    expect(await claim('c')).toEqual({ state: 'answered', answer: DONE });
    expect(await listed()).toEqual([name.hash]);
    monotonic = RETENTION_MS;
    expect(await listed()).toEqual([]);
    expect(await claim('d')).toEqual({ state: 'claimed' });
    await records.stop();
  });

  it('has a lease end at its very end, for its own key and for the same payment of another', async () => {
    let monotonic = 0;
    const path = join(dataDir, 'money.sqlite');
    const records = openSqliteRecords(path, Date.now, () => monotonic);
    const [theirs, whole] = [freshName(), freshName()];
    const alike = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS };
    const byCustomer = (owner: string) => records.claim(theirs, { ...alike, owner, isCustomers: true });
    const byClient = () => records.claim(whole, { ...alike, owner: 'whole', leaseMs: 0 });
    expect(await byCustomer('a')).toEqual({ state: 'claimed' });
    monotonic = LEASE_MS - 1;
    for (const claim of [byClient, () => byCustomer('b')]) expect(await claim()).toEqual({ state: 'busy' });
    monotonic = LEASE_MS;
    expect(await byClient()).toEqual({ state: 'claimed' });
    expect(await byCustomer('b')).toEqual({ state: 'claimed' });
    await records.stop();
  });

  it('has a lease of no time be over at once for a process whose clock is a little behind', async () => {
    let ahead = 0;
    const path = join(dataDir, 'money.sqlite');
    await using stack = new AsyncDisposableStack();
    const one = openSqliteRecords(path, Date.now, () => ahead);
    stack.defer(() => one.stop());
    const other = openSqliteRecords(path, Date.now, () => 0);
    stack.defer(() => other.stop());
    const [taken, ended] = [freshName(), freshName()];
    const alike = { inputHash: HASH, ...NOBODYS };
    // The clock of the file is written once a second.
    ahead = 999;
    await one.claim(taken, { ...alike, owner: 'a', leaseMs: 0 });
    await one.claim(ended, { ...alike, owner: 'a', leaseMs: LEASE_MS });
    expect(await other.claim(ended, { ...alike, owner: 'b', leaseMs: 0 })).toEqual({ state: 'busy' });
    await one.renew(ended, 'a', 0);
    for (const name of [taken, ended])
      expect(await other.claim(name, { ...alike, owner: 'b', leaseMs: 0 })).toEqual({ state: 'claimed' });
  });

  it.each([
    ['was set back by two hours meanwhile', -2 * HOUR_MS, 24.5 * HOUR_MS],
    ['leapt ahead by a day', DAY_MS, 0],
  ])('takes a request for old enough when the clock of the machine %s', async (_, leap, elapsed) => {
    const start = Date.now();
    let [now, monotonic] = [start, 0];
    const path = join(dataDir, 'money.sqlite');
    await using stack = new AsyncDisposableStack();
    const opened = Array.from({ length: 2 }, () =>
      openSqliteRecords(
        path,
        () => now,
        () => monotonic,
      ),
    );
    for (const records of opened) stack.defer(() => records.stop());
    const [one, other] = [opened[0] as MoneyRecords, opened[1] as MoneyRecords]; // as many as were opened
    const name = freshName();
    await one.claim(name, { owner: 'a', inputHash: HASH, leaseMs: 0, ...NOBODYS });
    await one.markSent(name, 'a', '{}');
    monotonic = elapsed;
    now = start + elapsed + leap;
    const found = await other.claim(name, { owner: 'b', inputHash: HASH, leaseMs: 0, ...NOBODYS });
    expect(found).toEqual({
      state: 'sent',
      body: '{}',
      sentAt: start,
      ageMs: Math.max(elapsed, elapsed + leap),
    });
  });

  it('takes a request for too old to be repeated when the clock shows a time before it', async () => {
    let now = Date.now();
    const path = join(dataDir, 'money.sqlite');
    const name = freshName();
    const first = openSqliteRecords(path, () => now);
    await first.claim(name, { owner: 'a', inputHash: HASH, leaseMs: 0, ...NOBODYS });
    await first.markSent(name, 'a', '{}');
    await first.renew(name, 'a', 0);
    await first.stop();
    const sentAt = now;
    now -= 2 * HOUR_MS;
    const next = openSqliteRecords(path, () => now);
    const found = await next.claim(name, { owner: 'b', inputHash: HASH, leaseMs: 0, ...NOBODYS });
    expect(found).toEqual({ state: 'sent', body: '{}', sentAt, ageMs: RETENTION_MS });
    await next.stop();
  });

  it('takes no payment for sent that a full disk did not keep, and says so', async () => {
    const script = fileURLToPath(new URL('./fill-disk.ts', import.meta.url));
    // No file of the process may grow past 512 blocks of 512 bytes.
    const limited = ['-c', 'ulimit -f 512; exec "$@"', 'sh', process.execPath, script, dataDir];
    const { stdout } = await promisify(execFile)('sh', limited, { timeout: 300_000 });
    const { marked, codes, ...told }: { marked: number; codes: string[] } = JSON.parse(stdout);
    expect(told).toEqual({ wasAvailable: true, isAvailable: false });
    expect(marked).toBeGreaterThan(0);
    expect(new Set(codes)).toEqual(new Set(['STORE_UNAVAILABLE']));
    const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
    const states: string[] = [];
    for (let index = 0; index <= marked; index += 1) {
      const name = { clientId: 'client', hash: `intent-${index}` };
      states.push(
        (await records.claim(name, { owner: 'b', inputHash: 'input', leaseMs: 0, ...NOBODYS })).state,
      );
    }
    expect(states).toEqual([...Array.from({ length: marked }, () => 'sent'), 'claimed']);
    await records.stop();
  });

  it('keeps its files from other users', async () => {
    const records = await openMoneyRecords({ redisUrl: undefined, dataDir: join(dataDir, 'new'), logger });
    await records.claim(freshName(), { owner: 'a', inputHash: HASH, leaseMs: 1, ...NOBODYS });
    const names = await readdir(join(dataDir, 'new'));
    expect(names).toContain('money.sqlite-shm');
    for (const name of ['.', ...names]) {
      expect((await stat(join(dataDir, 'new', name))).mode & 0o077).toBe(0);
    }
    await records.stop();
  });

  it('writes ahead into a log beside the file', async () => {
    const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
    await records.claim(freshName(), { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
    expect(await readdir(dataDir)).toContain('money.sqlite-wal');
    await records.stop();
  });
});

describe('the record over Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it(`lies under the hash tag of its client, for ${RETENTION_DAYS} days`, async () => {
    const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
    const name = freshName();
    await records.claim(name, { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
    await records.markSent(name, 'a', '{}');
    await records.answer(name, HASH, DONE);
    const key = `pasarela:money:{${name.clientId}}:${name.hash}`;
    const ledger = `pasarela:money:{${name.clientId}}:ledger`;
    const done = `pasarela:money:{${name.clientId}}:payments:*:createMoneyOut:done`;
    const journal = ['journal', 'journal-head'].map((kept) => `pasarela:money:{${name.clientId}}:${kept}`);
    const keys = [ledger, key, done, ...journal, 'pasarela:money:clients'];
    expect((await redis.admin.keys('*')).sort()).toEqual(keys.sort());
    expect(await redis.admin.pttl(key)).toBeGreaterThan(RETENTION_MS - 60_000);
    for (const kept of journal) expect(await redis.admin.pttl(kept)).toBeGreaterThan(JOURNAL_RETENTION_MS);
    await records.stop();
  });

  it('tells people of the client of a customer’s payment as long as that is kept, however late it was settled', async () => {
    const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
    const [theirs, whole] = [freshName(), freshName()];
    const alike = { inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS, twin: `twin of ${whole.hash}` };
    /** Brings the ends of all keys of the client so much nearer. */
    const pass = async (milliseconds: number): Promise<void> => {
      for (const key of await redis.admin.keys(`pasarela:money:{${theirs.clientId}}:*`)) {
        const left = await redis.admin.pttl(key);
        if (left > 0) await redis.admin.pexpire(key, left - milliseconds);
      }
    };
    const [twoDays, anHour] = [2 * 24 * 3_600_000, 3_600_000];
    await records.claim(theirs, { ...alike, owner: 'a', isCustomers: true });
    await records.markSent(theirs, 'a', '{}');
    await pass(twoDays);
    await records.answer(theirs, HASH, DONE);
    await pass(RETENTION_MS - anHour);
    const found = await records.claim(whole, { ...alike, owner: 'b' });
    expect(found).toEqual({ state: 'customers', answer: DONE });
    await records.stop();
  });

  it.each(['Redis', 'Cluster'])(
    'has what was sent on a replica before anything leaves, and refuses when the replica is silent: %s',
    async (form) => {
      const inCluster = form === 'Cluster';
      await using primary = inCluster ? await startCluster() : await startRedis(PROMPT_REPLICAS);
      await using replica = await startRedis(inCluster ? ['--cluster-enabled', 'yes'] : []);
      if (inCluster) {
        await replica.admin.call('CLUSTER', 'MEET', '127.0.0.1', primary.port);
        const id = String(await primary.admin.call('CLUSTER', 'MYID'));
        await until(async () => String(await replica.admin.call('CLUSTER', 'NODES')).includes(id));
        await until(() => replica.admin.call('CLUSTER', 'REPLICATE', id).then(Boolean, () => false));
        await clusterReady(replica);
      } else {
        await replica.admin.call('REPLICAOF', '127.0.0.1', primary.port);
      }
      await until(async () => (await primary.admin.info('replication')).includes('state=online'));
      const redisUrl = inCluster ? clusterUrl(primary) : primary.url;
      const records = await openMoneyRecords({ redisUrl, dataDir: '/dev/null/nowhere', logger });

      const name = freshName();
      await records.claim(name, { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
      // A replica that has just come online may turn away once more.
      await until(() => records.markSent(name, 'a', '{"x":1}').catch(() => false));
      const key = `pasarela:money:{${name.clientId}}:${name.hash}`;
      await replica.admin.call('READONLY').catch(() => undefined);
      expect(await replica.admin.hmget(key, 'state', 'body')).toEqual(['sent', '{"x":1}']);
      expect(await records.markSent(name, 'b', '{"x":1}')).toBe(false);

      replica.freeze();
      await expect(records.answer(name, HASH, DONE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      const other = freshName();
      await records.claim(other, { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
      await expect(records.markSent(other, 'a', '{}')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      });
      await records.stop();
    },
  );

  it('has kept an answer, or freed a key, when the replica that could be promoted has it', async () => {
    await using primary = await startRedis(PROMPT_REPLICAS);
    await using replica = await startRedis(['--replicaof', '127.0.0.1', String(primary.port)]);
    await until(async () => (await primary.admin.info('replication')).includes('state=online'));
    const records = await openMoneyRecords({ redisUrl: primary.url, dataDir: '/dev/null/nowhere', logger });
    const whose = { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS };
    const sent = async () => {
      const name = freshName();
      await records.claim(name, whose);
      await until(() => records.markSent(name, 'a', '{}').catch(() => undefined));
      return name;
    };
    const [answered, freed] = [await sent(), await sent()];
    for (const _time of [1, 2]) {
      replica.freeze();
      await expect(records.answer(answered, HASH, DONE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      replica.thaw();
    }
    await until(() =>
      records.answer(answered, HASH, DONE).then(
        () => true,
        () => undefined,
      ),
    );
    await until(() =>
      records.release(freed, 'a').then(
        () => true,
        () => undefined,
      ),
    );
    await primary.kill();
    await replica.admin.replicaof('NO', 'ONE');
    const promoted = await openMoneyRecords({ redisUrl: replica.url, dataDir: '/dev/null/nowhere', logger });
    expect(await promoted.claim(answered, { ...whose, owner: 'b' })).toMatchObject({ state: 'answered' });
    expect(await promoted.claim(freed, { ...whose, owner: 'b' })).toMatchObject({ state: 'claimed' });
    await promoted.stop();
    await records.stop();
  });

  it('writes something also when a step is repeated, as WAIT counts the writes of its own connection', async () => {
    const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
    const changes = async () =>
      Number(/rdb_changes_since_last_save:(\d+)/.exec(await redis.admin.info('persistence'))?.[1]);
    const [answered, freed] = [freshName(), freshName()];
    for (const name of [answered, freed]) {
      await records.claim(name, { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
      await records.markSent(name, 'a', '{}');
    }
    const steps = [
      () => records.answer(answered, HASH, DONE),
      () => records.release(freed, 'a'),
      () => records.holdPayments(),
    ];
    for (const step of steps) {
      await step();
      const before = await changes();
      await step();
      expect(await changes(), String(step)).toBeGreaterThan(before);
    }
    await records.resume(true);
    await records.stop();
  });

  it('refuses on a primary whose replica has just turned away, as it does to take its place', async () => {
    await using primary = await startRedis(PROMPT_REPLICAS);
    await using replica = await startRedis();
    const isFollowed = async () => (await primary.admin.info('replication')).includes('state=online');
    await replica.admin.call('REPLICAOF', '127.0.0.1', primary.port);
    await until(isFollowed);
    const records = await openMoneyRecords({ redisUrl: primary.url, dataDir: '/dev/null/nowhere', logger });
    const markOne = async () => {
      const name = freshName();
      await records.claim(name, { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
      return records.markSent(name, 'a', '{}');
    };
    // A replica that has just come online may answer late.
    expect(await until(() => markOne().catch(() => undefined))).toBe(true);

    await replica.admin.call('REPLICAOF', 'NO', 'ONE');
    await until(async () => !(await isFollowed()));
    await expect(markOne()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await records.isAvailable()).toBe(false);

    await replica.admin.call('REPLICAOF', '127.0.0.1', primary.port);
    expect(await until(() => markOne().catch(() => undefined))).toBe(true);
    expect(await records.isAvailable()).toBe(true);
    await records.stop();
  });

  it('fails without showing what was to be written', async () => {
    await using full = await startRedis([]);
    const records = await openMoneyRecords({ redisUrl: full.url, dataDir: '/dev/null/nowhere', logger });
    const name = freshName();
    await records.claim(name, { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
    await full.admin.config('SET', 'maxmemory', '1');
    const failure = await records.markSent(name, 'a', 'a-secret').catch((error) => error);
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(inspect(failure, { depth: 10, showHidden: true })).not.toContain('a-secret');
    await records.stop();
  });

  it('opens without a Redis, fails each step at once, and works when Redis comes', async () => {
    await using redis = await startRedis();
    await redis.kill();
    const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
    const claim = () =>
      records.claim(freshName(), { owner: 'a', inputHash: HASH, leaseMs: LEASE_MS, ...NOBODYS });
    await expect(claim()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await redis.start();
    const state = () =>
      claim().then(
        ({ state }) => state,
        (error: Error) => error.name,
      );
    await expect.poll(state).toBe('claimed');
    await records.stop();
  });
});
