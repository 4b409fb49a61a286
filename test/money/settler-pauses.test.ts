import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { type Logger, silentLogger } from '../../src/common/logger.ts';
import type { Ambient } from '../../src/money/ambient.ts';
import { createMoney } from '../../src/money/execute.ts';
import type { RecordName } from '../../src/money/intent.ts';
import { createPersistence } from '../../src/money/persist.ts';
import type { MoneyRecords, OrderSummary, StoredAnswer } from '../../src/money/record.ts';
import type { SettlingCalls } from '../../src/money/settling/open-payment.ts';
import type { OpenPayment } from '../../src/money/settling/open-records.ts';
import { createSettler } from '../../src/money/settling/settler.ts';

const CLIENT = 'client';
const LONG = 1e12;
/** As long as a real one: ids of payments are made of it. */
const HASH = randomBytes(32).toString('base64url');
const never = () => {
  throw new Error('Nothing was taken, so that nothing is asked of the service.');
};
const CALLS: SettlingCalls = {
  ...{ isOver: () => false, repeat: never, reading: never, codeOf: never, look: never },
};
const LATER = { calls: () => CALLS, until: LONG, credential: 'token' };
const DONE: StoredAnswer = { kind: 'done', status: 200, text: '{}' };
const UNKNOWN: StoredAnswer = { kind: 'unknown', status: 0, text: '' };

/** A time that passes while somebody sleeps, and stands still once so many pauses were made. */
function createTime(most: number) {
  const pauses: number[] = [];
  const over = Promise.withResolvers<void>();
  let now = 0;
  const ambient: Ambient = {
    now: () => now,
    random: () => 0,
    newId: () => 'settler',
    async sleep(ms, signal) {
      pauses.push(ms);
      now += 10_000;
      if (pauses.length < most) return;
      over.resolve();
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
  return { ambient, pauses, over: over.promise };
}

/** A settler over a store of which only what is given can be reached. */
function createWorld(most: number, reachable: Partial<MoneyRecords>, logger: Logger = silentLogger) {
  const time = createTime(most);
  // A settler takes and asks; a step that is missing here throws, which the tests below would show as a failure of a look.
  const records = { ...reachable, idKey: later } as MoneyRecords;
  const { ambient } = time;
  const persistence = createPersistence(records, ambient, logger);
  return {
    ...time,
    settler: createSettler({ records, persistence, ambient, logger, onUnread: () => expect.unreachable() }),
  };
}

/** The key of ids of payments, later than what is under way when it is asked for. */
const later = () => new Promise<Buffer>((resolve) => setImmediate(() => resolve(randomBytes(32))));

const IDS = { idKey: later };
const NAME: RecordName = { clientId: CLIENT, hash: HASH };

/** A record of which no more is read here than its answer. */
const recordOf = (answer: StoredAnswer | null) => ({ answer }) as Awaited<ReturnType<MoneyRecords['read']>>;

it('keeps a payment that is unknown, forgets one that another has settled, and then looks after the next', async () => {
  const answers: (StoredAnswer | null)[] = [null, UNKNOWN, DONE];
  const taken: string[] = [];
  const next = Promise.withResolvers<void>();
  const { settler } = createWorld(1_000, {
    async takeOpen({ hash }) {
      taken.push(hash);
      if (hash === 'second') next.resolve();
      return undefined;
    },
    async read({ hash }) {
      const answer = hash === 'first' ? (answers.shift() ?? null) : DONE;
      // By the time that another comes, nothing is left to look after.
      if (hash === 'first' && answers.length === 0) setImmediate(() => remember('second'));
      return recordOf(answer);
    },
  });
  const remember = (hash: string) => settler.remember({ clientId: CLIENT, hash }, LATER);
  remember('first');
  await next.promise;
  expect(taken).toEqual(['first', 'first', 'first', 'second']);
  await settler.drain();
});

it('looks after the next at whatever moment it is remembered while the last one is forgotten', async () => {
  for (let turns = 0; turns < 40; turns += 1) {
    const next = Promise.withResolvers<void>();
    const { settler } = createWorld(1_000, {
      async takeOpen({ hash }) {
        if (hash === 'second') next.resolve();
        return undefined;
      },
      async read({ hash }) {
        if (hash === 'first') void rememberAfter(turns);
        return recordOf(DONE);
      },
    });
    const remember = (hash: string) => settler.remember({ clientId: CLIENT, hash }, LATER);
    const rememberAfter = async (left: number): Promise<void> => {
      for (let turn = 0; turn < left; turn += 1) await undefined;
      remember('second');
    };
    remember('first');
    await next.promise;
    await settler.drain();
  }
});

const ASKED: OrderSummary = {
  operation: 'createInternalTransaction',
  ...{ amount: '1.00', source: 'one', destination: 'other', customerId: null, requestedBy: 'somebody' },
};
const openPayment = (name: RecordName): OpenPayment => ({
  ...{ name, asked: ASKED, inputHash: 'hash', upstreamKey: null, closed: null, original: null },
  ...{ tries: 0, isCurrent: true, body: '{}', sentAt: 0, ageMs: 0, keyOwner: '', twin: null },
});

it('ends a look when three in a row have no answer, not three of many', async () => {
  let looks = 0;
  const names = Array.from({ length: 9 }, (_, number) => ({ clientId: CLIENT, hash: String(number) }));
  const { settler, over, pauses } = createWorld(2, {
    tidy: async () => undefined,
    due: async () => names,
    takeOpen: async (name) => openPayment(name),
    putOff: async () => undefined,
  });
  settler.serve(CLIENT, {
    ...CALLS,
    async look() {
      looks += 1;
      // In the first look two of three have no answer, in the second none has one.
      if (looks > names.length || looks % 3 !== 0) throw new Error('The service does not answer.');
      return { kind: 'open', seen: 'nothing' };
    },
  });
  await over;
  await settler.drain();
  // Four are taken at once: beyond the third without an answer no more is taken than was under way.
  expect(looks).toBeGreaterThanOrEqual(names.length + 3);
  expect(looks).toBeLessThan(2 * names.length);
  expect(pauses).toEqual([1_000, 500]);
});

it('goes on without a pause as long as more is due than one look finds, and some of it is settled', async () => {
  const open = new Set(Array.from({ length: 120 }, (_, number) => `${number}`));
  const settled: string[] = [];
  let looks = 0;
  const { settler, over } = createWorld(1, {
    tidy: async () => undefined,
    async due(clientId, limit) {
      looks += 1;
      return [...open].slice(0, limit).map((hash) => ({ clientId, hash }));
    },
    takeOpen: async (name) => openPayment(name),
    isPutBack: async () => false,
    async answer({ hash }) {
      settled.push(hash);
      return open.delete(hash);
    },
  });
  settler.serve(CLIENT, {
    ...CALLS,
    look: async () => ({ kind: 'done', text: '{}', transactionId: undefined }),
  });
  await over;
  await settler.drain();
  expect([looks, settled.length, new Set(settled).size]).toEqual([3, 120, 120]);
});

it('a payment that a server of the record does not know is kept until it is certain that nobody knows it', async () => {
  const again = Promise.withResolvers<void>();
  let looks = 0;
  const { settler } = createWorld(1_000, {
    async takeOpen() {
      looks += 1;
      if (looks === 2) again.resolve();
      return undefined;
    },
    // As a server that a failover has replaced.
    read: async () => undefined,
    confirmReads: () => Promise.reject(new Error('It is not certain now which server has the record.')),
  });
  settler.remember({ clientId: CLIENT, hash: HASH }, LATER);
  await again.promise;
  await settler.drain();
});

it('a stop waits for every look that is under way, also once another has failed', async () => {
  const [begun, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const order: string[] = [];
  const { settler } = createWorld(1_000, {
    tidy: async () => undefined,
    due: async () => ['fails', 'waits'].map((hash) => ({ clientId: CLIENT, hash })),
    async takeOpen(name) {
      await begun.promise;
      if (name.hash === 'fails') throw new Error('The store does not answer.');
      return openPayment(name);
    },
    putOff: async () => undefined,
  });
  settler.serve(CLIENT, {
    ...CALLS,
    async look() {
      await answer.promise;
      order.push('looked');
      return { kind: 'open', seen: 'nothing' };
    },
  });
  begun.resolve();
  await later();
  const drained = settler.drain().then(() => order.push('drained'));
  for (let turn = 0; turn < 20; turn += 1) await later();
  answer.resolve();
  await drained;
  expect(order).toEqual(['looked', 'drained']);
});

it('looks that wait for nothing, as over a file, let others have their turn between them', async () => {
  const names = Array.from({ length: 40 }, (_, number) => ({ clientId: CLIENT, hash: String(number) }));
  const { settler, over } = createWorld(1, {
    tidy: async () => undefined,
    due: async () => names,
    takeOpen: async (name) => openPayment(name),
    putOff: async () => undefined,
  });
  let turn = 0;
  const looksOfTurn: number[] = [];
  settler.serve(CLIENT, {
    ...CALLS,
    async look() {
      looksOfTurn[turn] = (looksOfTurn[turn] ?? 0) + 1;
      return { kind: 'open', seen: 'nothing' };
    },
  });
  const isOver = over.then(() => true);
  while (!(await Promise.race([isOver, later().then(() => false)]))) turn += 1;
  await settler.drain();
  expect(looksOfTurn.reduce((sum, looks) => sum + looks, 0)).toBe(40);
  expect(Math.max(...looksOfTurn.filter((looks) => looks !== undefined))).toBeLessThanOrEqual(8);
});

it('a client whose service does not answer keeps no other client’s remembered payments waiting, and is tried seldom', async () => {
  const hangs = Promise.withResolvers<void>();
  const looked: string[] = [];
  const told = Promise.withResolvers<void>();
  const { settler } = createWorld(3, {
    takeOpen: async (name) => openPayment(name),
    putOff: async () => undefined,
    read: async () => recordOf(null),
  });
  const remember = (clientId: string, hash: string, look: SettlingCalls['look']) =>
    settler.remember({ clientId, hash }, { ...LATER, calls: () => ({ ...CALLS, look }) });
  for (let number = 0; number < 50; number += 1) {
    remember(CLIENT, `${number}`, async ({ name }) => {
      looked.push(name.hash);
      await hangs.promise;
      throw new Error('The service does not answer.');
    });
  }
  remember('another client', 'own', async () => {
    told.resolve();
    return { kind: 'open', seen: 'nothing' };
  });
  await told.promise;
  hangs.resolve();
  // None is tried that was not under way when the third failed.
  await new Promise((resolve) => setImmediate(resolve));
  settler.drain();
  await settler.drain();
  expect(looked.length).toBeLessThanOrEqual(6);
});

it('a client whose service does not answer has each of its remembered payments tried in turn', async () => {
  const looked: string[] = [];
  const { settler, over } = createWorld(4, {
    takeOpen: async (name) => openPayment(name),
    putOff: async () => undefined,
  });
  const look = async ({ name }: OpenPayment) => {
    looked.push(name.hash);
    throw new Error('The service does not answer.');
  };
  for (let number = 0; number < 9; number += 1)
    settler.remember(
      { clientId: CLIENT, hash: `${number}` },
      { ...LATER, calls: () => ({ ...CALLS, look }) },
    );
  await over;
  await settler.drain();
  // In a look at the first, and two at all, neither of which has come to its end.
  expect(looked.length).toBeLessThan(1 + 2 * 9);
  expect(new Set(looked).size).toBe(9);
});

it('a caller that asks while its payment is looked for has it looked for once more', async () => {
  const asked: (boolean | undefined)[] = [];
  const again = Promise.withResolvers<void>();
  const { settler, ambient } = createWorld(1_000, {
    async takeOpen(name, _owner, _leaseMs, isAsked) {
      asked.push(isAsked);
      if (asked.length === 3) again.resolve();
      // The first time somebody else has it.
      return asked.length === 1 ? undefined : openPayment(name);
    },
    putOff: async () => undefined,
    read: async () => recordOf(null),
  });
  const remember = () =>
    settler.remember({ clientId: CLIENT, hash: 'one' }, { ...LATER, calls: () => calls });
  const calls: SettlingCalls = {
    ...CALLS,
    async look() {
      const begunAt = ambient.now();
      while (ambient.now() - begunAt < 5 * 60_000) await ambient.sleep(0, AbortSignal.any([]));
      if (asked.length === 2) remember();
      return { kind: 'open', seen: 'nothing' };
    },
  };
  remember();
  await again.promise;
  await settler.drain();
  expect(asked).toEqual([true, true, true]);
});

it('payments that were looked for to the end leave their places to those that are asked about next', async () => {
  let given = 0;
  const all = Promise.withResolvers<void>();
  const next = Promise.withResolvers<void>();
  const { settler } = createWorld(1_000, {
    // Older than two days.
    takeOpen: async (name) => ({ ...openPayment(name), ageMs: LONG }),
    putOff: async () => undefined,
    read: async () => recordOf(null),
  });
  const calls: SettlingCalls = {
    ...CALLS,
    async look({ name }) {
      if (name.hash === 'next') next.resolve();
      given += 1;
      if (given === 100) all.resolve();
      return { kind: 'open', seen: 'nothing' };
    },
  };
  const remember = (hash: string) =>
    settler.remember({ clientId: CLIENT, hash }, { ...LATER, calls: () => calls });
  for (let number = 0; number < 100; number += 1) remember(`${number}`);
  await all.promise;
  remember('next');
  await next.promise;
  await settler.drain();
});

it('a stop waits for the line of what is settled while it stops', async () => {
  const lines: string[] = [];
  const told: Logger = { ...silentLogger, info: (_fields, message) => lines.push(message) };
  const stopped = Promise.withResolvers<void>();
  const { settler } = createWorld(
    2,
    {
      tidy: async () => undefined,
      due: async () => [{ clientId: CLIENT, hash: 'one' }],
      takeOpen: async (name) => openPayment(name),
      isPutBack: async () => false,
      answer: async () => true,
    },
    told,
  );
  settler.serve(CLIENT, {
    ...CALLS,
    async look() {
      void settler.drain().then(stopped.resolve);
      return { kind: 'done', text: '{}', transactionId: undefined };
    },
  });
  await stopped.promise;
  expect(lines).toEqual(['payment settled']);
});

it('a stop waits for the line of what the store takes at the very end', async () => {
  const lines: (readonly [string, unknown])[] = [];
  const logger: Logger = {
    ...silentLogger,
    info: (fields, message) => lines.push([message, Object(fields).paymentId]),
  };
  const refused = Promise.withResolvers<void>();
  let answers = 0;
  let isOpen = true;
  const reachable: Partial<MoneyRecords> = {
    tidy: async () => undefined,
    due: async () => [{ clientId: CLIENT, hash: HASH }],
    takeOpen: async (name) => openPayment(name),
    putOff: async () => undefined,
    isPutBack: async () => false,
    async answer() {
      answers += 1;
      if (answers > 1) return true;
      refused.resolve();
      throw new Error('The store is away.');
    },
    async idKey() {
      const key = await later();
      if (!isOpen) throw new Error('The store is closed.');
      return key;
    },
  };
  const { ambient } = createTime(1);
  // Of a store this reaches what is given, as above.
  const money = createMoney({ records: reachable as MoneyRecords, logger, ambient });
  const look: SettlingCalls['look'] = async () => ({ kind: 'done', text: '{}', transactionId: undefined });
  money.serve(CLIENT, { ...CALLS, look });
  await refused.promise;
  await money.stop();
  isOpen = false;
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  expect(lines).toEqual([
    ['the record of a payment is written after all, or nothing is left to write', expect.any(String)],
    ['payment settled', expect.any(String)],
  ]);
});

it('looks after what is remembered as often as before once the store answers again', async () => {
  const { settler, over, pauses } = createWorld(7, {
    async takeOpen(name) {
      if (pauses.length < 5) throw new Error('The store is away.');
      return openPayment(name);
    },
    putOff: async () => undefined,
  });
  const look: SettlingCalls['look'] = async () => ({ kind: 'open', seen: 'nothing' });
  for (const hash of ['one', 'two', 'three', 'four'])
    settler.remember({ clientId: CLIENT, hash }, { ...LATER, calls: () => ({ ...CALLS, look }) });
  await over;
  await settler.drain();
  // Half of the longest of each: in the first look one payment is due alone, then three looks fail, and two do not.
  expect(pauses).toEqual([1_000, 1_000, 500, 1_000, 2_000, 1_000, 1_000]);
});

it('comes back soon once the store answers again, and tidies what it could not tidy', async () => {
  let tidies = 0;
  const { settler, over, pauses } = createWorld(5, {
    async tidy() {
      tidies += 1;
      if (tidies <= 3) throw new Error('The store is away.');
    },
    due: async () => [],
  });
  settler.serve(CLIENT, CALLS);
  await over;
  await settler.drain();
  // Half of the longest of each, as chance has it here: three failures, then two looks.
  expect(pauses).toEqual([500, 1_000, 2_000, 1_000, 1_000]);
  expect(tidies).toBe(4);
});

it('tells when it has gone through the payments of every client last, and leaves out what it could not read', async () => {
  let isAway = true;
  const [read, whole] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const passes = { [CLIENT]: 0, other: 0 };
  const { settler, ambient } = createWorld(1_000, {
    tidy: async () => undefined,
    async due(clientId) {
      if (clientId === 'other' && isAway) throw new Error('The store is away.');
      passes[clientId as keyof typeof passes] += 1;
      if (passes[CLIENT] > 2) read.resolve();
      if (passes.other > 2) whole.resolve();
      return [];
    },
  });
  expect(settler.lastPass()).toBeUndefined();
  settler.serve(CLIENT, CALLS);
  settler.serve('other', CALLS);
  await read.promise;
  expect(settler.lastPass()).toBe(0);
  isAway = false;
  await whole.promise;
  expect(settler.lastPass()).toBeGreaterThan(0);
  expect(settler.lastPass()).toBeLessThanOrEqual(ambient.now());
  await settler.drain();
});

it.each([
  ['more are due than one look finds, and none can be settled', 'nothing', 50],
  ['the service does not answer', 'away', 3],
] as const)('does not tell that it has gone through what is due while %s', async (_when, seen, left) => {
  let looks = 0;
  let due: number = left;
  const all = Promise.withResolvers<void>();
  const { settler } = createWorld(1_000, {
    tidy: async () => undefined,
    async due() {
      looks += 1;
      if (looks === 5) due = 2;
      if (looks === 7) all.resolve();
      return Array.from({ length: due }, (_, number) => ({ clientId: CLIENT, hash: String(number) }));
    },
    takeOpen: async (name) => openPayment(name),
    putOff: async () => undefined,
  });
  const passes: (number | undefined)[] = [];
  settler.serve(CLIENT, {
    ...CALLS,
    async look() {
      passes[looks] = settler.lastPass();
      if (seen === 'away' && due === left) throw new Error('The service does not answer.');
      return { kind: 'open', seen: 'nothing' };
    },
  });
  await all.promise;
  await settler.drain();
  expect(passes.slice(1, 6)).toEqual([0, 0, 0, 0, 0]);
  expect(passes[6]).toBeGreaterThan(0);
});

it('a step whose first try is under way is waited for at a stop, and tried once more if that fails', async () => {
  const { ambient } = createTime(1);
  const persistence = createPersistence(IDS, ambient, silentLogger);
  const first = Promise.withResolvers<void>();
  let tries = 0;
  const step = async () => {
    tries += 1;
    if (tries === 1) await first.promise;
  };
  const told = persistence.persist('release', NAME, step);
  let hasStopped = false;
  const stopped = persistence.stop().then(() => {
    hasStopped = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasStopped).toBe(false);
  first.reject(new Error('The store is away.'));
  expect(await told).toBe(false);
  await stopped;
  expect(tries).toBe(2);
});

it('a step that the store does not take is tried once more at a stop, however soon that comes', async () => {
  const { ambient } = createTime(1);
  const persistence = createPersistence(IDS, ambient, silentLogger);
  let tries = 0;
  const step = async () => {
    tries += 1;
    if (tries < 3) throw new Error('The store is away.');
  };
  expect(await persistence.persist('answer', NAME, step)).toBe(false);
  await persistence.stop();
  expect(tries).toBe(3);
});

it('a step that the store does not take is tried again until the time of a stop is over', async () => {
  const { ambient } = createTime(1);
  // Whether a pause is none, since what would end it has come already.
  const ended: boolean[] = [];
  const sleep: Ambient['sleep'] = async (_ms, signal) => void ended.push(signal.aborted);
  const persistence = createPersistence(IDS, { ...ambient, sleep }, silentLogger);
  const over = new AbortController();
  let tries = 0;
  const step = async () => {
    tries += 1;
    if (tries === 5) over.abort();
    throw new Error('The store is away.');
  };
  expect(await persistence.persist('answer', NAME, step)).toBe(false);
  await persistence.stop(over.signal);
  expect(tries).toBe(6);
  expect(ended).toEqual([false, false, false, false, true]);
});

it('the log names the payment of a step once the store can say it, where it could not at first', async () => {
  const { ambient } = createTime(1_000);
  const written = Promise.withResolvers<object>();
  const logger: Logger = { ...silentLogger, info: (fields) => written.resolve(fields) };
  let isAway = true;
  const idKey = async () => {
    if (isAway) throw new Error('The store is away.');
    return later();
  };
  const step = async () => {
    if (isAway) throw new Error('The store is away.');
  };
  const persistence = createPersistence({ idKey }, ambient, logger);
  expect(await persistence.persist('answer', NAME, step)).toBe(false);
  expect(persistence.waiting()).toBe(1);
  isAway = false;
  expect(await written.promise).toMatchObject({
    paymentId: expect.stringMatching(/^[\w-]{43}$/),
    waiting: 0,
  });
  expect(persistence.waiting()).toBe(0);
});

it('the log names the payment of a step that is tried on, and says when nothing waits any more', async () => {
  const { ambient } = createTime(1_000);
  const lines: [object, string][] = [];
  const over = Promise.withResolvers<void>();
  const logger: Logger = {
    ...silentLogger,
    warn: (...line) => lines.push(line),
    info(...line) {
      lines.push(line);
      over.resolve();
    },
  };
  const persistence = createPersistence(IDS, ambient, logger);
  let tries = 0;
  const step = async () => {
    tries += 1;
    if (tries < 3) throw new Error('The store is away.');
  };
  expect(await persistence.persist('answer', NAME, step)).toBe(false);
  await over.promise;
  const told = { what: 'answer', clientId: CLIENT, paymentId: expect.stringMatching(/^[\w-]{43}$/) };
  expect(lines).toEqual([
    [
      { ...told, err: expect.any(Error), waiting: expect.any(Number) },
      'the record of a payment could not be written, trying on',
    ],
    [{ ...told, waiting: 0 }, 'the record of a payment is written after all, or nothing is left to write'],
  ]);
});
