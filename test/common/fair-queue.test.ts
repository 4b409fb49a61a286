import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { clock, type Timer, useClock } from '../../src/common/clock.ts';
import { FairQueue, type FairQueueOptions } from '../../src/common/fair-queue.ts';
import { Party, type Waiter } from '../../src/common/party.ts';

const queueOf = (given: Partial<FairQueueOptions> = {}) =>
  new FairQueue({ total: 2, perCaller: 1, perGroup: 2, ...given });
const requester = (name: string) => ({ caller: name, group: name });
const waiter = (name: string): Waiter => ({
  requester: requester(name),
  urgency: 'operations',
  deadline: Date.now() + 60_000,
});
/** How many seats are free, found by taking them and giving them back. */
function freeSeats(queue: FairQueue): number {
  const taken: string[] = [];
  for (let number = 0; queue.tryEnter(requester(`free ${number}`)); number += 1) taken.push(`free ${number}`);
  for (const name of taken) queue.leave(requester(name));
  return taken.length;
}

it('who joins a party that waits, and has room of its own, has it enter at once in its place', async () => {
  const queue = queueOf();
  expect(queue.tryEnter(requester('one'))).toBe(true);
  const party = new Party(waiter('one'));
  const seat = queue.enter(party);
  expect(queue.waiting).toBe(1);
  party.join(waiter('other'));
  expect(await seat).toEqual(requester('other'));
  expect([queue.waiting, freeSeats(queue)]).toEqual([0, 0]);
});

it('who joins a party that has entered takes no seat', async () => {
  const queue = queueOf();
  const party = new Party(waiter('one'));
  expect(await queue.enter(party)).toEqual(requester('one'));
  party.join(waiter('other'));
  expect([queue.waiting, queue.waitingOf(requester('other')), freeSeats(queue)]).toEqual([0, 0, 1]);
  queue.leave(requester('one'));
  expect(freeSeats(queue)).toBe(2);
});

it('a party that all have left waits no longer, and its turn is the next one’s', async () => {
  const queue = queueOf({ total: 1 });
  queue.tryEnter(requester('busy'));
  const party = new Party();
  const own = [party.join(waiter('one')), party.join(waiter('two'))];
  const left = queue.enter(party);
  const next = queue.enter(new Party(waiter('next')));
  for (const one of own) party.leave(one);
  expect(await left).toBeUndefined();
  expect(queue.waiting).toBe(1);
  queue.leave(requester('busy'));
  expect(await next).toEqual(requester('next'));
});

it('a seat that is handed on is its new holder’s, also beyond what that one may have, and the next of its first holder enters', async () => {
  const queue = queueOf({ total: 3 });
  const [one, other] = [requester('one'), requester('other')];
  expect([queue.tryEnter(one), queue.tryEnter(other)]).toEqual([true, true]);
  const next = queue.enter(new Party(waiter('one')));
  queue.move(one, other);
  expect(await next).toEqual(one);
  queue.leave(other);
  // It has the other seat still.
  expect(queue.tryEnter(other)).toBe(false);
  const waiting = queue.enter(new Party(waiter('other')));
  expect(queue.waiting).toBe(1);
  queue.move(other, other);
  expect(queue.waiting).toBe(1);
  queue.leave(other);
  expect(await waiting).toEqual(other);
  for (const held of [one, other]) queue.leave(held);
  expect(freeSeats(queue)).toBe(3);
});

it('who waits, and is handed the seats that it may have, enters once it has given one back', async () => {
  const queue = queueOf();
  const [one, other, third] = [requester('one'), requester('other'), requester('third')];
  expect([queue.tryEnter(one), queue.tryEnter(third)]).toEqual([true, true]);
  const seat = queue.enter(new Party(waiter('other')));
  queue.move(one, other);
  // Nobody else waits for the seat that becomes free.
  queue.leave(third);
  expect([queue.waiting, freeSeats(queue)]).toEqual([1, 1]);
  queue.leave(other);
  expect(await seat).toEqual(other);
});

it('a seat is handed on to a caller of the same name in another group', () => {
  const queue = queueOf({ total: 9, perCaller: 9, perGroup: 1 });
  const [own, other] = [
    { caller: 'one', group: 'own' },
    { caller: 'one', group: 'other' },
  ];
  expect(queue.tryEnter(own)).toBe(true);
  queue.move(own, other);
  expect([queue.tryEnter(other), queue.tryEnter(own)]).toEqual([false, true]);
});

it('those of different groups take turns, however many of one wait', async () => {
  const queue = queueOf({ total: 1, perCaller: 9, perGroup: 9 });
  queue.tryEnter(requester('busy'));
  const order: string[] = [];
  const enter = (name: string) =>
    queue.enter(new Party(waiter(name))).then((seat) => {
      order.push(name);
      queue.leave(seat ?? requester(name));
    });
  const all = [enter('many'), enter('many'), enter('many'), enter('one')];
  queue.leave(requester('busy'));
  await Promise.all(all);
  expect(order.indexOf('one')).toBeLessThan(2);
});

it.each(['callers of one group', 'groups'])('%s that have something under way take turns', async (what) => {
  const queue = queueOf({ total: 3, perCaller: 9, perGroup: 9 });
  const nameOf = (caller: string) => ({ caller, group: what === 'groups' ? caller : 'all' });
  for (const name of ['one', 'other', 'busy']) queue.tryEnter(nameOf(name));
  const order: string[] = [];
  const enter = async (name: string) => {
    await queue.enter(new Party({ ...waiter(name), requester: nameOf(name) }));
    order.push(name);
    queue.leave(nameOf(name));
  };
  const all = ['one', 'one', 'one', 'other', 'other', 'other'].map(enter);
  queue.leave(nameOf('busy'));
  await Promise.all(all);
  expect(order).toEqual(['one', 'other', 'one', 'other', 'one', 'other']);
});

it('urgent calls that passed nothing over let no less urgent one go first', async () => {
  const queue = queueOf({ perCaller: 2 });
  // As long as it has a call under way, it is remembered what it passed over.
  queue.tryEnter(requester('one'));
  const enter = async (urgency: Waiter['urgency']) => {
    await queue.enter(new Party({ ...waiter('one'), urgency }));
    queue.leave(requester('one'));
    return urgency;
  };
  for (let alone = 0; alone < 3; alone += 1) await enter('operations');
  queue.tryEnter(requester('busy'));
  const both = Promise.race([enter('arrivals'), enter('operations')]);
  queue.leave(requester('busy'));
  expect(await both).toBe('operations');
});

it('a less urgent call waits for three more urgent ones of its caller at a time, however many there are', async () => {
  const queue = queueOf({ total: 1 });
  queue.tryEnter(requester('busy'));
  const order: Waiter['urgency'][] = [];
  const enter = async (urgency: Waiter['urgency']) => {
    await queue.enter(new Party({ ...waiter('one'), urgency }));
    order.push(urgency);
    queue.leave(requester('one'));
  };
  const all = Array.from({ length: 8 }, () => enter('operations'));
  all.push(enter('arrivals'), enter('arrivals'));
  queue.leave(requester('busy'));
  await Promise.all(all);
  const three = ['operations', 'operations', 'operations'];
  expect(order).toEqual([...three, 'arrivals', ...three, 'arrivals', 'operations', 'operations']);
});

it('a group that has its share waits for one of its own to leave, though seats are free', async () => {
  const queue = queueOf({ total: 4, perCaller: 4, perGroup: 2 });
  const ofGroup = (caller: string) => ({ caller, group: 'group' });
  const callers = ['one', 'two', 'three', 'four'].map(ofGroup);
  const entered: string[] = [];
  const seats = callers.map(async (caller) => {
    await queue.enter(new Party({ ...waiter(''), requester: caller }));
    entered.push(caller.caller);
  });
  await Promise.all(seats.slice(0, 2));
  expect([entered, queue.waiting, queue.tryEnter(requester('of another'))]).toEqual([
    ['one', 'two'],
    2,
    true,
  ]);
  queue.leave(ofGroup('one'));
  await seats[2];
  // What has left the other group gives this one no more.
  queue.leave(requester('of another'));
  expect([entered, queue.waiting]).toEqual([['one', 'two', 'three'], 1]);
  queue.leave(ofGroup('two'));
  await seats[3];
  expect(freeSeats(queue)).toBe(2);
});

it('whoever no longer waits is not waited for: no timer is left, and nothing of its group', async () => {
  const system = clock;
  const timers = new Set<Timer | undefined>();
  const putBack = useClock({
    ...system,
    setTimeout: (...args) => {
      const timer = system.setTimeout(...args);
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer) => {
      timers.delete(timer);
      system.clearTimeout(timer);
    },
  });
  const maps = () => queryObjects(Map, { format: 'count' });
  try {
    const queue = queueOf();
    const before = maps();
    for (let number = 0; number < 2_000; number += 1) {
      const seat = await queue.enter(new Party(waiter(`group ${number}`)));
      if (seat !== undefined) queue.leave(seat);
    }
    expect(timers.size).toBe(0);
    // Each group has one of its callers.
    expect(maps()).toBeLessThan(before + 500);
    expect(freeSeats(queue)).toBe(2);
  } finally {
    putBack();
  }
});
