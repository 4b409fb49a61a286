import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EventType, StoredEvent } from '../../../src/events/log.ts';
import { BadInputError } from '../../../src/resolvers/errors.ts';
import {
  TransactionStates,
  type TransactionUpdate,
} from '../../../src/resolvers/events/transaction-states.ts';
import {
  isSettled,
  type transactionStatus,
  type transactionSubCategory,
} from '../../../src/resolvers/transaction.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import type { Transaction } from '../../../src/upstream/transactions.ts';
import { type Reading, type Shared, settled, share, startWatch, type WatchOptions } from './watching.ts';

const ID = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const OTHER = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';
const VALIDATION = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const SECOND = 1_000;
const HALF_HOUR = 1_800 * SECOND;
type Status = Exclude<ReturnType<typeof transactionStatus>, 'OTHER'>;
type SubCategory = Exclude<ReturnType<typeof transactionSubCategory>, 'OTHER'>;
// `npm run check:types` asks for the place and the finality of a new state, and for each new sub-category.
/** The place of each documented state among the others. */
const PLACES: Readonly<Record<Status, number>> = { INITIALIZED: 0, LIQUIDATED: 1, REFUNDED: 2 };
const placeOf = new Map(Object.entries(PLACES));
/** Which of the documented states are final, of each documented sub-category. */
const FINAL: Readonly<Record<SubCategory, Readonly<Record<Status, boolean>>>> = {
  SPEI_DEBIT: { INITIALIZED: false, LIQUIDATED: true, REFUNDED: true },
  SPEI_CREDIT: { INITIALIZED: false, LIQUIDATED: false, REFUNDED: true },
  INT_DEBIT: { INITIALIZED: false, LIQUIDATED: true, REFUNDED: true },
  INT_CREDIT: { INITIALIZED: false, LIQUIDATED: true, REFUNDED: true },
};

const transaction = (transactionStatus: string, more: Partial<Transaction> = {}): Transaction => ({
  id: ID,
  amount: '10.00',
  currency: 'MXN',
  category: 'DEBIT_TRANS',
  subCategory: 'SPEI_DEBIT',
  trackingId: 'TRACK1',
  transactionStatus,
  ...more,
});
const credit = (status: string) => transaction(status, { subCategory: 'SPEI_CREDIT' });
const validation = (status: string) =>
  transaction(status, { metadata: { dataCep: { status: 'PENDING', validationId: VALIDATION } } });

let sequence = 0;
function message(type: EventType, payload: unknown): StoredEvent {
  sequence += 1;
  return { cursor: `c${sequence}`, id: `m${sequence}`, type, receivedAt: '2026-11-20T15:30:00Z', payload };
}
const statusUpdate = (id = ID) =>
  message('STATUS_UPDATE', { event: 'transaction.liquidated', data: { id, status: 'LIQUIDATED' } });
const cep = (body: object) => message('CEP', { webhook_type: 'CEP', payload: { body } });

const name = ({ kind, transaction: { transactionStatus } }: TransactionUpdate): string =>
  `${kind} ${transactionStatus}`;

interface Options extends WatchOptions {
  readonly sees?: boolean | Promise<boolean>;
}

const startOn = (shared: Shared, options: Options, ...readings: [Reading, ...Reading[]]) => {
  const { transactionId = ID } = options;
  const states = new TransactionStates(transactionId);
  return startWatch(shared, { name, states, ...options, transactionId }, ...readings);
};
const start = (...readings: [Reading, ...Reading[]]) => startOn(share(), {}, ...readings);

describe('transactionStatus', () => {
  it('shows the state now, then each change, and completes on a final state', async () => {
    const watch = start(transaction('INITIALIZED'), transaction('LIQUIDATED'));
    expect(await watch.next()).toBe('SNAPSHOT INITIALIZED');
    watch.send(statusUpdate());
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
    expect(await watch.next()).toBe('completed');
    expect(watch.ended).toBe(true);
  });

  it.each(Object.entries(FINAL))('knows which states of a %s are final', (subCategory, states) => {
    for (const [status, isFinal] of Object.entries(states))
      expect(isSettled(transaction(status, { subCategory })), status).toBe(isFinal);
  });

  it.each([
    ['a payment out that is LIQUIDATED', transaction('LIQUIDATED')],
    ['anything that is REFUNDED', transaction('REFUNDED', { subCategory: 'NEW' })],
  ])('completes at once for %s', async (_what, reading) => {
    const watch = start(reading);
    expect(await watch.next()).toBe(`SNAPSHOT ${reading.transactionStatus}`);
    expect(await watch.next()).toBe('completed');
  });

  it('goes on where a refund can follow: for a credit, and for a kind that is not documented', async () => {
    for (const subCategory of ['SPEI_CREDIT', 'NEW']) {
      const watch = start(
        transaction('LIQUIDATED', { subCategory }),
        transaction('REFUNDED', { subCategory }),
      );
      expect(await watch.next()).toBe('SNAPSHOT LIQUIDATED');
      await watch.ring();
      expect(await watch.next()).toBe('CHANGE REFUNDED');
      expect(await watch.next()).toBe('completed');
    }
  });

  it('shows a state that is not documented, and never takes it for final', async () => {
    const watch = start(transaction('IN_PROCESS'), transaction('HELD'), transaction('LIQUIDATED'));
    expect(await watch.next()).toBe('SNAPSHOT IN_PROCESS');
    await watch.ring();
    expect(await watch.next()).toBe('CHANGE HELD');
    await watch.ring();
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
  });

  it('never steps back and never repeats itself, whatever the readings say', async () => {
    const status = fc.constantFrom(...placeOf.keys(), 'IN_PROCESS', 'HELD');
    const reading = fc.oneof(
      { weight: 8, arbitrary: status.map(credit) },
      { weight: 1, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constant(new UpstreamError('UPSTREAM_UNAVAILABLE', 'Away.')) },
    );
    await fc.assert(
      fc.asyncProperty(
        status,
        fc.array(reading, { maxLength: 12 }),
        fc.boolean(),
        async (first, rest, hinted) => {
          const watch = start(credit(first), ...rest);
          const shown: string[] = [];
          const all = (async () => {
            for await (const update of watch.updates) shown.push(update.transaction.transactionStatus);
          })();
          await settled();
          for (let step = 0; step < rest.length && !watch.ended; step += 1) {
            if (hinted) watch.send(statusUpdate());
            else await watch.ring();
            await settled();
          }
          const isFinal = shown.includes('REFUNDED');
          if (!isFinal) await watch.leave();
          await all;
          const places = shown.flatMap((state) => placeOf.get(state) ?? []);
          expect(places).toEqual(places.toSorted((one, other) => one - other));
          expect(shown.slice(1)).not.toContain('INITIALIZED');
          for (const [index, state] of shown.entries()) expect(state).not.toBe(shown[index - 1]);
          expect(shown.slice(0, -1)).not.toContain('REFUNDED');
        },
      ),
      { numRuns: 200 },
    );
  });

  it('is refused for a transaction that stays unknown, once a lag has been waited for', async () => {
    const watch = start(null);
    const refused = expect(watch.next()).rejects.toThrow(BadInputError);
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    await refused;
    expect(watch.slept).toEqual([250, 500, 1_000, 2_000, 4_000]);
    expect(watch.ended).toBe(true);
  });

  it('ends with the error when the first reading fails, or the caller may no longer read', async () => {
    await expect(start(new UpstreamError('UPSTREAM_TIMEOUT', 'Late.')).next()).rejects.toThrow('Late.');
    const watch = start(transaction('INITIALIZED'), new UpstreamError('UNAUTHENTICATED', 'Expired.'));
    await watch.next();
    const refused = expect(watch.next()).rejects.toThrow('Expired.');
    watch.send(statusUpdate());
    await refused;
  });

  it('outlives a reading that fails once something has been shown', async () => {
    const failure = new UpstreamError('UPSTREAM_UNAVAILABLE', 'It is away.');
    const watch = start(transaction('INITIALIZED'), failure, transaction('LIQUIDATED'));
    await watch.next();
    const next = watch.next();
    watch.send(statusUpdate());
    await settled();
    await watch.ring();
    expect(await next).toBe('CHANGE LIQUIDATED');
    expect(watch.failures).toEqual([failure]);
  });

  it('holds no alarm once it is over', async () => {
    const shared = share();
    const watch = startOn(shared, {}, transaction('INITIALIZED'), transaction('LIQUIDATED'));
    await watch.next();
    watch.send(statusUpdate());
    await watch.next();
    expect(await watch.next()).toBe('completed');
    expect(shared.time.isAsleep).toBe(false);
  });
});

describe('a hint', () => {
  it.each([
    ['a STATUS_UPDATE that names the id anywhere', () => statusUpdate(ID.toUpperCase())],
    ['a CEP', () => cep({ id: ID, status: 'PENDING' })],
    ['a MONEY_IN', () => message('MONEY_IN', { body: { id: ID, amount: '10.00' } })],
  ])('is %s', async (_what, told) => {
    const watch = start(transaction('INITIALIZED'), transaction('LIQUIDATED'));
    await watch.next();
    watch.send(told());
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
    expect(watch.reads).toBe(2);
  });

  it.each([
    ['the validation id', { id: VALIDATION, status: 'PENDING' }],
    ['the tracking key', { id: OTHER, tracking_key: 'TRACK1', status: 'PENDING' }],
  ])('is a CEP that names a penny validation by %s', async (_what, body) => {
    const watch = start(validation('INITIALIZED'), validation('LIQUIDATED'));
    await watch.next();
    watch.send(cep(body));
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
  });

  it('is a CEP that names a penny validation by what only a later reading has shown', async () => {
    const watch = start(transaction('INITIALIZED'), validation('INITIALIZED'), validation('LIQUIDATED'));
    await watch.next();
    await watch.ring();
    expect(watch.reads).toBe(2);
    watch.send(cep({ id: VALIDATION, status: 'PENDING' }));
    await settled();
    expect(watch.reads).toBe(3);
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
  });

  it('is not lost where it comes while the transaction is being read for the first time', async () => {
    const first = Promise.withResolvers<Transaction | null>();
    const watch = start(first.promise, transaction('LIQUIDATED'));
    const snapshot = watch.next();
    await settled();
    watch.send(statusUpdate());
    first.resolve(transaction('INITIALIZED'));
    expect(await snapshot).toBe('SNAPSHOT INITIALIZED');
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
  });

  it('is not lost where it comes while the transaction is being read again: that reading may be older', async () => {
    const second = Promise.withResolvers<Transaction | null>();
    const watch = start(transaction('INITIALIZED'), second.promise, transaction('LIQUIDATED'));
    await watch.next();
    await watch.ring();
    watch.send(statusUpdate());
    second.resolve(transaction('INITIALIZED'));
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
  });

  it.each([
    ['remembers', true],
    ['does not remember', false],
  ])(
    'by a name that the reading tells, in between, is not lost where the feed %s',
    async (_what, remembers) => {
      const first = Promise.withResolvers<Transaction | null>();
      const watch = startOn(share(), { remembers }, first.promise, validation('LIQUIDATED'));
      const snapshot = watch.next();
      await settled();
      watch.send(cep({ id: VALIDATION, status: 'PENDING' }));
      first.resolve(validation('INITIALIZED'));
      expect(await snapshot).toBe('SNAPSHOT INITIALIZED');
      expect(await watch.next()).toBe('CHANGE LIQUIDATED');
    },
  );

  it.each([
    ['remembers', true],
    ['does not remember', false],
  ])(
    'by a name that a later reading tells, before it, has the transaction read where the feed %s',
    async (_what, remembers) => {
      const second = Promise.withResolvers<Transaction | null>();
      const readings = [
        transaction('INITIALIZED'),
        second.promise,
        validation('INITIALIZED'),
        validation('LIQUIDATED'),
      ] as const;
      const watch = startOn(share(), { remembers }, ...readings);
      await watch.next();
      watch.send(cep({ id: VALIDATION, status: 'PENDING' }));
      await watch.ring();
      expect(watch.reads).toBe(2);
      second.resolve(validation('INITIALIZED'));
      await settled();
      expect(watch.reads).toBe(3);
      const before = watch.slept.length;
      await watch.ring();
      expect(await watch.next()).toBe('CHANGE LIQUIDATED');
      expect(watch.slept.slice(before - 1)).toEqual([1_000]);
    },
  );

  it('by a name that later readings tell several who share them is one', async () => {
    const shared = share();
    const readings = [transaction('INITIALIZED'), validation('INITIALIZED')] as const;
    const watches = [startOn(shared, {}, ...readings), startOn(shared, {}, ...readings)];
    for (const watch of watches) await watch.next();
    const told = cep({ id: VALIDATION, status: 'PENDING' });
    for (const watch of watches) watch.send(told);
    // The schedule's, the hint's, and two that follow it.
    for (let ring = 0; ring < 3; ring += 1) await shared.time.ring();
    expect(watches.map((watch) => watch.reads)).toEqual([3, 3]);
  });

  it('is followed by two readings more where what is read lags behind it', async () => {
    const watch = start(
      transaction('INITIALIZED'),
      transaction('INITIALIZED'),
      transaction('INITIALIZED'),
      transaction('LIQUIDATED'),
    );
    await watch.next();
    const before = watch.slept.length;
    watch.send(statusUpdate());
    await settled();
    await watch.ring();
    await watch.ring();
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
    expect(watch.slept.slice(before)).toEqual([1_000, 3_000]);
  });

  it('has the transaction read though an earlier one had its id, and other contents', async () => {
    const watch = start(transaction('INITIALIZED'), transaction('INITIALIZED'), transaction('LIQUIDATED'));
    await watch.next();
    const pending = cep({ id: ID, status: 'PENDING' });
    const completed = cep({ id: ID, status: 'COMPLETED' });
    watch.send(pending);
    await settled();
    expect(watch.reads).toBe(2);
    watch.send({ ...completed, id: pending.id, receivedAt: '2026-11-20T15:31:30Z' });
    await settled();
    expect(watch.reads).toBe(3);
    expect(await watch.next()).toBe('CHANGE LIQUIDATED');
  });

  it('that names something else costs nothing', async () => {
    const watch = start(transaction('INITIALIZED'));
    await watch.next();
    watch.send(statusUpdate(OTHER), cep({ id: OTHER, tracking_key: 'TRACK1', status: 'PENDING' }));
    await settled();
    expect(watch.reads).toBe(1);
  });
});

describe('readings of transactions', () => {
  /** Lets time pass, and counts the readings made meanwhile. */
  async function readingsIn(
    shared: Shared,
    ms: number,
    watches: readonly { readonly reads: number }[],
    onStep: () => void = () => undefined,
  ): Promise<number[]> {
    const { clock } = shared.time;
    const begun = clock.now();
    const at: number[] = [];
    const sum = () => watches.reduce((reads, watch) => reads + watch.reads, 0);
    let before = sum();
    for (;;) {
      await shared.time.ring();
      if (clock.now() - begun > ms) return at;
      for (const now = sum(); before < now; before += 1) at.push(clock.now() - begun);
      onStep();
    }
  }

  it('without any message come at most 5 s apart in the first minute, and are 45 at most in half an hour', async () => {
    const shared = share();
    const watch = startOn(shared, {}, transaction('INITIALIZED'));
    await watch.next();
    const at = await readingsIn(shared, HALF_HOUR, [watch]);
    expect(at[0]).toBe(2 * SECOND);
    for (const [index, time] of at.entries()) {
      const before = at[index - 1] ?? 0;
      if (before < 60 * SECOND) expect(time - before).toBeLessThanOrEqual(4 * SECOND);
    }
    expect(at.length).toBeGreaterThan(30);
    expect(1 + at.length).toBeLessThanOrEqual(45);
  });

  it('are as many however many watch, whenever they came and whether they left in between', async () => {
    const shared = share();
    const watches = [startOn(shared, {}, transaction('INITIALIZED'))];
    for (const watch of watches) await watch.next();
    let first = 1;
    const at = await readingsIn(shared, HALF_HOUR, watches, () => {
      void watches.at(-1)?.leave();
      for (let more = 0; more < 3; more += 1) {
        const watch = startOn(shared, {}, transaction('INITIALIZED'));
        watches.push(watch);
        first += 1;
        void watch.next();
      }
    });
    // Each begins with a reading of its own, which shows that it may read the transaction at all.
    expect(watches.length).toBe(first);
    expect(at.length - (first - 1)).toBeLessThanOrEqual(44);
  });

  it('are 45 at most in half an hour where hints come without end', async () => {
    const shared = share();
    const watch = startOn(shared, {}, transaction('INITIALIZED'));
    await watch.next();
    const at = await readingsIn(shared, HALF_HOUR, [watch], () => watch.send(statusUpdate()));
    expect(1 + at.length).toBeLessThanOrEqual(45);
  });

  it('serve all who watch one transaction, by each in turn', async () => {
    const shared = share();
    const watches = Array.from({ length: 50 }, () => startOn(shared, {}, transaction('INITIALIZED')));
    for (const watch of watches) await watch.next();
    const told = statusUpdate();
    for (const watch of watches) watch.send(told);
    await settled();
    expect(watches.reduce((sum, { reads }) => sum + reads, 0)).toBe(watches.length + 1);
    for (let poll = 0; poll < 3; poll += 1) await shared.time.ring();
    expect(Math.max(...watches.map(({ reads }) => reads))).toBe(2);
  });

  it('are shown to all of them', async () => {
    const shared = share();
    const watches = Array.from({ length: 50 }, () =>
      startOn(shared, {}, transaction('INITIALIZED'), transaction('LIQUIDATED')),
    );
    for (const watch of watches) await watch.next();
    watches[0]?.send(statusUpdate());
    for (const watch of watches) expect(await watch.next()).toBe('CHANGE LIQUIDATED');
    for (const watch of watches) expect(await watch.next()).toBe('completed');
    expect(watches.reduce((sum, { reads }) => sum + reads, 0)).toBe(watches.length + 1);
  });

  it('of another are shown to those alone who may see it', async () => {
    const shared = share();
    const reader = startOn(shared, {}, credit('INITIALIZED'), credit('LIQUIDATED'));
    const narrowed = startOn(shared, { sees: Promise.resolve(true) }, credit('INITIALIZED'));
    const blind = startOn(shared, { sees: Promise.resolve(false) }, credit('INITIALIZED'));
    for (const watch of [reader, narrowed, blind]) await watch.next();
    reader.send(statusUpdate());
    expect(await reader.next()).toBe('CHANGE LIQUIDATED');
    expect(await narrowed.next()).toBe('CHANGE LIQUIDATED');
    const nothing = blind.next();
    await settled();
    await blind.leave();
    expect(await nothing).toBe('completed');
  });

  it('that began before somebody came are not taken for newer than its own', async () => {
    const shared = share();
    const slow = Promise.withResolvers<Transaction | null>();
    const first = startOn(shared, {}, credit('IN_PROCESS'), slow.promise);
    await first.next();
    await shared.time.ring();
    const second = startOn(shared, {}, credit('HELD'));
    expect(await second.next()).toBe('SNAPSHOT HELD');
    slow.resolve(credit('LATE'));
    expect(await first.next()).toBe('CHANGE LATE');
    const nothing = second.next();
    await settled();
    await second.leave();
    expect(await nothing).toBe('completed');
  });

  it('go on under another credential where one is refused, which alone ends', async () => {
    const shared = share();
    const refused = startOn(
      shared,
      {},
      transaction('INITIALIZED'),
      new UpstreamError('FORBIDDEN', 'No more.'),
    );
    const other = startOn(shared, {}, transaction('INITIALIZED'), transaction('LIQUIDATED'));
    for (const watch of [refused, other]) await watch.next();
    const ends = expect(refused.next()).rejects.toThrow('No more.');
    refused.send(statusUpdate());
    await ends;
    expect(await other.next()).toBe('CHANGE LIQUIDATED');
  });

  it('that a message hints at do not wait behind the rate, and count for it', async () => {
    const perSecond = 2;
    const shared = share(perSecond);
    const ids = Array.from(
      { length: 40 },
      (_, index) => `3f2b1c9e-8d4a-4f6b-9a57-${String(index).padStart(12, '0')}`,
    );
    const watches = ids.map((transactionId) =>
      startOn(shared, { transactionId }, transaction('INITIALIZED')),
    );
    for (const watch of watches) {
      await watch.next();
      shared.time.pass(10);
    }
    const read = () => watches.filter(({ reads }) => reads > 1).length;
    while (read() < perSecond) await shared.time.ring();
    const last = watches.at(-1);
    last?.send(statusUpdate(ids.at(-1)));
    await settled();
    expect(last?.reads).toBe(2);
    const before = shared.time.clock.now();
    await shared.time.ring();
    while (read() < perSecond + 2) await shared.time.ring();
    expect(shared.time.clock.now() - before).toBeGreaterThanOrEqual(SECOND / perSecond);
  });
});
