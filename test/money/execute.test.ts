import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GivenUpError } from '../../src/common/attempt.ts';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { MoneyOrder, MoneyResult } from '../../src/money/call.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { type MoneyMutation, recordName } from '../../src/money/intent.ts';
import { JournalEntries } from '../../src/money/journal/entries.ts';
import { type MoneyRecords, RecordsUnavailableError } from '../../src/money/record.ts';
import type { SettlingCalls } from '../../src/money/settling/open-payment.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { recordingLogger } from '../helpers/events.ts';
import { freePort } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { fastAmbient, MUTATIONS, NOBODYS, order, repeatable, told } from './orders.ts';
import { type Fault, serviceError, startUpstream, type Upstream } from './upstream.ts';

const HOUR = 3_600_000;
/** Thirty seconds pass in one. */
const FACTOR = 30;
const ONCE = ['createInternalTransaction', 'createPennyValidation', 'refundTransaction'] as const;
const REPORTED = ['createInternalTransaction', 'createPennyValidation'] as const;

let dataDir: string;
let records: MoneyRecords;
let upstream: Upstream;
let money: Money;
let mismatches: MoneyMutation[];
let keys = 0;
let key: string;
/** Moves the gateway's clock. */
let skip = 0;

const fast = fastAmbient(FACTOR);
const ambient = { ...fast, now: () => fast.now() + skip };

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
  records = openSqliteRecords(join(dataDir, 'money.sqlite'), ambient.now);
  upstream = await startUpstream();
  mismatches = [];
  const onMismatch = (mutation: MoneyMutation) => mismatches.push(mutation);
  money = createMoney({ records, logger, ambient, leaseMs: HOUR, onMismatch });
  keys += 1;
  key = `intent-${keys}`;
  skip = 0;
});
afterEach(async () => {
  upstream.letGo();
  await money.stop();
  await records.stop();
  await upstream[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true });
});

/** By default a real minute: a test of a time that is over says so itself. */
const LONG = 1_800_000;
const limits = (ms = LONG, signal = new AbortController().signal) => ({
  deadline: ambient.now() + ms,
  signal,
});
const make = (mutation: MoneyMutation, options = {}): MoneyOrder =>
  order(upstream.url, mutation, key, options);
const pay = (mutation: MoneyMutation, options = {}, ms = LONG): Promise<MoneyResult> =>
  money.execute(make(mutation, options), limits(ms));
/** A caller who goes away as soon as some requests have met their fate, so that there are no more. */
const payAndLeave = (
  mutation: MoneyMutation,
  { url = upstream.url, requests = 1 } = {},
): Promise<MoneyResult> => {
  const caller = new AbortController();
  const made = order(url, mutation, key);
  let left = requests;
  const send: typeof made.calls.send = (...args) =>
    made.calls.send(...args).finally(() => {
      left -= 1;
      if (left === 0) caller.abort();
    });
  // The spread loses which calls belong to which mutation; they are those of `made`.
  const leaving = { ...made, calls: { ...made.calls, send } } as MoneyOrder;
  return money.execute(leaving, limits(LONG, caller.signal));
};
/** Silence is only seen by waiting for it. A request that is to be answered has as long as any. */
const patience = (fault: Fault) =>
  `${fault}`.startsWith('hang') ? { timeoutMs: () => (upstream.faults.length > 0 ? 300 : undefined) } : {};
const loseReply = (): never => {
  throw new RecordsUnavailableError('test', new Error('reply lost'));
};
const movements = () => upstream.ledger.get(key) ?? 0;
const posts = () => upstream.received.length;

it.each(MUTATIONS)(
  '%s of a second owner of a key is made once, also where the first owner’s has moved nothing',
  async (mutation) => {
    const pays = (keyOwner: string) => order(upstream.url, mutation, key, { keyOwner });
    const his = () => money.execute(pays('ben'), limits());
    const hers = pays('ana');
    let first: MoneyResult | undefined;
    const send: typeof hers.calls.send = async (...args) => {
      first = await his();
      upstream.faults.push(429);
      return hers.calls.send(...args);
    };
    // The spread loses which calls belong to which mutation; they are those of `hers`.
    const beside = { ...hers, calls: { ...hers.calls, send } } as MoneyOrder;
    expect(await money.execute(beside, limits())).toMatchObject({ kind: 'nothing-moved' });
    expect(first).toMatchObject({ kind: 'done', replayed: false });
    expect(await his()).toEqual({ ...first, replayed: true });
    expect(movements()).toBe(1);
    const { clientId, customerId } = hers;
    const told = await money.payments.byKey({ clientId, customerId, keyOwner: 'ben', key });
    expect(told).toMatchObject({ state: 'answered' });
  },
);

/** How a payment is looked for under its caller's credential; the hashes of those looked for go into `looked`. */
function lookedForInto(looked: string[]): NonNullable<MoneyOrder['later']> {
  const calls: SettlingCalls = {
    async repeat({ name }) {
      looked.push(name.hash);
      return { kind: 'failed', error: new GivenUpError('it is away', { dispatched: true }) };
    },
    reading: () => ({ compare: () => ({ kind: 'unreadable' }), isServiceError: () => false }),
    codeOf: () => 'A_CODE',
    look: async () => ({ kind: 'open', seen: 'nothing' }),
    isOver: () => false,
  };
  return { calls: () => calls, until: Number.MAX_SAFE_INTEGER, credential: 'token' };
}

/** Money out that is left unknown, and is looked for from then on. */
async function leaveUnknown(own: Money, keyOwner: string, later: MoneyOrder['later']): Promise<void> {
  const caller = new AbortController();
  const made = repeatable(order(upstream.url, 'createMoneyOut', key, { keyOwner }));
  const send: typeof made.calls.send = (...args) => made.calls.send(...args).finally(() => caller.abort());
  // The spread loses which calls belong to which mutation; they are those of `made`.
  const leaving = { ...made, later, calls: { ...made.calls, send } } as MoneyOrder;
  upstream.faults.push('reset-after');
  expect(await own.execute(leaving, limits(LONG, caller.signal))).toMatchObject({ kind: 'unknown' });
}

it('a second owner’s payment that is left unknown is logged and looked for as their own', async () => {
  const anas = order(upstream.url, 'createMoneyOut', key, { keyOwner: 'ana' });
  await money.execute(anas, limits());
  const log = recordingLogger();
  const own = createMoney({ records, logger: log, ambient, leaseMs: HOUR });
  const looked: string[] = [];
  await leaveUnknown(own, 'ben', lookedForInto(looked));
  const { clientId, customerId } = anas;
  const bens = await own.payments.byKey({ clientId, customerId, keyOwner: 'ben', key });
  await until(() => looked.length > 0);
  await own.stop();
  expect(looked[0]).toBe(bens?.hash);
  const lines = log.lines.filter(({ message }) => message === 'payment');
  expect(lines.map(({ fields }) => fields)).toMatchObject([{ paymentId: bens?.id }]);
});

it('a payment that is left unknown is looked for in the place of one that was only asked about', async () => {
  let now = ambient.now();
  const own = createMoney({ records, logger, ambient: { ...ambient, now: () => now }, leaseMs: HOUR });
  const looked: string[] = [];
  const later = lookedForInto(looked);
  const { clientId } = make('createMoneyOut');
  now += 10_000;
  for (let asked = 0; asked < 100; asked += 1) own.remember({ clientId, hash: `${asked}` }, later);
  // None of these is due before it.
  now -= 10_000;
  await leaveUnknown(own, 'ana', later);
  await until(() => {
    now += 1_000;
    return looked.length > 0;
  });
  await own.stop();
});

/** A payment whose first answer is lost, and whose repeats get a 429 that asks to wait; with the pauses that the call made. */
async function payThrottled(retryAfterMs: number, ms: number) {
  const pauses: number[] = [];
  const sleep: typeof ambient.sleep = (pause, signal) => {
    pauses.push(pause);
    return ambient.sleep(pause, signal);
  };
  const made = order(upstream.url, 'createMoneyOut', key);
  let sent = 0;
  const send: typeof made.calls.send = async (...args) => {
    sent += 1;
    if (sent !== 2) return made.calls.send(...args);
    return { kind: 'answered', status: 429, text: serviceError(429), body: undefined, retryAfterMs };
  };
  upstream.faults.push('reset-after');
  // The spread loses which calls belong to which mutation; they are those of `made`.
  const throttled = { ...made, calls: { ...made.calls, send } } as MoneyOrder;
  const log = recordingLogger();
  const own = createMoney({ records, logger: log, ambient: { ...ambient, sleep }, leaseMs: HOUR });
  const result = await own.execute(throttled, limits(ms));
  await until(() => log.lines.some(({ message }) => message === 'payment'));
  const line = log.lines.find(({ message }) => message === 'payment')?.fields;
  return { result, pauses, sent, line };
}

it('a call that has ended renews its lease no more, and waits for its deadline no more', async () => {
  const beat = Promise.withResolvers<void>();
  const renewed: number[] = [];
  const waits: AbortSignal[] = [];
  const own = createMoney({
    records: {
      ...records,
      async renew(name, owner, ms) {
        renewed.push(ms);
        // The pause between two renewals ends while the lease is being ended.
        beat.resolve();
        await setImmediate();
        return records.renew(name, owner, ms);
      },
    },
    ambient: {
      ...ambient,
      sleep(ms, signal) {
        waits.push(signal);
        return ms === HOUR / 3 ? beat.promise : ambient.sleep(ms, signal);
      },
    },
    logger,
    leaseMs: HOUR,
  });
  await leaveUnknown(own, 'ana', undefined);
  await own.stop();
  expect(renewed).toEqual([0]);
  expect(waits.length).toBeGreaterThan(1);
  expect(waits.filter(({ aborted }) => !aborted)).toEqual([]);
});

it('money out is not sent again before the time is over that the service asks to wait', async () => {
  const { result, pauses, sent, line } = await payThrottled(20_000, LONG);
  expect(result).toMatchObject({ kind: 'done' });
  expect(line).toMatchObject({ outcome: 'done', sends: 3 });
  expect(Object(line).milliseconds).toBeGreaterThanOrEqual(20_000);
  expect([sent, movements()]).toEqual([3, 1]);
  expect(pauses).toContain(20_000);
});

it('money out is unknown at once where the service asks to wait for longer than the caller does', async () => {
  const { result, pauses, sent, line } = await payThrottled(2 * LONG, LONG);
  expect(result).toMatchObject({ kind: 'unknown', safeToRetry: true });
  expect(line).toMatchObject({ outcome: 'unknown', reason: 'NO_ANSWER', status: 429, sends: 2 });
  expect([sent, movements()]).toEqual([2, 1]);
  expect(pauses).not.toContain(2 * LONG);
});

/** A gateway whose store does what it is told to at one step. */
const moneyOver = (change: Partial<MoneyRecords>, leaseMs = 5_000): Money =>
  createMoney({ records: { ...records, ...change }, logger, ambient, leaseMs });

it.each([
  ['check', 'the check before a payment threw'],
  ['checkAgain', 'the check before a payment threw'],
  ['send', 'a money request threw, and is taken for sent'],
  ['compare', 'reading the answer to a money request threw'],
  ['readOriginal', 'reading the original of a refund threw'],
])('the error with which `%s` of a refund throws is logged', async (call, message) => {
  const bug = new Error('a bug');
  const throws = () => {
    throw bug;
  };
  const made = make('refundTransaction');
  // The spread loses which calls belong to which mutation; they are those of `made`.
  const throwing = { ...made, calls: { ...made.calls, [call]: throws } } as MoneyOrder;
  const log = recordingLogger();
  const own = createMoney({ records, logger: log, ambient, leaseMs: HOUR });
  await own.execute(throwing, limits());
  await own.stop();
  const errors = log.lines.filter((line) => line.message === message);
  expect(errors.map(({ fields }) => fields)).toMatchObject([{ err: bug }]);
});

describe.each(MUTATIONS)('%s', (mutation) => {
  it('is done once, and replayed to every later call with the key', async () => {
    const first = await pay(mutation);
    expect(first).toMatchObject({ kind: 'done', replayed: false, answer: { status: 200 } });
    const second = await pay(mutation);
    expect(second).toEqual({ ...first, replayed: true });
    expect([movements(), posts()]).toEqual([1, 1]);
  });

  it('is refused once, and the refusal is replayed', async () => {
    const first = await pay(mutation, { amount: '0' });
    expect(first).toMatchObject({ kind: 'refused', replayed: false, answer: { status: 400 } });
    expect(await pay(mutation, { amount: '0' })).toEqual({ ...first, replayed: true });
    expect([movements(), posts()]).toEqual([0, 1]);
  });

  it('is a conflict when the key comes with another input, running or answered, without an upstream call', async () => {
    upstream.faults.push('held');
    const first = pay(mutation);
    await until(() => posts() === 1);
    const conflict = { kind: 'conflict', code: 'IDEMPOTENCY_KEY_REUSED' };
    expect(await pay(mutation, { amount: '11.00' })).toEqual(conflict);
    upstream.letGo();
    await first;
    expect(await pay(mutation, { amount: '11.00' })).toEqual(conflict);
    expect(posts()).toBe(1);
  });

  it('is one movement and 50 equal answers for 50 calls at once through two gateways', async () => {
    const other = openSqliteRecords(join(dataDir, 'money.sqlite'), ambient.now);
    const second = createMoney({ records: other, logger, ambient, leaseMs: HOUR });
    const calls = Array.from({ length: 50 }, (_, i) =>
      (i % 2 === 0 ? money : second).execute(make(mutation), limits()),
    );
    const results = await Promise.all(calls);
    expect(new Set(results.map(told)).size).toBe(1);
    expect(results.filter((result) => result.kind === 'done' && !result.replayed)).toHaveLength(1);
    expect([movements(), posts()]).toEqual([1, 1]);
    await other.stop();
  });

  it('is in progress for a second call that reaches its deadline before the first has ended', async () => {
    upstream.faults.push('held');
    const first = pay(mutation);
    await until(() => posts() === 1);
    expect(await pay(mutation, {}, 3_000)).toEqual({ kind: 'conflict', code: 'IDEMPOTENCY_IN_PROGRESS' });
    upstream.letGo();
    expect(await first).toMatchObject({ kind: 'done', replayed: false });
    expect(posts()).toBe(1);
  });

  it.each([401, 403, 429])('has moved nothing on a %i, and the key is free', async (status) => {
    upstream.faults.push(status);
    expect(await pay(mutation)).toMatchObject({
      kind: 'nothing-moved',
      because: { kind: 'answered', status },
    });
    expect(await pay(mutation, { amount: '11.00' })).toMatchObject({ kind: 'done', replayed: false });
    expect(movements()).toBe(1);
  });

  it('has moved nothing when the upstream cannot be connected to, and the key is free', async () => {
    const nowhere = order(`http://127.0.0.1:${await freePort()}`, mutation, key);
    expect(await money.execute(nowhere, limits())).toMatchObject({
      kind: 'nothing-moved',
      because: { kind: 'failed', error: { dispatched: false, message: 'connection refused' } },
    });
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
  });

  it('sends nothing when the deadline is spent, or the caller gone, before the request leaves', async () => {
    const late = await pay(mutation, {}, 0);
    expect(late).toMatchObject({ kind: 'nothing-moved' });
    const gone = await money.execute(make(mutation), limits(LONG, AbortSignal.abort()));
    expect(gone).toMatchObject({ kind: 'nothing-moved' });
    expect(posts()).toBe(0);
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
  });

  it('sends nothing when writing the record took all the time that there was', async () => {
    const slow = moneyOver({
      markSent: async (...args) => {
        const owned = await records.markSent(...args);
        skip += LONG;
        return owned;
      },
    });
    expect(await slow.execute(make(mutation), limits())).toMatchObject({
      kind: 'nothing-moved',
      because: { kind: 'failed', error: { dispatched: false } },
    });
    expect(posts()).toBe(0);
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
  });

  it('is there for the next call at once when a call has left it unknown', async () => {
    upstream.faults.push('reset-after');
    expect(await payAndLeave(mutation)).toMatchObject({ kind: 'unknown' });
    // The lease was an hour: whoever had to wait for its end would wait in vain.
    expect(await pay(mutation)).toMatchObject({ kind: mutation === 'createMoneyOut' ? 'done' : 'unknown' });
  });

  it('keeps its lease up for as long as a request runs', async () => {
    upstream.faults.push('held');
    let renewals = 0;
    const renewing = moneyOver({
      renew: async (...args) => {
        await records.renew(...args);
        renewals += 1;
      },
    });
    const made = make(mutation);
    const first = renewing.execute(made, limits());
    await until(() => renewals >= 3);
    const claim = { owner: 'another', inputHash: made.inputHash, leaseMs: HOUR, ...NOBODYS };
    expect(await records.claim(recordName(made), claim)).toEqual({ state: 'busy' });
    upstream.letGo();
    expect(await first).toMatchObject({ kind: 'done' });
  });

  it('goes on when the caller disconnects after the request has left, and the answer is kept', async () => {
    upstream.faults.push('held');
    const caller = new AbortController();
    const first = money.execute(make(mutation), limits(LONG, caller.signal));
    await until(() => posts() === 1);
    caller.abort();
    upstream.letGo();
    expect(await first).toMatchObject({ kind: 'done' });
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: true });
    expect([movements(), posts()]).toEqual([1, 1]);
  });

  it('makes no call when the store is away before the request leaves', async () => {
    const away = async () => {
      throw new RecordsUnavailableError('test', new Error('away'));
    };
    for (const change of [{ claim: away }, { markSent: away }]) {
      const failing = moneyOver(change);
      await expect(failing.execute(make(mutation), limits())).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      });
      expect(failing.inFlight()).toBe(0);
      await failing.stop();
    }
    expect(posts()).toBe(0);
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
  });

  it.each<[string, () => Partial<MoneyRecords>]>([
    ['the claim', () => ({ claim: (...args) => records.claim(...args).then(loseReply) })],
    ['the note of sending', () => ({ markSent: (...args) => records.markSent(...args).then(loseReply) })],
  ])('gives the key back when %s was written but the store lost its reply', async (_what, change) => {
    // Nobody else waits for its lease to end.
    const failing = moneyOver(change(), HOUR);
    await expect(failing.execute(make(mutation), limits())).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
    expect([movements(), posts()]).toEqual([1, 1]);
  });

  it('tells the caller the answer when the store is away after it, and stores it once the store is back', async () => {
    let away = true;
    const failing = moneyOver({
      answer: async (...args) => {
        if (away) throw new RecordsUnavailableError('test', new Error('away'));
        return records.answer(...args);
      },
    });
    expect(await failing.execute(make(mutation), limits())).toMatchObject({ kind: 'done', replayed: false });
    away = false;
    await failing.stop();
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: true });
    expect([movements(), posts()]).toEqual([1, 1]);
  });

  it('keeps the answer of a gateway that stalled past its lease and was taken over meanwhile', async () => {
    upstream.faults.push('held');
    // Its lease is never kept up, as if its process stood still.
    const stalled = moneyOver({ renew: async () => {} });
    const first = stalled.execute(make(mutation), limits());
    await until(() => posts() === 1);
    const second = await pay(mutation);
    expect(second.kind).toBe(mutation === 'createMoneyOut' ? 'done' : 'unknown');
    upstream.letGo();
    expect(await first).toMatchObject({ kind: 'done' });
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: true });
    expect(movements()).toBe(1);
  });

  it('is unknown, never free, when the sender throws after the request may have left', async () => {
    const made = make(mutation);
    let thrown = false;
    const throwing = {
      ...made,
      calls: {
        ...made.calls,
        send: async (...args: Parameters<typeof made.calls.send>) => {
          const happened = await made.calls.send(...args);
          if (thrown) return happened;
          thrown = true;
          throw new Error('a bug');
        },
      },
      // The spread loses which calls belong to which mutation; they are those of `made`.
    } as MoneyOrder;
    const result = await money.execute(throwing, limits());
    expect(result.kind).toBe(mutation === 'createMoneyOut' ? 'done' : 'unknown');
    expect(movements()).toBe(1);
  });

  it('ends only once the answer of a running call that the store did not take was tried a last time', async () => {
    upstream.faults.push('held');
    const taken = Promise.withResolvers<void>();
    const ends: string[] = [];
    let tries = 0;
    const failing = moneyOver({
      answer: async (...args) => {
        tries += 1;
        if (tries === 1) throw new RecordsUnavailableError('test', new Error('away'));
        await taken.promise;
        const isOwn = await records.answer(...args);
        ends.push('stored');
        return isOwn;
      },
    });
    const call = failing.execute(make(mutation), limits());
    await until(() => posts() === 1);
    const stopped = failing.stop().then(() => ends.push('stop'));
    upstream.letGo();
    expect(await call).toMatchObject({ kind: 'done' });
    await until(() => tries === 2);
    // A stop that does not wait for it ends in this turn.
    await setImmediate();
    taken.resolve();
    await stopped;
    expect(ends).toEqual(['stored', 'stop']);
  });

  it('ends only when running calls have', async () => {
    upstream.faults.push('held');
    const first = pay(mutation);
    await until(() => posts() === 1);
    const ends: string[] = [];
    const ended = Promise.all([
      first.then(() => ends.push('call')),
      money.stop().then(() => ends.push('stop')),
    ]);
    upstream.letGo();
    await ended;
    expect(ends).toEqual(['call', 'stop']);
  });
});

describe('createMoneyOut', () => {
  it('goes on once it was sent, also where the gateway would refuse it now', async () => {
    upstream.faults.push('reset-before');
    expect(await payAndLeave('createMoneyOut')).toMatchObject({ kind: 'unknown', safeToRetry: true });
    const made = make('createMoneyOut');
    const error = new GivenUpError('refused', { dispatched: false });
    const check = async () => ({ kind: 'failed', error }) as const;
    // The spread loses which calls belong to which mutation; they are those of `made`.
    const refused = { ...made, calls: { ...made.calls, check } } as MoneyOrder;
    expect(await money.execute(refused, limits())).toMatchObject({ kind: 'done' });
    expect([movements(), posts()]).toEqual([1, 2]);
  });

  it.each([
    'reset-before',
    'reset-after',
    'hang-before',
    'hang-after',
    'truncate-after',
    'garbage-after',
    'no-transaction-after',
    '502-after',
    408,
    425,
    500,
    503,
  ] as const)('is settled after %s by the very same bytes under the same upstream key', async (fault) => {
    upstream.faults.push(fault, fault);
    expect(await pay('createMoneyOut', patience(fault))).toMatchObject({ kind: 'done', replayed: false });
    const [first, ...repeats] = upstream.received;
    expect(repeats).toEqual([first, first]);
    expect(movements()).toBe(1);
  });

  it('is settled as refused when the kept first answer is a refusal', async () => {
    upstream.faults.push('reset-after');
    expect(await pay('createMoneyOut', { amount: '0' })).toMatchObject({
      kind: 'refused',
      answer: { status: 400 },
    });
    expect(movements()).toBe(0);
  });

  it.each([400, 401, 403, 404, 405, 410, 413, 422, 429])(
    'is not taken for refused when its repeats meet pages of somebody on the way, alike: %i',
    async (page) => {
      const pages = Array.from({ length: 3 }, () => ({ page, served: false }));
      upstream.faults.push('reset-after', ...pages);
      expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done' });
      expect([movements(), posts()]).toEqual([1, 5]);
    },
  );

  it('is unknown, and alarmed of, when answers go on being those to another order', async () => {
    const faults = Array.from({ length: 5 }, () => 'other-amount-after' as const);
    upstream.faults.push(...faults);
    expect(await pay('createMoneyOut')).toMatchObject({
      kind: 'unknown',
      reason: 'ANSWER_DOES_NOT_MATCH',
      safeToRetry: true,
    });
    expect([movements(), posts()]).toEqual([1, 5]);
    expect(mismatches).toEqual(Array.from({ length: 5 }, () => 'createMoneyOut'));
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done' });
  });

  it('ends soon, and says why, where the service goes on saying 409 to a first attempt', async () => {
    upstream.faults.push(...Array.from({ length: 20 }, () => 409));
    const still = { kind: 'unknown', reason: 'STILL_PROCESSING', safeToRetry: false };
    expect(await pay('createMoneyOut')).toMatchObject(still);
    expect(posts()).toBe(5);
    expect(await pay('createMoneyOut')).toMatchObject(still);
    expect(posts()).toBe(5);
  });

  it('is recorded as closed by a first 409 before it is sent again', async () => {
    upstream.faults.push(409);
    const made = make('createMoneyOut');
    const steps: string[] = [];
    const send: typeof made.calls.send = (...args) => {
      steps.push('sent');
      return made.calls.send(...args);
    };
    const own = createMoney({
      records: {
        ...records,
        answer: async (...args) => {
          const [, , { kind }] = args;
          // What does not wait for the store goes on in this turn.
          await setImmediate();
          const isOwn = await records.answer(...args);
          steps.push(kind);
          return isOwn;
        },
      },
      logger,
      // No pause keeps the repeat away.
      ambient: {
        ...ambient,
        sleep: (ms, signal) => (ms > 1_000 ? ambient.sleep(ms, signal) : Promise.resolve()),
      },
      leaseMs: HOUR,
    });
    // The spread loses which calls belong to which mutation; they are those of `made`.
    const told = { ...made, calls: { ...made.calls, send } } as MoneyOrder;
    expect(await own.execute(told, limits())).toMatchObject({ kind: 'done' });
    expect(steps).toEqual(['sent', 'unknown', 'sent', 'done']);
  });

  it('is refused by a first 409 only once the record has that, as somebody may have taken it over and go on', async () => {
    upstream.faults.push({ page: 409, served: false, words: 'external_transfer_not_allowed' });
    const leaving = new AbortController();
    const failing = moneyOver({
      async answer(...args) {
        if (leaving.signal.aborted) return records.answer(...args);
        leaving.abort();
        throw new RecordsUnavailableError('test', new Error('away'));
      },
    });
    const open = { kind: 'unknown', reason: 'STILL_PROCESSING', safeToRetry: true };
    const left = limits(LONG, leaving.signal);
    expect(await failing.execute(make('createMoneyOut'), left)).toMatchObject(open);
    await failing.stop();
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'refused', replayed: true });
  });

  it('is sent again also while the record cannot say whether payments are stopped', async () => {
    upstream.faults.push('reset-after');
    const silent = moneyOver({
      held: async () => {
        throw new RecordsUnavailableError('test', new Error('away'));
      },
    });
    expect(await silent.execute(make('createMoneyOut'), limits())).toMatchObject({ kind: 'done' });
    expect([movements(), posts()]).toEqual([1, 2]);
  });

  it.each([
    ['reset-after', true],
    [409, false],
  ] as const)(
    'may be sent again after a stop that came before its repeat unless a first answer has closed it: %s',
    async (fault, safeToRetry) => {
      upstream.faults.push(fault);
      const stopped = { why: 'stopped', since: 0, missing: 0, copied: undefined } as const;
      const own = moneyOver({ held: async () => [stopped] });
      expect(await own.execute(make('createMoneyOut'), limits())).toMatchObject({
        ...{ kind: 'unknown', safeToRetry },
      });
      expect(posts()).toBe(1);
    },
  );

  it('is unknown, and alarmed of, when it is answered with what the record has of another payment', async () => {
    const made = make('createMoneyOut');
    const another = recordName({ ...made, key: 'another-intent' });
    const done = { kind: 'done', status: 200, text: '{}' } as const;
    await records.answer(another, 'another input', done, `createMoneyOut-${key}-1`);
    const differs = { kind: 'unknown', reason: 'ANSWER_DOES_NOT_MATCH', safeToRetry: true };
    expect(await payAndLeave('createMoneyOut')).toMatchObject(differs);
    expect(mismatches).toEqual(['createMoneyOut']);
  });

  it('is alarmed of also where the record, which was away, says only later that the answer is another payment’s', async () => {
    const made = make('createMoneyOut');
    const another = recordName({ ...made, key: 'another-intent' });
    const done = { kind: 'done', status: 200, text: '{}' } as const;
    await records.answer(another, 'another input', done, `createMoneyOut-${key}-1`);
    let away = true;
    const answer: MoneyRecords['answer'] = async (...args) => {
      if (away) throw new RecordsUnavailableError('test', new Error('away'));
      return records.answer(...args);
    };
    const onMismatch = (mutation: MoneyMutation) => mismatches.push(mutation);
    const failing = createMoney({ records: { ...records, answer }, logger, ambient, onMismatch });
    expect(await failing.execute(made, limits())).toMatchObject({ kind: 'done' });
    away = false;
    await failing.stop();
    expect(mismatches).toEqual(['createMoneyOut']);
  });

  it('is unknown for the reason that was seen last, also where it is too late to ask by then', async () => {
    upstream.faults.push('other-amount-after');
    const made = make('createMoneyOut');
    const send: typeof made.calls.send = (...args) =>
      made.calls.send(...args).finally(() => {
        skip = 23 * HOUR;
      });
    // The spread loses which calls belong to which mutation; they are those of `made`.
    const late = { ...made, calls: { ...made.calls, send } } as MoneyOrder;
    expect(await money.execute(late, limits())).toMatchObject({
      ...{ kind: 'unknown', reason: 'ANSWER_DOES_NOT_MATCH', safeToRetry: false },
    });
  });

  it('ends soon where the service says 409 to a first attempt, and is away from then on', async () => {
    upstream.faults.push(409, ...Array.from({ length: 20 }, () => 503));
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'unknown', safeToRetry: false });
    expect(posts()).toBe(5);
  });

  it('is in the journal with the requests that have asked for it, and why it was refused', async () => {
    const asks = (requestId: string) => ({ ...make('createMoneyOut', { amount: '0' }), requestId });
    upstream.faults.push('reset-after', 401);
    await money.execute(asks('first-request'), limits());
    await money.execute(asks('second-request'), limits());
    const { clientId } = asks('');
    const lines = await records.journal.read(clientId, undefined, 10);
    const entries = await new JournalEntries(records, clientId).of(lines);
    expect(entries.map(({ step, requestId, code }) => [step, requestId, code])).toEqual([
      ['asked', 'first-request', null],
      ['sent', null, null],
      ['retried', 'first-request', null],
      ['retried', 'second-request', null],
      ['refused', null, 'A_CODE'],
    ]);
  });

  it('is in progress for as long as repeats meet a 409', async () => {
    upstream.faults.push('reset-after', 409, 409);
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done' });
    expect(movements()).toBe(1);
  });

  it('is unknown and safe to retry for 23 hours when the upstream does not recover; a later call settles it', async () => {
    upstream.faults.push(503, 503);
    const sentAfter = ambient.now();
    const result = await payAndLeave('createMoneyOut', { requests: 2 });
    expect(result).toMatchObject({
      kind: 'unknown',
      safeToRetry: true,
      last: { kind: 'answered', status: 503 },
      sameAnswerAgain: true,
    });
    const { retryUntil } = result as { retryUntil: number };
    expect(retryUntil).toBeGreaterThanOrEqual(sentAfter + 23 * HOUR);
    expect(retryUntil).toBeLessThan(ambient.now() + 23 * HOUR);
    skip = 22 * HOUR;
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done', replayed: false });
    expect(new Set(upstream.received.map(({ body }) => body)).size).toBe(1);
    expect(movements()).toBe(1);
  });

  it.each<[string, Fault, boolean]>([
    ['another page of the same status', '502-after', false],
    ['another status', 503, false],
    ['the same page', { page: 502, served: false }, true],
  ])('says whether the same answer came again: after %s', async (_what, second, isSame) => {
    upstream.faults.push({ page: 502, served: false }, second);
    expect(await payAndLeave('createMoneyOut', { requests: 2 })).toMatchObject({
      kind: 'unknown',
      sameAnswerAgain: isSame,
    });
  });

  it('is unknown and not safe to retry past 23 hours, and nothing is sent any more', async () => {
    upstream.faults.push('reset-after');
    await payAndLeave('createMoneyOut');
    skip = 23 * HOUR;
    const result = await pay('createMoneyOut');
    expect(result).toMatchObject({
      kind: 'unknown',
      safeToRetry: false,
      retryUntil: undefined,
      last: undefined,
      reason: 'TOO_LATE_TO_ASK',
    });
    expect(posts()).toBe(1);
  });

  it('is unknown, and neither free nor refused, when a repeat meets a 401', async () => {
    upstream.faults.push('reset-after', 401);
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'unknown', safeToRetry: true });
    expect(posts()).toBe(2);
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done' });
    expect(movements()).toBe(1);
  });

  it.each(['connection refused', 401, 403, 429, 409] as const)(
    'is unknown, and neither free nor refused, when the first request of a later call meets: %s',
    async (met) => {
      const unknown = { kind: 'unknown', safeToRetry: true };
      upstream.faults.push('reset-after');
      expect(await payAndLeave('createMoneyOut')).toMatchObject(unknown);
      if (met === 'connection refused') {
        const nowhere = `http://127.0.0.1:${await freePort()}`;
        expect(await payAndLeave('createMoneyOut', { url: nowhere })).toMatchObject(unknown);
      } else {
        upstream.faults.push(met);
        expect(await payAndLeave('createMoneyOut')).toMatchObject(unknown);
      }
      expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done', replayed: false });
      expect(movements()).toBe(1);
    },
  );

  it('stops repeating when the caller goes away, and leaves the rest to the next call', async () => {
    upstream.faults.push('reset-after');
    expect(await payAndLeave('createMoneyOut')).toMatchObject({ kind: 'unknown', safeToRetry: true });
    expect(posts()).toBe(1);
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done' });
    expect(movements()).toBe(1);
  });

  it('settles by repeating when its record was lost while its first request still runs', async () => {
    upstream.faults.push(409, 409);
    expect(await pay('createMoneyOut')).toMatchObject({ kind: 'done', replayed: false });
    expect(posts()).toBe(3);
  });

  it.each([1, 3])(
    'is unknown for good when its record was lost and the upstream says 409 to all requests of the call: %i',
    async (requests) => {
      upstream.faults.push(...Array.from({ length: requests }, () => 409));
      const unknown = { kind: 'unknown', safeToRetry: false, retryUntil: undefined };
      expect(await payAndLeave('createMoneyOut', { requests })).toMatchObject(unknown);
      expect(await pay('createMoneyOut')).toMatchObject(unknown);
      expect(posts()).toBe(requests);
    },
  );

  it('is unknown when its deadline comes among the repeats', async () => {
    upstream.faults.push('reset-after', ...Array.from({ length: 200 }, () => 503));
    const cut = order(upstream.url, 'createMoneyOut', key);
    const send: typeof cut.calls.send = (...args) =>
      cut.calls.send(...args).finally(() => {
        skip += 0.3 * LONG;
      });
    // The spread loses which calls belong to which mutation; they are those of `cut`.
    const skipping = { ...cut, calls: { ...cut.calls, send } } as MoneyOrder;
    expect(await money.execute(skipping, limits())).toMatchObject({
      kind: 'unknown',
      safeToRetry: true,
    });
    expect(posts()).toBeGreaterThan(1);
    expect(posts()).toBeLessThan(5);
  });
});

describe.each(ONCE)('%s', (mutation) => {
  it.each([400, 401, 403, 404, 409, 413, 422, 429])(
    'is unknown after a page with %i, and never sent again',
    async (page) => {
      upstream.faults.push({ page, served: true });
      const unknown = { kind: 'unknown', reason: 'NO_ANSWER', safeToRetry: false };
      expect(await pay(mutation)).toMatchObject(unknown);
      expect(await pay(mutation)).toMatchObject(unknown);
      expect([movements(), posts()]).toEqual([1, 1]);
    },
  );

  it('is unknown, for good and with its reason, after the answer to another order', async () => {
    upstream.faults.push('other-amount-after');
    const differs = { kind: 'unknown', reason: 'ANSWER_DOES_NOT_MATCH', safeToRetry: false };
    expect(await pay(mutation)).toMatchObject(differs);
    expect(await pay(mutation)).toMatchObject(differs);
    expect([movements(), posts()]).toEqual([1, 1]);
    expect(mismatches).toEqual([mutation]);
  });

  it.each([
    'reset-before',
    'reset-after',
    'hang-after',
    'truncate-after',
    'garbage-after',
    'no-transaction-after',
    '502-after',
    500,
  ] as const)('is unknown after %s, and never sent again', async (fault) => {
    upstream.faults.push(fault);
    const unknown = { kind: 'unknown', safeToRetry: false, retryUntil: undefined };
    expect(await pay(mutation, patience(fault))).toMatchObject(unknown);
    expect(await pay(mutation)).toMatchObject(unknown);
    skip = 24 * HOUR;
    expect(await pay(mutation)).toMatchObject(unknown);
    expect(posts()).toBe(1);
  });
});

it.each(ONCE)(
  '%s has moved nothing where the service turned it away, also while its key cannot be given back',
  async (mutation) => {
    let away = true;
    const failing = moneyOver({
      release: async (...args) => {
        if (away) throw new RecordsUnavailableError('test', new Error('away'));
        return records.release(...args);
      },
    });
    upstream.faults.push(429);
    expect(await failing.execute(make(mutation), limits())).toMatchObject({ kind: 'nothing-moved' });
    away = false;
    await failing.stop();
    expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
  },
);

describe.each(REPORTED)('%s', (mutation) => {
  it('is refused on a 409 of the service', async () => {
    upstream.faults.push(409);
    expect(await pay(mutation)).toMatchObject({ kind: 'refused', answer: { status: 409 } });
  });
});

describe('refundTransaction', () => {
  it('is not allowed, and sends nothing, when the credit reads REFUNDED', async () => {
    await pay('refundTransaction');
    const other = { ...make('refundTransaction'), key: 'another-intent' };
    const result = await money.execute(other, limits());
    expect(result).toMatchObject({ kind: 'refund-not-allowed', original: { status: 200 } });
    expect([movements(), posts()]).toEqual([1, 1]);
  });

  it('is not allowed, and sends nothing, while another key has a refund of the credit whose end is unknown', async () => {
    upstream.faults.push('reset-before');
    expect(await pay('refundTransaction')).toMatchObject({ kind: 'unknown' });
    const other = { ...make('refundTransaction'), key: 'another-intent' };
    for (const _press of [1, 2]) {
      expect(await money.execute(other, limits())).toMatchObject({
        kind: 'refund-not-allowed',
        because: 'other-refund',
        original: { status: 200 },
      });
    }
    expect([movements(), posts()]).toEqual([0, 1]);
    const { clientId, customerId } = other;
    const read = await money.payments.byKey({ clientId, customerId, keyOwner: undefined, key: other.key });
    expect(read).toBeUndefined();
  });

  it('is not allowed while another key has noted one that never leaves, and is sent once that key is given back', async () => {
    const other = { ...make('refundTransaction'), key: 'another-intent' };
    const caller = new AbortController();
    let beside: MoneyResult | undefined;
    const first = moneyOver({
      markSent: async (...args) => {
        const isMarked = await records.markSent(...args);
        beside = await money.execute(other, limits());
        caller.abort();
        return isMarked;
      },
    });
    const result = await first.execute(make('refundTransaction'), limits(LONG, caller.signal));
    expect(beside).toMatchObject({ kind: 'refund-not-allowed', because: 'other-refund' });
    expect(result).toMatchObject({ kind: 'nothing-moved' });
    expect(posts()).toBe(0);
    expect(await money.execute(other, limits())).toMatchObject({ kind: 'done', replayed: false });
    await first.stop();
  });

  it('is never recorded as sent where the gateway refuses it, and its key is free', async () => {
    const made = make('refundTransaction');
    const refusal = { kind: 'failed', error: new GivenUpError('refused', { dispatched: false }) } as const;
    let refuses = true;
    const check = async () => (refuses ? refusal : undefined);
    // The spread loses which calls belong to which mutation; they are those of `made`.
    const others = { ...made, calls: { ...made.calls, check } } as MoneyOrder;
    expect(await money.execute(others, limits())).toEqual({ kind: 'nothing-moved', because: refusal });
    const lines = await records.journal.read(made.clientId, undefined, 10);
    const entries = await new JournalEntries(records, made.clientId).of(lines);
    expect(entries.map(({ step }) => step)).toEqual(['asked', 'nothing_moved']);
    refuses = false;
    expect(await money.execute(others, limits())).toMatchObject({ kind: 'done', replayed: false });
    refuses = true;
    expect(await money.execute(others, limits())).toMatchObject({ kind: 'done', replayed: true });
    expect(posts()).toBe(1);
  });

  it('sends nothing where the credit was refused as the refund was being recorded, and its key is free', async () => {
    const made = make('refundTransaction');
    const refusal = { kind: 'failed', error: new GivenUpError('refused', { dispatched: false }) } as const;
    const asked: unknown[] = [];
    const checkAgain = async () => {
      asked.push(await records.refundOf(made.clientId, `original-${made.key}-`));
      return asked.length === 1 ? refusal : undefined;
    };
    // The spread loses which calls belong to which mutation; they are those of `made`.
    const other = { ...made, calls: { ...made.calls, checkAgain } } as MoneyOrder;
    expect(await money.execute(other, limits())).toEqual({ kind: 'nothing-moved', because: refusal });
    expect(posts()).toBe(0);
    expect(await records.refundOf(made.clientId, `original-${made.key}-`)).toBeUndefined();
    expect(await money.execute(other, limits())).toMatchObject({ kind: 'done', replayed: false });
    // Whoever answers the credit is told of the refund by then.
    expect(asked).toEqual(['open', 'open']);
  });

  it.each([404, 500, 'reset-before'] as const)(
    'sends nothing when the credit cannot be read (%s), and the key is free',
    async (fault) => {
      upstream.readFaults.push(fault);
      expect(await pay('refundTransaction')).toMatchObject({ kind: 'nothing-moved' });
      expect(posts()).toBe(0);
      expect(await pay('refundTransaction')).toMatchObject({ kind: 'done', replayed: false });
    },
  );

  it('tells after a lost answer how the credit reads, and reads it anew for each call', async () => {
    upstream.faults.push('reset-after');
    const refunded = { body: { transactionStatus: 'REFUNDED' } };
    expect(await pay('refundTransaction')).toMatchObject({ kind: 'unknown', original: refunded });
    upstream.readFaults.push(500);
    expect(await pay('refundTransaction')).toMatchObject({ kind: 'unknown', original: undefined });
    expect(await pay('refundTransaction')).toMatchObject({ kind: 'unknown', original: refunded });
    expect([movements(), posts()]).toEqual([1, 1]);
  });

  it('tells each caller how the credit reads, also after the answer to another order', async () => {
    upstream.faults.push('other-amount-after');
    const told = { kind: 'unknown', original: { body: { transactionStatus: 'REFUNDED' } } };
    expect(await pay('refundTransaction')).toMatchObject(told);
    expect(await pay('refundTransaction')).toMatchObject(told);
  });

  it('does not read the credit again for a caller that has left', async () => {
    const made = make('refundTransaction');
    if (made.mutation !== 'refundTransaction') throw new Error('It is a refund.');
    const caller = new AbortController();
    const told: string[] = [];
    const calls: typeof made.calls = {
      ...made.calls,
      send: (...args) => made.calls.send(...args).finally(() => caller.abort()),
      readOriginal(signal) {
        told.push('read');
        return made.calls.readOriginal(signal);
      },
      isRefunded(original) {
        told.push('asked');
        return made.calls.isRefunded(original);
      },
    };
    upstream.faults.push('reset-after');
    const result = await money.execute({ ...made, calls }, limits(LONG, caller.signal));
    expect(result).toMatchObject({ kind: 'unknown', original: undefined });
    expect(told).toEqual(['read', 'asked']);
  });
});

describe('a claim whose reply was lost', () => {
  it.each(['createMoneyOut', 'createInternalTransaction'] as const)(
    'frees nothing, when another call had sent it: %s',
    async (mutation) => {
      upstream.faults.push('reset-after');
      await payAndLeave(mutation);
      const failing = moneyOver({ claim: (...args) => records.claim(...args).then(loseReply) }, HOUR);
      const refused = expect(failing.execute(make(mutation), limits())).rejects;
      await refused.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await failing.stop();
      // The lease of the claim that was lost holds up nobody.
      const isKnown = mutation === 'createMoneyOut';
      expect(await pay(mutation)).toMatchObject({ kind: isKnown ? 'done' : 'unknown' });
      expect([movements(), posts()]).toEqual([1, isKnown ? 2 : 1]);
    },
  );
});
