import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { GivenUpError } from '../../src/common/attempt.ts';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { systemAmbient } from '../../src/money/ambient.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { JournalEntries } from '../../src/money/journal/entries.ts';
import { createPersistence } from '../../src/money/persist.ts';
import {
  type Claim,
  type MoneyRecords,
  RecordsUnavailableError,
  type StoredAnswer,
} from '../../src/money/record.ts';
import { openRedisRecords } from '../../src/money/redis/redis-record.ts';
import {
  type SettlingCalls,
  type SettlingResult,
  settleOpen,
} from '../../src/money/settling/open-payment.ts';
import type { OpenPayment } from '../../src/money/settling/open-records.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS, SHOWN } from './orders.ts';
import { patient, STORES } from './stores.ts';

const OWNER = 'settler';
const CLIENT = randomUUID();
const REFUSED = {
  kind: 'answered',
  status: 400,
  text: '{"code":3}',
  body: { code: 3 },
  retryAfterMs: undefined,
} as const;

/** A payment that was sent and whose answer was lost. */
async function leaveOpen(
  records: MoneyRecords,
  operation: 'createMoneyOut' | 'createInternalTransaction',
  whose: Partial<Claim> = {},
) {
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT, customerId: undefined, key });
  const hash = inputHash(operation, key);
  const asked = { operation, customerId: null, ...SHOWN };
  const claim = { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key, asked, ...whose };
  await records.claim(name, claim);
  await records.markSent(name, 'call', '{}', { upstreamKey: key, original: null });
  return { name, hash, claim };
}

/** The service's answers as a gateway would read them, where each is what the test says. */
function callsWith(answers: Partial<SettlingCalls>): SettlingCalls {
  const reading = () => ({ isServiceError: () => true, compare: () => ({ kind: 'same' }) as const });
  const never = () => Promise.reject(new Error('Nobody asks for this.'));
  return { repeat: never, look: never, reading, codeOf: () => '3', isOver: () => false, ...answers };
}

const accepted = (id: string): Partial<SettlingCalls> => ({
  repeat: async () => ({
    kind: 'answered',
    status: 200,
    text: JSON.stringify({ id }),
    body: { id },
    retryAfterMs: undefined,
  }),
});
const seen = (id: string): Partial<SettlingCalls> => ({
  look: async () => ({ kind: 'done', text: JSON.stringify({ id }), transactionId: id }),
});

it.each(STORES)('what settles a payment is never another payment’s, over %s', async (_kind, makeStore) => {
  await using cleanup = new AsyncDisposableStack();
  const store = await makeStore();
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const parts = {
    records,
    persistence: createPersistence(records, systemAmbient, logger),
    ambient: systemAmbient,
  };
  const settled: string[] = [];
  const mismatches: (readonly string[])[] = [];
  const unread: unknown[] = [];
  const settle = async (
    { name }: { readonly name: Parameters<MoneyRecords['hasten']>[0] },
    answers: Partial<SettlingCalls>,
  ): Promise<SettlingResult> => {
    await records.hasten(name);
    const payment = await records.takeOpen(name, OWNER, 60_000);
    if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
    const onSettled = (_payment: unknown, kind: string, by: string) => settled.push(`${kind} by ${by}`);
    const onMismatch = (_payment: unknown, fields: readonly string[]) => mismatches.push(fields);
    const onUnread = (of: unknown, answer: unknown) => unread.push([of, answer]);
    const onLookFailed = (_payment: unknown, err: unknown) => expect(err).toBeUndefined();
    return settleOpen(payment, callsWith(answers), {
      ...parts,
      ...{ onSettled, onLookFailed, onMismatch, onUnread, onGivenUp: () => {} },
    });
  };

  const earlier = await leaveOpen(records, 'createMoneyOut');
  const id = randomUUID();
  expect(await settle(earlier, accepted(id))).toBe('settled');

  const out = await leaveOpen(records, 'createMoneyOut');
  const internal = await leaveOpen(records, 'createInternalTransaction');
  for (const _time of [1, 2]) {
    expect(await settle(out, accepted(id.toUpperCase()))).toBe('open');
    expect(await settle(internal, seen(id.toUpperCase()))).toBe('open');
  }
  for (const { name } of [out, internal]) expect(await records.read(name)).toMatchObject({ answer: null });
  expect(settled).toEqual(['done by repeat']);
  expect(mismatches).toEqual([['id'], ['id']]);
  expect(await records.readByTransactions(CLIENT, [id])).toMatchObject([{ hash: earlier.name.hash }]);

  expect(unread).toEqual([]);
  const moved = { ...REFUSED, status: 308 };
  expect(await settle(out, { repeat: async () => moved })).toBe('away');
  expect(unread).toEqual([[{ mutation: 'createMoneyOut', name: out.name }, moved]]);

  expect(await settle(out, { repeat: async () => REFUSED })).toBe('settled');
  expect(await settle(internal, seen(randomUUID()))).toBe('settled');
  expect(settled).toEqual(['done by repeat', 'refused by repeat', 'done by evidence']);
  const lines = await records.journal.read(CLIENT, undefined, 100);
  const entries = await new JournalEntries(records, CLIENT).of(lines);
  const ends = entries.filter(({ step }) => step === 'done' || step === 'refused');
  expect(ends.map(({ step, code, by, status }) => [step, code, by, status])).toEqual([
    ['done', null, 'answer', 200],
    ['refused', '3', 'answer', 400],
    ['done', null, 'evidence', null],
  ]);
});

it.each(STORES)(
  'a payment is told as settled once the store has it, and not where it is another’s, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const persistence = createPersistence(records, systemAmbient, logger);
    let isAway = true;
    /** A store that is away when the answer comes. */
    const leaving: MoneyRecords = {
      ...records,
      answer: (...args) =>
        isAway ? Promise.reject(new RecordsUnavailableError('answer', undefined)) : records.answer(...args),
    };
    const told: string[] = [];
    const id = randomUUID();
    const known = await leaveOpen(records, 'createMoneyOut');
    await records.answer(known.name, known.hash, { kind: 'done', status: 200, text: '{}' }, id);
    for (const [answers, operation] of [
      [accepted(id), 'createMoneyOut'],
      [seen(id), 'createInternalTransaction'],
      [accepted(randomUUID()), 'createMoneyOut'],
      [seen(randomUUID()), 'createInternalTransaction'],
      [{ repeat: async () => REFUSED }, 'createMoneyOut'],
    ] as const) {
      const { name } = await leaveOpen(records, operation);
      await records.hasten(name);
      const payment = await records.takeOpen(name, OWNER, 60_000);
      if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
      const result = await settleOpen(payment, callsWith(answers), {
        ...{ records: leaving, persistence, ambient: systemAmbient },
        onSettled: (_payment, kind, by) => told.push(`${kind} by ${by}`),
        onMismatch: (_payment, fields) => told.push(`another ${fields}`),
        onUnread: () => expect.unreachable(),
        onLookFailed: (_payment, err) => expect(err).toBeUndefined(),
        onGivenUp: () => expect.unreachable(),
      });
      expect(result).toBe('open');
    }
    expect(told).toEqual([]);
    isAway = false;
    await persistence.stop();
    expect(told.toSorted()).toEqual([
      'another id',
      'done by evidence',
      'done by repeat',
      'refused by repeat',
    ]);
  },
);

describe.each(STORES)('a payment whose record is gone meanwhile, over %s', (_kind, makeStore) => {
  it.each([
    ['repeat', 'createMoneyOut'],
    ['look', 'createInternalTransaction'],
  ] as const)('is settled by a %s as its owner’s', async (how, operation) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const { name, claim } = await leaveOpen(records, operation, { keyOwner: 'ana', isCustomers: true });
    await records.hasten(name);
    const payment = await records.takeOpen(name, OWNER, 60_000);
    if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
    const id = randomUUID();
    const { repeat, look } = callsWith({ ...accepted(id), ...seen(id) });
    const onceGone = async <T>(call: () => Promise<T>): Promise<T> => {
      expect(await records.release(name, OWNER)).toBe(true);
      return call();
    };
    const never = () => expect.unreachable();
    const calls = {
      repeat: () => onceGone(() => repeat(payment, '')),
      look: () => onceGone(() => look(payment, records)),
    };
    const result = await settleOpen(payment, callsWith({ [how]: calls[how] }), {
      ...{ records, persistence: createPersistence(records, systemAmbient, logger), ambient: systemAmbient },
      ...{ onSettled: () => {}, onMismatch: never, onUnread: never, onLookFailed: never, onGivenUp: never },
    });
    expect(result).toBe('settled');
    expect(await records.read(name)).toMatchObject({ keyOwner: 'ana', asked: claim.asked });
    const byBen = { ...claim, owner: 'b', keyOwner: 'ben' };
    expect(await records.claim(name, byBen)).toEqual({ state: 'not-yours' });
    const whole = { clientId: CLIENT, hash: randomUUID() };
    const byClient = { ...claim, owner: 'c', keyOwner: '', isCustomers: false };
    expect(await records.claim(whole, byClient)).toMatchObject({
      state: 'customers',
      answer: { kind: 'done' },
    });
  });
});

it('what is found once the lease may have ended settles nothing', async () => {
  await using cleanup = new AsyncDisposableStack();
  const [, makeStore] = STORES[0] ?? [];
  if (makeStore === undefined) throw new Error('There is a store.');
  const store = await makeStore();
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createInternalTransaction');
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  cleanup.defer(() => spy.mockRestore());
  const settle = async (tookMs: number): Promise<SettlingResult> => {
    await records.hasten(name);
    const payment = await records.takeOpen(name, OWNER, 20_000);
    if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
    const id = randomUUID();
    const look = async () => {
      leapMs += tookMs;
      return { kind: 'done', text: JSON.stringify({ id }), transactionId: id } as const;
    };
    const persistence = createPersistence(records, systemAmbient, logger);
    const nobody = () => {};
    const told = {
      onSettled: nobody,
      onLookFailed: nobody,
      onMismatch: nobody,
      onUnread: nobody,
      onGivenUp: nobody,
    };
    return settleOpen(payment, callsWith({ look }), {
      records,
      persistence,
      ambient: systemAmbient,
      ...told,
    });
  };
  expect(await settle(16_000)).toBe('open');
  expect(await records.read(name)).toMatchObject({ answer: null });
  expect(await settle(1_000)).toBe('settled');
});

/** @returns puts the monotonic clock forward by so many milliseconds */
function leapingClock(cleanup: AsyncDisposableStack): (ms: number) => void {
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  cleanup.defer(() => spy.mockRestore());
  return (ms) => {
    leapMs += ms;
  };
}

/** An open payment that this settler has taken. */
async function takeOne(records: MoneyRecords) {
  const { name } = await leaveOpen(records, 'createInternalTransaction');
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  return { name, payment };
}

/** Settles a payment by evidence over a store that does not take the answer at first. @returns what goes on, and what it has told so far */
async function settleLosing(payment: OpenPayment, records: MoneyRecords) {
  const persistence = createPersistence(records, systemAmbient, logger);
  const told: string[] = [];
  const never = () => expect.unreachable();
  const result = await settleOpen(payment, callsWith(seen(randomUUID())), {
    ...{ records, persistence, ambient: systemAmbient },
    onSettled: (_payment, kind, by) => told.push(`${kind} by ${by}`),
    ...{ onMismatch: never, onUnread: never, onLookFailed: never, onGivenUp: never },
  });
  expect(result).toBe('open');
  return { persistence, told };
}

it.each(STORES)(
  'what was stored in time is told as settled though its reply was lost, and what was not is not stored late, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const leap = leapingClock(cleanup);
    for (const isDone of [true, false]) {
      const { name, payment } = await takeOne(records);
      let tries = 0;
      const losing: MoneyRecords = {
        ...records,
        async answer(...args) {
          tries += 1;
          if (tries > 1) return records.answer(...args);
          if (isDone) await records.answer(...args);
          leap(16_000);
          throw new RecordsUnavailableError('answer', undefined);
        },
      };
      const { persistence, told } = await settleLosing(payment, losing);
      await persistence.stop();
      expect(told).toEqual(isDone ? ['done by evidence'] : []);
      expect((await records.read(name))?.answer?.kind).toBe(isDone ? 'done' : undefined);
    }
  },
);

it.each(STORES)(
  'what was stored in time is stored again, however late, where a failover has lost it, over %s',
  async (_kind, makeStore) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await makeStore();
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const leap = leapingClock(cleanup);
    const { name, payment } = await takeOne(records);
    // The server that is replaced between the second try and the third has what was stored, and no replica has.
    const replaced = new Map<string, StoredAnswer>();
    let tries = 0;
    const losing: MoneyRecords = {
      ...records,
      async read(read) {
        const known = await records.read(read);
        const answer = replaced.get(read.hash);
        return known && answer && { ...known, answer };
      },
      async answer(...args) {
        tries += 1;
        if (tries > 2) return records.answer(...args);
        if (tries === 1) replaced.set(name.hash, args[2]);
        else {
          replaced.clear();
          leap(16_000);
        }
        throw new RecordsUnavailableError('answer', undefined);
      },
    };
    const { persistence, told } = await settleLosing(payment, losing);
    await until(() => told.length > 0);
    await persistence.stop();
    expect(told).toEqual(['done by evidence']);
    expect((await records.read(name))?.answer?.kind).toBe('done');
  },
);

it.each([
  ['the pause that the service asks for', 60_000, 60_000],
  ['ten minutes where it asks for more', 86_400_000, 600_000],
])('a payment is sent again no earlier than after %s', async (_what, retryAfterMs, pauseMs) => {
  await using cleanup = new AsyncDisposableStack();
  const store = await STORES[0]?.[1]();
  if (store === undefined) throw new Error('There is a store.');
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createMoneyOut');
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  const putOff = vi.fn(records.putOff);
  const never = () => expect.unreachable();
  const result = await settleOpen(
    payment,
    callsWith({
      repeat: async () => ({ kind: 'answered', status: 429, text: '', body: undefined, retryAfterMs }),
    }),
    {
      records: { ...records, putOff },
      persistence: createPersistence(records, systemAmbient, logger),
      ambient: systemAmbient,
      onSettled: never,
      onMismatch: never,
      onUnread: () => {},
      onLookFailed: never,
      onGivenUp: never,
    },
  );
  expect(result).toBe('away');
  expect(putOff.mock.calls.map(([, pause]) => pause)).toEqual([pauseMs]);
});

/** The longest pause after so many tries, of a payment whose look or repeat ends so. */
async function longestPause(
  operation: 'createMoneyOut' | 'createInternalTransaction',
  ageMs: number,
  answers: Partial<SettlingCalls>,
): Promise<number | undefined> {
  await using cleanup = new AsyncDisposableStack();
  const store = await STORES[0]?.[1]();
  if (store === undefined) throw new Error('There is a store.');
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, operation);
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  const putOff = vi.fn(records.putOff);
  const ambient = { ...systemAmbient, random: () => 1 };
  const nobody = () => {};
  await settleOpen({ ...payment, tries: 30, ageMs }, callsWith(answers), {
    ...{ records: { ...records, putOff }, persistence: createPersistence(records, ambient, logger), ambient },
    ...{ onSettled: nobody, onMismatch: nobody, onUnread: nobody, onLookFailed: nobody, onGivenUp: nobody },
  });
  const [call] = putOff.mock.calls;
  if (call === undefined) throw new Error('It was put off.');
  return call[1];
}

it('money out is sent again within 20 s in its first hour, then within 2 min, and a wrong answer within 10 min', async () => {
  const [minute, hour] = [60_000, 3_600_000];
  const failed = { kind: 'failed', error: new GivenUpError('it is away', { dispatched: true }) } as const;
  const pause = (ageMs: number, answers: Partial<SettlingCalls> = { repeat: async () => failed }) =>
    longestPause('createMoneyOut', ageMs, answers);
  expect(await pause(hour - 1)).toBe(20_000);
  expect(await pause(hour)).toBe(2 * minute);
  const differs = () => ({ kind: 'differs', fields: ['amount'] }) as const;
  const wrong = { ...accepted(''), reading: () => ({ isServiceError: () => true, compare: differs }) };
  for (const ageMs of [0, hour]) expect(await pause(ageMs, wrong)).toBe(10 * minute);
});

it('another payment is looked for again within 20 s at first, then within 5 min and an hour, and within 20 s where much is unread', async () => {
  const [minute, hour] = [60_000, 3_600_000];
  const pause = (ageMs: number, seen: 'nothing' | 'unread') =>
    longestPause('createInternalTransaction', ageMs, { look: async () => ({ kind: 'open', seen }) });
  expect(await pause(15 * minute - 1, 'nothing')).toBe(20_000);
  expect(await pause(15 * minute, 'nothing')).toBe(5 * minute);
  expect(await pause(4 * hour, 'nothing')).toBe(hour);
  expect(await pause(4 * hour, 'unread')).toBe(20_000);
});

it.each<[string, MoneyRecords['held']]>([
  ['are stopped', async () => [{ why: 'stopped', since: 0, missing: 0, copied: undefined }]],
  [
    'may be stopped, as nobody can say now',
    async () => Promise.reject(new RecordsUnavailableError('held', 0)),
  ],
])('nothing is sent again by itself while payments %s', async (_why, held) => {
  await using cleanup = new AsyncDisposableStack();
  const store = await STORES[0]?.[1]();
  if (store === undefined) throw new Error('There is a store.');
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createMoneyOut');
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  const never = () => expect.unreachable();
  // A call that nobody expects rejects, and so would this.
  const result = await settleOpen(payment, callsWith({}), {
    ...{ records: { ...records, held }, persistence: createPersistence(records, systemAmbient, logger) },
    ...{
      ambient: systemAmbient,
      onSettled: never,
      onMismatch: never,
      onUnread: never,
      onLookFailed: never,
      onGivenUp: never,
    },
  });
  expect(result).toBe('open');
  expect(await records.read(name)).toMatchObject({ seen: 'stopped', attempts: 1 });
});

it('a 409 on a repeat refuses nothing, whatever it says: the first request may be under way', async () => {
  await using cleanup = new AsyncDisposableStack();
  const store = await STORES[0]?.[1]();
  if (store === undefined) throw new Error('There is a store.');
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createMoneyOut');
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  const never = () => expect.unreachable();
  const body = { message: 'external_transfer_not_allowed' };
  const conflict = { ...REFUSED, status: 409, text: JSON.stringify(body), body };
  const result = await settleOpen(payment, callsWith({ repeat: async () => conflict }), {
    ...{ records, persistence: createPersistence(records, systemAmbient, logger), ambient: systemAmbient },
    ...{ onSettled: never, onMismatch: never, onUnread: never, onLookFailed: never, onGivenUp: never },
  });
  expect(result).toBe('open');
  expect(await records.read(name)).toMatchObject({ answer: null, seen: 'still-processing' });
});

it('a repeat counts where it may have left, and not where it has not', async () => {
  await using cleanup = new AsyncDisposableStack();
  const store = await STORES[0]?.[1]();
  if (store === undefined) throw new Error('There is a store.');
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createMoneyOut');
  const never = () => expect.unreachable();
  const told = {
    onSettled: never,
    onMismatch: never,
    onUnread: never,
    onLookFailed: never,
    onGivenUp: never,
  };
  const persistence = createPersistence(records, systemAmbient, logger);
  const attempts = async (dispatched: boolean) => {
    await records.hasten(name);
    const payment = await records.takeOpen(name, OWNER, 60_000);
    if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
    const error = new GivenUpError('no answer', { dispatched });
    const calls = callsWith({ repeat: async () => ({ kind: 'failed', error }) });
    expect(await settleOpen(payment, calls, { records, persistence, ambient: systemAmbient, ...told })).toBe(
      'away',
    );
    return (await records.read(name))?.attempts;
  };
  expect(await attempts(false)).toBe(1);
  expect(await attempts(true)).toBe(2);
});

it.each([
  ['that has failed', () => Promise.reject(new Error('The service is away.')), true],
  ['that has not read all', async () => ({ kind: 'open', seen: 'unread' }) as const, true],
  ['that could not read one', async () => ({ kind: 'open', seen: 'unreadable' }) as const, true],
  ['that has read all, and found nothing', async () => ({ kind: 'open', seen: 'nothing' }) as const, false],
] satisfies [string, SettlingCalls['look'], boolean][])(
  'after two days a payment is looked for again after a look %s: %#',
  async (_what, look, isAgain) => {
    await using cleanup = new AsyncDisposableStack();
    const store = await STORES[0]?.[1]();
    if (store === undefined) throw new Error('There is a store.');
    cleanup.defer(() => store.close());
    const records = await store.open();
    cleanup.defer(() => records.stop());
    const { payment } = await takeOne(records);
    const putOff = vi.fn(records.putOff);
    const never = () => expect.unreachable();
    const old = { ...payment, ageMs: 49 * 60 * 60_000 };
    const givenUp: string[] = [];
    await settleOpen(old, callsWith({ look }), {
      ...{ records: { ...records, putOff }, persistence: createPersistence(records, systemAmbient, logger) },
      ...{
        ambient: systemAmbient,
        onSettled: never,
        onMismatch: never,
        onUnread: never,
        onLookFailed: () => {},
      },
      onGivenUp: (_payment, seen) => givenUp.push(seen),
    });
    expect(givenUp).toEqual(isAgain ? [] : ['nothing']);
    expect(putOff.mock.calls.map(([, pause]) => pause !== undefined)).toEqual([isAgain]);
  },
);

it('evidence that the store could not take settles nothing once its look is too old', async () => {
  await using cleanup = new AsyncDisposableStack();
  const store = await STORES[0]?.[1]();
  if (store === undefined) throw new Error('There is a store.');
  cleanup.defer(() => store.close());
  const records = await store.open();
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createInternalTransaction');
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  cleanup.defer(() => spy.mockRestore());
  const leaving: MoneyRecords = {
    ...records,
    async answer(...args) {
      if (leapMs > 0) return records.answer(...args);
      leapMs = 16_000;
      throw new RecordsUnavailableError('answer', undefined);
    },
  };
  const persistence = createPersistence(records, systemAmbient, logger);
  const never = () => expect.unreachable();
  const result = await settleOpen(payment, callsWith(seen(randomUUID())), {
    ...{ records: leaving, persistence, ambient: systemAmbient },
    ...{ onSettled: never, onMismatch: never, onUnread: never, onLookFailed: never, onGivenUp: never },
  });
  expect(result).toBe('open');
  await persistence.stop();
  expect(await records.read(name)).toMatchObject({ answer: null });
});

/**
 * Evidence is found of a payment in Redis.
 *
 * @param meanwhile happens during the look
 */
async function findWhile(
  meanwhile: (redis: Awaited<ReturnType<typeof startRedis>>, records: MoneyRecords) => Promise<void>,
) {
  await using redis = await startRedis();
  await using cleanup = new AsyncDisposableStack();
  const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', logger));
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createInternalTransaction');
  await records.hasten(name);
  const payment = await records.takeOpen(name, OWNER, 60_000);
  if (payment === undefined) throw new Error('The payment is open, and nobody has it.');
  const look = async () => {
    await meanwhile(redis, records);
    const id = randomUUID();
    return { kind: 'done', text: JSON.stringify({ id }), transactionId: id } as const;
  };
  const never = () => expect.unreachable();
  const result = await settleOpen(payment, callsWith({ look }), {
    ...{ records, persistence: createPersistence(records, systemAmbient, logger), ambient: systemAmbient },
    ...{ onSettled: () => {}, onMismatch: never, onUnread: never, onLookFailed: never, onGivenUp: never },
  });
  return { result, answer: (await records.read(name))?.answer, holds: await records.held() };
}

const LEDGER = `pasarela:money:{${CLIENT}}:ledger`;

it.each([
  { who: 'a payment of the client', pays: true },
  { who: 'the look alone', pays: false },
])('evidence settles nothing where $who finds the record put back during the look', async ({ pays }) => {
  const found = await findWhile(async (redis, records) => {
    await redis.admin.hset(LEDGER, 'sent', 0);
    if (pays) await expect(leaveOpen(records, 'createMoneyOut')).rejects.toMatchObject({ why: 'put-back' });
  });
  expect(found).toMatchObject({ result: 'open', answer: null, holds: [{ why: 'put-back', missing: 1 }] });
});

it('evidence settles a payment while the record of another client alone is put back', async () => {
  const other = randomUUID();
  const found = await findWhile(async (redis) => {
    await redis.admin.hset(`pasarela:money:{${other}}:ledger`, { held: 1, missing: 1 });
    await redis.admin.sadd('pasarela:money:held', other);
  });
  expect(found).toMatchObject({ result: 'settled', answer: { kind: 'done' }, holds: [{ why: 'put-back' }] });
});

it.each(['over node:sqlite', 'over Redis'])(
  'evidence settles what was sent before the record was put back only once an operator hastens it, %s',
  async (where) => {
    await using cleanup = new AsyncDisposableStack();
    const open = where === 'over Redis' ? await behindInRedis(cleanup) : await behindInSqlite(cleanup);
    const { records, name } = open;
    await records.resume(true);
    const payment = await until(() => records.takeOpen(name, OWNER, 0));
    const never = () => expect.unreachable();
    const parts = {
      ...{ records, persistence: createPersistence(records, systemAmbient, logger), ambient: systemAmbient },
      ...{ onSettled: () => {}, onMismatch: never, onUnread: never, onLookFailed: never, onGivenUp: never },
    };
    const id = randomUUID();
    expect(await settleOpen(payment, callsWith(seen(id)), parts)).toBe('open');
    expect(await records.read(name)).toMatchObject({ answer: null, seen: 'put-back' });
    await records.hasten(name);
    const hastened = await until(() => records.takeOpen(name, OWNER, 0));
    expect(await settleOpen(hastened, callsWith(seen(id)), parts)).toBe('settled');
    expect(await records.read(name)).toMatchObject({ answer: { kind: 'done' } });
  },
);

/** A payment whose answer was lost, in a record that has forgotten a later one. */
async function behindInRedis(cleanup: AsyncDisposableStack) {
  const redis = cleanup.use(await startRedis());
  const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', logger));
  cleanup.defer(() => records.stop());
  const { name } = await leaveOpen(records, 'createInternalTransaction');
  await leaveOpen(records, 'createInternalTransaction');
  await redis.admin.hset(LEDGER, 'sent', 1);
  expect(await records.isPutBack(CLIENT)).toBe(true);
  await records.hasten(name);
  return { records, name };
}

/** Likewise. */
async function behindInSqlite(cleanup: AsyncDisposableStack) {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const path = join(dataDir, 'money.sqlite');
  const before = openSqliteRecords(path);
  const { name } = await leaveOpen(before, 'createInternalTransaction');
  await before.stop();
  // As if a payment had been sent of which this file knows nothing.
  await writeFile(`${path}-mark-0-9`, '');
  const records = openSqliteRecords(path);
  cleanup.defer(() => records.stop());
  expect(await records.isPutBack(CLIENT)).toBe(true);
  await records.hasten(name);
  return { records, name };
}
