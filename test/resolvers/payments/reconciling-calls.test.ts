import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger as logger } from '../../../src/common/logger.ts';
import { openEventLog } from '../../../src/events/open.ts';
import { systemAmbient } from '../../../src/money/ambient.ts';
import { inputHash, recordName } from '../../../src/money/intent.ts';
import {
  BaselineLostError,
  type ReconcilingCalls,
  reconcileBalances,
} from '../../../src/money/reconciling/reconciler.ts';
import { type PaymentRecord, RETENTION_DAYS } from '../../../src/money/record.ts';
import { openSqliteRecords } from '../../../src/money/sqlite/sqlite-record.ts';
import { createReconcilingCalls } from '../../../src/resolvers/payments/reconciling-calls.ts';
import { available, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';
import { NOBODYS, SHOWN } from '../../money/orders.ts';

const HOUR = 3_600_000;
const [ACCOUNT, INSTRUMENT] = [randomUUID(), randomUUID()];
const TIMES = { everyMs: 50, marginMs: 10 };

/** The service is in one process with the calls to it: none is given up while both stand still. */
const patient = () => ({ timeoutMs: 60_000, deadline: Date.now() + 60_000 });

let cleanup: AsyncDisposableStack;
beforeEach(() => {
  cleanup = new AsyncDisposableStack();
});
afterEach(() => cleanup.disposeAsync());

/** One account of a client, and a payment out of it whose answer was lost two hours ago. */
async function aClient(marginMs = TIMES.marginMs) {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-reconciling-calls-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  let behindMs = 2 * HOUR;
  const now = () => Date.now() - behindMs;
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'), now, now, undefined);
  cleanup.defer(() => records.stop());
  const log = await openEventLog({ dataDir, retention: 10_000, logger: recordingLogger() });
  cleanup.defer(() => log.stop());
  await available(log);
  let balance = '500.00';
  let onRead: (() => Promise<unknown>) | undefined;
  const service = cleanup.use(
    await startUpstream(async (request, response) => {
      await onRead?.();
      // A credit at which the service fails.
      if (request.url?.includes('/transactions/')) {
        response.writeHead(500).end();
        return;
      }
      const account = { id: ACCOUNT, clabeNumber: '646180157000000004', instrumentId: INSTRUMENT };
      const data = [{ ...account, availableBalance: balance }];
      json(response, { data, totalItem: 1, currentPage: 1, perPage: 50 });
    }),
  );
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT_ID, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', key);
  const asked = { ...NOBODYS.asked, amount: '100.00', source: INSTRUMENT };
  await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: hash, leaseMs: 0, twin: key });
  await records.markSent(name, 'call', '{}', { upstreamKey: null, original: null });
  behindMs = 0;
  const calls = createReconcilingCalls({
    ...{ clientId: CLIENT_ID, log, utcOffset: '-06:00', marginMs },
    rest: () => service.restOf(patient()),
    turn: () => undefined,
    now: () => Date.now(),
    sleep: systemAmbient.sleep,
  });
  const told: string[] = [];
  const outcomes: string[] = [];
  const stopping = new AbortController();
  return {
    calls,
    log,
    told,
    outcomes,
    /** Compares from now on. */
    begin(ownCalls: ReconcilingCalls): void {
      const parts = {
        ...{ records, ambient: systemAmbient, logger, ...TIMES, marginMs },
        onComparison: (outcome: string) => outcomes.push(outcome),
        onDifference: (direction: string) => told.push(direction),
      };
      const running = reconcileBalances(new Map([[CLIENT_ID, ownCalls]]), parts, stopping.signal);
      cleanup.defer(async () => {
        stopping.abort();
        await running;
      });
    },
    /** Until balances were compared so many times more. */
    async compared(times: number): Promise<void> {
      const count = () => outcomes.filter((outcome) => outcome === 'compared').length;
      const before = count();
      await until(() => count() >= before + times);
    },
    pay: () => records.answer(name, hash, { kind: 'done', status: 200, text: '{}' }, randomUUID()),
    move(left: string): void {
      balance = left;
    },
    /** What happens before the service answers with the balances. */
    beforeAnswer(happens: () => Promise<unknown>): void {
      onRead = happens;
    },
    /** A refund of 50.00 that is done, of a credit that the service does not show. */
    async refund(): Promise<void> {
      const own = randomUUID();
      const refundName = recordName({ clientId: CLIENT_ID, customerId: undefined, key: own });
      const refundHash = inputHash('refundTransaction', own);
      const order = { ...asked, operation: 'refundTransaction', source: null, destination: null } as const;
      const whose = { ...NOBODYS, asked: { ...order, amount: '50.00' }, owner: 'call', twin: own };
      await records.claim(refundName, { ...whose, inputHash: refundHash, leaseMs: 0 });
      await records.markSent(refundName, 'call', '{}', { upstreamKey: null, original: randomUUID() });
      const text = JSON.stringify({ originalTransactionId: randomUUID() });
      const answered = { kind: 'done', status: 200, text } as const;
      await records.answer(refundName, refundHash, answered, randomUUID());
    },
  };
}

it('a payment that was open when the balances were first read explains what it moves afterwards', async () => {
  const { calls, begin, compared, outcomes, told, pay, move } = await aClient();
  begin(calls);
  await until(() => outcomes.includes('first'));
  move('400.00');
  await pay();
  await compared(3);
  expect(told).toEqual([]);
});

it('so does one that was open when the comparison began anew', async () => {
  const { calls, begin, compared, outcomes, told, pay, move } = await aClient();
  let losses = 0;
  begin({
    ...calls,
    gather: (...args) => {
      losses += 1;
      return losses === 1 ? Promise.reject(new BaselineLostError('lost')) : calls.gather(...args);
    },
  });
  await until(() => losses === 1 && outcomes.length >= 2);
  move('400.00');
  await pay();
  await compared(3);
  expect(told).toEqual([]);
});

it('one that had moved before, and was known to be done only after the first reading, makes no difference', async () => {
  const { calls, begin, compared, outcomes, told, pay, move } = await aClient();
  move('400.00');
  begin(calls);
  await until(() => outcomes.includes('first'));
  await pay();
  await compared(3);
  expect(told).toEqual([]);
});

it('what it does not explain is told all the same', async () => {
  const { calls, begin, outcomes, told, pay, move } = await aClient();
  begin(calls);
  await until(() => outcomes.includes('first'));
  move('390.00');
  await pay();
  await until(() => told.length > 0);
  expect(told).toEqual(['less']);
});

it('a refund of a credit at which the service fails keeps no balance from being compared', async () => {
  const { calls, begin, compared, outcomes, told, refund, move } = await aClient();
  begin(calls);
  await until(() => outcomes.includes('first'));
  move('450.00');
  await refund();
  await until(() => outcomes.length >= 4);
  expect(outcomes).not.toContain('failed');
  // Of whichever account it was, it explains what it has moved, and no more.
  expect(told).toEqual([]);
  move('420.00');
  await until(() => told.length > 0);
  await compared(2);
  expect(told).toEqual(['less']);
});

it('a credit whose event comes while the balances are read is among those that explain them', async () => {
  const { calls, log, beforeAnswer } = await aClient();
  await log.append(CLIENT_ID, moneyIn({ id: 'before' }));
  beforeAnswer(() => log.append(CLIENT_ID, moneyIn({ id: 'meanwhile' })));
  const { cursor } = await calls.look(new AbortController().signal);
  const { events } = await log.readAfter(CLIENT_ID, cursor, 10);
  expect(events.map(({ id }) => id)).toEqual(['meanwhile']);
});

it('a credit that a balance shows only after its event is in the log makes no difference', async () => {
  const { calls, log, begin, compared, told, move } = await aClient(300);
  await log.append(CLIENT_ID, moneyIn());
  // The service has its answer to the webhook, and reads of it lag behind.
  setTimeout(() => move('600.00'), 150);
  begin(calls);
  await compared(3);
  expect(told).toEqual([]);
});

/**
 * What is gathered over so much of a log, and of a record in which these payments are found by their class, from a service that shows each
 * credit, or fails at it.
 */
async function gathering(
  log: Parameters<typeof createReconcilingCalls>[0]['log'],
  found: (classes: readonly string[]) => readonly PaymentRecord[],
  isAway = () => false,
  now = 0,
  awayStatus = 500,
) {
  const service = cleanup.use(
    await startUpstream(({ url = '' }, response) => {
      if (isAway()) {
        response.writeHead(awayStatus).end();
        return;
      }
      const id = url.split('/').at(-1);
      const kind = { category: 'CREDIT_TRANS', subCategory: 'SPEI_CREDIT', transactionStatus: 'REFUNDED' };
      const destinationInstrument = { id: INSTRUMENT };
      json(response, { id, amount: '1.00', currency: 'MXN', ...kind, destinationInstrument });
    }),
  );
  const calls = createReconcilingCalls({
    ...{ clientId: CLIENT_ID, log, utcOffset: '-06:00', marginMs: TIMES.marginMs },
    rest: () => service.restOf(patient()),
    turn: () => undefined,
    now: () => now,
    sleep: systemAmbient.sleep,
  });
  const reading = { from: 0, to: 0, balances: {} };
  const kept = { baseline: reading, cursors: ['start', 'start'], open: [] } as const;
  const accounts = [{ id: ACCOUNT, clabe: '646180157000000004', instrumentId: INSTRUMENT }];
  const book = {
    search: async ({ classes }: { readonly classes: readonly string[] }) => ({
      records: found(classes),
      next: undefined,
    }),
    read: async () => undefined,
    // Of the record nothing else is asked.
  } as unknown as Parameters<typeof calls.gather>[2];
  return {
    requests: service.requests,
    gather: () =>
      calls.gather({ cursor: 'start', reading, accounts }, kept, book, new AbortController().signal),
  };
}

it('a comparison that ends while it waits for its turn reads nothing more', async () => {
  const stopping = new AbortController();
  const ended = createReconcilingCalls({
    ...{ clientId: CLIENT_ID, utcOffset: '-06:00', marginMs: TIMES.marginMs, now: () => Date.now() },
    sleep: systemAmbient.sleep,
    log: { head: unread, readAfter: unread },
    rest: unread,
    turn: async () => stopping.abort(new Error('ended')),
  });
  await expect(ended.open({ search: unread, read: unread }, stopping.signal)).rejects.toThrow('ended');
});

const unread = (): never => {
  throw new Error('is not read');
};

it('each credit of the log counts once, on however many pages it comes', async () => {
  const asked: (string | null)[] = [];
  const pages = new Map(
    [
      ['start', ['a', 'b']],
      ['b', ['c', 'd']],
      ['d', ['e']],
    ].map(([after, cursors]) => [after as string, cursors as string[]]),
  );
  const { gather } = await gathering(
    {
      head: async () => 'e',
      readAfter: async (_clientId, cursor) => {
        asked.push(cursor);
        const events = (pages.get(cursor ?? '') ?? []).map((own) => ({
          ...{ cursor: own, id: own, type: 'MONEY_IN' as const, receivedAt: new Date().toISOString() },
          payload: { body: { beneficiary_account: '646180157000000004', amount: '1.00' } },
        }));
        return { events, hasMore: cursor !== 'd' };
      },
    },
    () => [],
  );
  expect((await gather()).movements).toHaveLength(5);
  expect(asked).toEqual(['start', 'b', 'd']);
});

const EMPTY = { head: async () => 'start', readAfter: async () => ({ events: [], hasMore: false }) };

it('a payment that is settled while the record is read is among those that explain the balances', async () => {
  const payment = {
    ...{ id: 'one', hash: 'one', state: 'sent', isHeld: false, createdAt: 0, settledAt: null },
    asked: { ...SHOWN, customerId: null, operation: 'createMoneyOut', amount: '1.00', source: INSTRUMENT },
    sent: { sentAt: 0, ageMs: 0 },
    answer: null,
    original: null,
    // As much of it as is looked at.
  } as unknown as PaymentRecord;
  let current = 'open';
  const { gather } = await gathering(EMPTY, (classes) => {
    const records = classes.includes(current) ? [payment] : [];
    current = 'done';
    return records;
  });
  expect((await gather()).open).toEqual(['one']);
});

/** So many refunds that are done, each of a credit of its own. */
const refundsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...{ id: `${index}`, hash: `${index}`, state: 'answered', isHeld: false, createdAt: 0, settledAt: 0 },
    asked: { ...SHOWN, customerId: null, operation: 'refundTransaction', amount: '1.00' },
    sent: { sentAt: 0, ageMs: 0 },
    answer: { kind: 'done', status: 200, text: '{}' },
    original: randomUUID(),
    // As much of each as is looked at.
  })) as unknown as readonly PaymentRecord[];

it.each([500, 404])(
  'a credit to which %i was answered is looked up again for the next comparison, and known from then on',
  async (status) => {
    const refunds = refundsOf(1);
    let isAway = true;
    const found = (classes: readonly string[]) => (classes.includes('done') ? refunds : []);
    const { gather, requests } = await gathering(EMPTY, found, () => isAway, 0, status);
    const accounts = async () =>
      (await gather()).movements.map(({ account, isCertain }) => [account, isCertain]);
    expect(await accounts()).toEqual([[null, false]]);
    isAway = false;
    for (let time = 0; time < 2; time += 1) {
      expect(await accounts()).toEqual([[ACCOUNT, true]]);
      expect(requests).toHaveLength(2);
    }
  },
);

it('of the payments whose amount nothing tells, those are counted that may have moved since the baseline', async () => {
  const refunds = refundsOf(2).map((refund, index) => ({
    ...refund,
    asked: refund.asked && { ...refund.asked, amount: null },
    settledAt: index === 0 ? -HOUR : 0,
  }));
  const found = (classes: readonly string[]) => (classes.includes('done') ? refunds : []);
  const { gather } = await gathering(EMPTY, found, () => true);
  expect((await gather()).amountUnknown).toEqual(['1']);
});

it('a baseline from which on the record no longer holds all payments is lost', async () => {
  const at = (now: number) => gathering(EMPTY, () => [], undefined, now);
  const day = 24 * HOUR;
  expect(await (await at(RETENTION_DAYS * day)).gather()).toMatchObject({ movements: [] });
  await expect((await at(RETENTION_DAYS * day + 1)).gather()).rejects.toThrow(BaselineLostError);
});

it('a payment that was settled just before the baseline by the clock of another process is read again for the next comparison, as it may have moved after it', async () => {
  const settled = [TIMES.marginMs, TIMES.marginMs + 1];
  const refunds = refundsOf(2).map((refund, index) => ({ ...refund, settledAt: -(settled[index] ?? 0) }));
  const { gather } = await gathering(EMPTY, (classes) => (classes.includes('done') ? refunds : []));
  expect((await gather()).open).toEqual(['0']);
});

it('the credit of a refund that had moved before the baseline is not looked up', async () => {
  const settled = [-TIMES.marginMs - 1, 0];
  const refunds = refundsOf(2).map((refund, index) => ({ ...refund, settledAt: settled[index] ?? 0 }));
  const { gather, requests } = await gathering(EMPTY, (classes) => (classes.includes('done') ? refunds : []));
  await gather();
  expect(requests).toHaveLength(1);
});

it('of the credits that refunds return a hundred are looked up for one comparison, and the others for the next', async () => {
  const refunds = refundsOf(120);
  const { gather, requests } = await gathering(EMPTY, (classes) => (classes.includes('done') ? refunds : []));
  await gather();
  expect(requests).toHaveLength(100);
  await gather();
  expect(requests).toHaveLength(120);
  await gather();
  expect(requests).toHaveLength(120);
});

it('a credit that is known counts as known, however many others are to be looked up before it', async () => {
  const refunds = refundsOf(102);
  let some = refunds.slice(-1);
  const { gather } = await gathering(EMPTY, (classes) => (classes.includes('done') ? some : []));
  await gather();
  some = [...refunds];
  const accounts = (await gather()).movements.map(({ account }) => account);
  expect(accounts).toEqual([...Array.from({ length: 100 }, () => ACCOUNT), null, ACCOUNT]);
});
