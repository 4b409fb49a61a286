import { describe, expect, it } from 'vitest';
import { left } from '../../../src/upstream/call/errors.ts';
import type { Polled, Schedule } from '../../../src/upstream/session/polls.ts';
import type { Transaction } from '../../../src/upstream/transactions.ts';
import { type Shared, settled, share } from '../../resolvers/events/watching.ts';

const SECOND = 1_000;
const EVERY_THREE_SECONDS: Schedule = [{ until: Number.POSITIVE_INFINITY, wait: 3 * SECOND }];

/** One who has a transaction read again, and how often it has been. */
function watcher(
  pollRequester: string,
  key: string,
  read: () => Promise<Transaction | null> = async () => null,
) {
  const watched = {
    pollKey: key,
    pollRequester,
    schedule: EVERY_THREE_SECONDS,
    reads: 0,
    read() {
      watched.reads += 1;
      return read();
    },
    takePoll: () => false,
    pollFailed: () => true,
  } satisfies Polled & { reads: number };
  return watched;
}

type Watcher = ReturnType<typeof watcher>;

/** Adds many of one requester, so that their readings come due at once. */
function crowd(
  { polls }: Shared,
  requester: string,
  count: number,
  read?: () => Promise<Transaction | null>,
) {
  const all = Array.from({ length: count }, (_, index) => watcher(requester, `${requester} ${index}`, read));
  for (const one of all) polls.add(one);
  return all;
}

const sum = (all: readonly Watcher[]): number => all.reduce((total, { reads }) => total + reads, 0);

/** Lets so much time pass, alarm by alarm. */
async function live({ time }: Shared, ms: number, meanwhile: () => void = () => undefined): Promise<void> {
  for (const end = time.clock.now() + ms; time.clock.now() < end; ) {
    meanwhile();
    await time.ring();
  }
}

async function readsAlone(): Promise<number> {
  const shared = share();
  const own = watcher('merchant', 'payment');
  shared.polls.add(own);
  await live(shared, 20 * SECOND);
  return own.reads;
}

describe('readings of one requester beside two thousand of another', () => {
  it('come as often as they do alone', async () => {
    const shared = share();
    const others = crowd(shared, 'other', 2_000);
    const own = watcher('merchant', 'payment');
    shared.polls.add(own);
    await live(shared, 20 * SECOND);
    expect(own.reads).toBeGreaterThanOrEqual((await readsAlone()) - 1);
    // The other has all that is left of the rate.
    expect(sum(others)).toBeGreaterThan(300);
  });

  it('come where those hang, of which sixteen are under way at most', async () => {
    const shared = share();
    const hanging: PromiseWithResolvers<Transaction | null>[] = [];
    const others = crowd(shared, 'other', 2_000, () => {
      const reading = Promise.withResolvers<Transaction | null>();
      hanging.push(reading);
      return reading.promise;
    });
    const own = watcher('merchant', 'payment');
    shared.polls.add(own);
    await live(shared, 20 * SECOND);
    expect(own.reads).toBeGreaterThanOrEqual((await readsAlone()) - 1);
    expect(sum(others)).toBe(16);
    for (let round = 1; round <= 2; round += 1) {
      for (const reading of hanging.splice(0)) reading.resolve(null);
      await live(shared, 3 * SECOND);
      expect(hanging).toHaveLength(16);
    }
    hanging[0]?.reject(new Error('failed'));
    await live(shared, 3 * SECOND);
    expect(hanging).toHaveLength(17);
  });

  it('come where the credentials of sixteen others of the requester hold no longer', async () => {
    const shared = share();
    const ended = crowd(shared, 'merchant', 16, () => Promise.reject(new Error('refused')));
    for (const one of ended) Object.assign(one, { pollFailed: () => false });
    const own = watcher('merchant', 'payment');
    shared.polls.add(own);
    await live(shared, 20 * SECOND);
    expect(sum(ended)).toBe(16);
    expect(own.reads).toBeGreaterThanOrEqual((await readsAlone()) - 1);
  });

  it('come where messages hint at those without end', async () => {
    const shared = share();
    const others = crowd(shared, 'other', 2_000);
    const own = watcher('merchant', 'payment');
    shared.polls.add(own);
    let message = 0;
    await live(shared, 20 * SECOND, () => {
      message += 1;
      // Each transaction may be hinted at eight times at once.
      for (let index = 0; index < 10; index += 1) {
        const hinted = others[(message * 10 + index) % others.length];
        if (hinted !== undefined) shared.polls.hint(hinted, `message ${message}`);
      }
    });
    // What hints have used up of the rate in advance is a second of it.
    expect(own.reads).toBeGreaterThanOrEqual((await readsAlone()) - 2);
  });

  it('that a message hints at go before the rest of their requester’s, in its turn', async () => {
    const shared = share(1);
    const [first, ...others] = crowd(shared, 'other', 50);
    const [hinted, ...rest] = crowd(shared, 'merchant', 50);
    await live(shared, 4 * SECOND);
    if (hinted === undefined || first === undefined) throw new Error('nobody is there');
    hinted.reads = 0;
    const before = sum(rest);
    shared.polls.hint(hinted, 'message');
    await live(shared, 2 * SECOND);
    expect(hinted.reads).toBe(1);
    expect(sum(rest) - before).toBeLessThanOrEqual(1);
    expect(sum([first, ...others])).toBeGreaterThan(1);
  });
});

it('a reading that a message hints at keeps the turn of its requester, who has none but it', async () => {
  const shared = share(1);
  const all = Array.from({ length: 20 }, (_, index) => watcher(`merchant ${index}`, `payment ${index}`));
  for (const one of all) shared.polls.add(one);
  await live(shared, 5 * SECOND);
  const next = all.find(({ reads }) => reads === 0);
  if (next === undefined) throw new Error('none waits');
  for (const message of ['message', 'another message']) shared.polls.hint(next, message);
  await live(shared, SECOND);
  expect(next.reads).toBe(1);
});

describe('a message', () => {
  const scheduled = () => {
    const shared = share();
    const begun = shared.time.clock.now();
    const readAt: number[] = [];
    const own = watcher('merchant', 'payment', async () => {
      readAt.push((shared.time.clock.now() - begun) / SECOND);
      return null;
    });
    const polled = Object.assign(own, {
      schedule: [{ until: Number.POSITIVE_INFINITY, wait: 60 * SECOND }],
    });
    shared.polls.add(polled);
    const hintAt = async (second: number) => {
      shared.time.pass(begun + second * SECOND - shared.time.clock.now());
      shared.polls.hint(polled, `message ${second}`);
      await settled();
    };
    return { shared, polled, readAt, hintAt };
  };

  it('puts no reading of the schedule off', async () => {
    const { shared, readAt, hintAt } = scheduled();
    await hintAt(50);
    await live(shared, 80 * SECOND);
    expect(readAt).toEqual([50, 51, 54, 60, 120, 180]);
  });

  it('puts none off where its reading tells something new either', async () => {
    const { shared, polled, readAt, hintAt } = scheduled();
    Object.assign(polled, { takePoll: () => true });
    await hintAt(50);
    await live(shared, 80 * SECOND);
    expect(readAt).toEqual([50, 60, 120, 180]);
  });

  it('has one of its own readings take the place of one of the schedule that comes due between them', async () => {
    const { shared, readAt, hintAt } = scheduled();
    await hintAt(58);
    await live(shared, 70 * SECOND);
    expect(readAt).toEqual([58, 59, 62, 122, 182]);
  });

  it('has the schedule go on by the clock as it is, where that was put back by an hour', async () => {
    const { shared, readAt, hintAt } = scheduled();
    await hintAt(-3_590);
    await live(shared, 80 * SECOND);
    expect(readAt).toEqual([-3_590, -3_589, -3_586, -3_530, -3_470]);
  });
});

describe('those who leave', () => {
  it('give back their turns, and leave nothing waiting', async () => {
    const shared = share();
    const others = crowd(shared, 'other', 2_000);
    await live(shared, 4 * SECOND);
    for (const other of others) shared.polls.remove(other);
    const read = sum(others);
    if (shared.time.isAsleep) await shared.time.ring();
    expect(sum(others)).toBe(read);
    expect(shared.time.isAsleep).toBe(false);
    const own = watcher('merchant', 'payment');
    shared.polls.add(own);
    await live(shared, 20 * SECOND);
    expect(own.reads).toBe(await readsAlone());
  });

  it('leave a reading that waits for its turn to another of their requester, who stays', async () => {
    const shared = share(1);
    crowd(shared, 'merchant', 1);
    const [leaving, staying] = [watcher('merchant', 'payment'), watcher('merchant', 'payment')];
    for (const one of [leaving, staying]) shared.polls.add(one);
    await live(shared, 3 * SECOND);
    expect([leaving.reads, staying.reads, shared.polls.waiting]).toEqual([0, 0, 1]);
    shared.polls.remove(leaving);
    await live(shared, 2 * SECOND);
    expect([leaving.reads, staying.reads, shared.polls.waiting]).toEqual([0, 1, 0]);
  });

  it('while their reading is under way give its place to another', async () => {
    const shared = share();
    const hanging: PromiseWithResolvers<Transaction | null>[] = [];
    const others = crowd(shared, 'other', 20, () => {
      const reading = Promise.withResolvers<Transaction | null>();
      hanging.push(reading);
      return reading.promise;
    });
    await live(shared, 3 * SECOND);
    expect(hanging).toHaveLength(16);
    const present = others.filter(({ reads }) => reads === 0);
    for (const other of others) if (other.reads > 0) shared.polls.remove(other);
    for (const reading of hanging) reading.resolve(null);
    await settled();
    expect(present.map(({ reads }) => reads)).toEqual([1, 1, 1, 1]);
  });
});

it('a reading that ends without an answer, as its reader has left, is made at once for those who are still there', async () => {
  const shared = share();
  const reading = Promise.withResolvers<null>();
  const failed: unknown[] = [];
  const leaving = Object.assign(
    watcher('merchant', 'payment', () => reading.promise),
    {
      pollFailed: (error: unknown) => failed.push(error) > 0,
    },
  );
  const staying = watcher('merchant', 'payment');
  for (const each of [leaving, staying]) shared.polls.add(each);
  await live(shared, 3 * SECOND);
  expect([leaving.reads, staying.reads]).toEqual([1, 0]);
  shared.polls.remove(leaving);
  reading.reject(left());
  await settled();
  expect(staying.reads).toBe(1);
  expect(failed).toEqual([]);
});

it('a reading that waits for its turn is put off by a whole wait where a message brings the state', async () => {
  const shared = share(1);
  const begun = shared.time.clock.now();
  const [first, told] = crowd(shared, 'merchant', 2);
  if (first === undefined || told === undefined) throw new Error('nobody is there');
  await live(shared, 3 * SECOND);
  expect([first.reads, told.reads]).toEqual([1, 0]);
  shared.polls.putOff(told);
  shared.polls.remove(first);
  while (told.reads === 0) await shared.time.ring();
  expect(shared.time.clock.now() - begun).toBe(6 * SECOND);
});

describe('a reading that is under way', () => {
  const hanging = () => {
    const shared = share();
    const readings: PromiseWithResolvers<Transaction | null>[] = [];
    const told: string[] = [];
    const add = (name: string) => {
      const own = watcher('merchant', 'payment', () => {
        const reading = Promise.withResolvers<Transaction | null>();
        readings.push(reading);
        return reading.promise;
      });
      const watched = {
        ...own,
        takePoll() {
          told.push(name);
          return false;
        },
      };
      shared.polls.add(watched);
      return watched;
    };
    return { shared, readings, told, add };
  };

  it('is the only one of its transaction, though a message brings the state meanwhile, twice', async () => {
    const { shared, readings, add } = hanging();
    const own = add('own');
    for (let round = 1; round <= 2; round += 1) {
      await live(shared, 3 * SECOND);
      shared.polls.putOff(own);
      shared.time.pass(10 * SECOND);
      if (shared.time.isAsleep) await shared.time.ring();
      expect(readings).toHaveLength(round);
      readings.at(-1)?.resolve(null);
      await settled();
    }
  });

  it('is followed by one at once where a message has come meanwhile, and by no third', async () => {
    const { shared, readings, add } = hanging();
    const own = add('own');
    await live(shared, 3 * SECOND);
    shared.polls.hint(own, 'message');
    expect(readings).toHaveLength(1);
    for (const count of [2, 2]) {
      readings.at(-1)?.resolve(null);
      await settled();
      expect(readings).toHaveLength(count);
    }
  });

  it('is made once for a message, however many report it, and when', async () => {
    const { shared, readings, add } = hanging();
    const [own, other] = [add('own'), add('other')];
    shared.polls.hint(own, 'message');
    shared.polls.hint(other, 'message');
    readings[0]?.resolve(null);
    await settled();
    shared.polls.hint(other, 'message');
    expect(readings).toHaveLength(1);
    shared.polls.hint(other, 'another message');
    expect(readings).toHaveLength(2);
  });

  it('tells those who are still there when it ends, and neither who has left nor who has come since', async () => {
    const { shared, readings, told, add } = hanging();
    add('present');
    const leaving = add('left');
    await live(shared, 3 * SECOND);
    shared.polls.remove(leaving);
    add('late');
    readings[0]?.resolve(null);
    await settled();
    expect(told).toEqual(['present']);
  });
});

it('messages cause eight readings at once, and one more in a quarter of an hour, however many come meanwhile', async () => {
  const MINUTE = 60 * SECOND;
  const shared = share();
  const schedule = [{ until: Number.POSITIVE_INFINITY, wait: 60 * MINUTE }];
  // Each reading shows something new, so that none is made again.
  const own = Object.assign(watcher('merchant', 'payment'), { schedule, takePoll: () => true });
  shared.polls.add(own);
  let messages = 0;
  const hint = async () => {
    messages += 1;
    shared.polls.hint(own, `message ${messages}`);
    await settled();
  };
  while (messages < 10) await hint();
  expect(own.reads).toBe(8);
  for (let minute = 1; minute < 15; minute += 1) {
    shared.time.pass(MINUTE);
    await hint();
  }
  expect(own.reads).toBe(8);
  shared.time.pass(2 * MINUTE);
  for (const _time of ['first', 'second']) await hint();
  expect(own.reads).toBe(9);
});

it('a reading goes on under another’s credential where that of the one who reads holds no longer', async () => {
  const shared = share();
  const failing = watcher('merchant', 'payment', () => Promise.reject(new Error('refused')));
  const ended = { ...failing, pollFailed: () => false };
  const other = watcher('merchant', 'payment');
  for (const one of [ended, other]) shared.polls.add(one);
  await live(shared, 3 * SECOND);
  expect([failing.reads, other.reads]).toEqual([1, 1]);
  await live(shared, 3 * SECOND);
  expect([failing.reads, other.reads]).toEqual([1, 2]);
});

it('readings are made under the credential of each who waits in turn', async () => {
  const shared = share();
  const waiting = ['one', 'two', 'three'].map((name) => watcher(name, 'payment'));
  for (const one of waiting) shared.polls.add(one);
  for (let round = 1; round <= 2; round += 1) {
    await live(shared, 9 * SECOND);
    expect(waiting.map(({ reads }) => reads)).toEqual([round, round, round]);
  }
});

describe('one who leaves and comes back', () => {
  const SLOWING: Schedule = [
    { until: 10 * SECOND, wait: SECOND },
    { until: Number.POSITIVE_INFINITY, wait: 60 * SECOND },
  ];

  it.each([
    ['goes on at the pace at which it has left', 20 * 60 * SECOND, 1],
    ['begins anew after half an hour', 31 * 60 * SECOND, 6],
  ])('%s', async (_, awayMs, reads) => {
    const shared = share();
    const own = { ...watcher('merchant', 'payment'), schedule: SLOWING, reads: 0 };
    own.read = async () => {
      own.reads += 1;
      return null;
    };
    shared.time.pass(100 * 60 * SECOND);
    shared.polls.add(own);
    await live(shared, 15 * SECOND);
    shared.polls.remove(own);
    shared.time.pass(awayMs);
    own.reads = 0;
    shared.polls.add(own);
    // The next reading of the slow pace is a minute away.
    await live(shared, 6 * SECOND);
    expect(own.reads).toBe(reads);
  });
});

describe('a reading that several requesters share', () => {
  const waiting = async () => {
    const shared = share(1);
    crowd(shared, 'other', 100);
    // It comes due after the others.
    shared.time.pass(1);
    const slow = watcher('other', 'shared');
    const quick = watcher('merchant', 'shared');
    shared.polls.add(slow);
    // All of them are due.
    await live(shared, 5 * SECOND);
    return { shared, slow, quick, reads: () => slow.reads + quick.reads };
  };

  it('has its turn where the first of them has', async () => {
    const { shared, quick, reads } = await waiting();
    shared.polls.add(quick);
    await live(shared, 2 * SECOND);
    expect(reads()).toBe(1);
  });

  it('waits with those of the one who is left once the other leaves', async () => {
    const { shared, quick, reads } = await waiting();
    shared.polls.add(quick);
    shared.polls.remove(quick);
    await live(shared, 20 * SECOND);
    expect(reads()).toBe(0);
  });
});
