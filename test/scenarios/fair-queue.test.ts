import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../src/common/fair-queue.ts';
import { Party, type Requester, type Waiter } from '../../src/common/party.ts';
import type { Urgency } from '../../src/common/turns.ts';
import { until } from '../helpers/until.ts';

const LONG = 60_000;

/** `a` is a caller that is a group of its own, `A/a` one of a group. */
const requesterOf = (name: string): Requester => {
  const [group = '', caller = group] = name.split('/');
  return { group, caller };
};

const waiterOf = (name: string, urgency: Urgency = 'operations', forMs = LONG): Waiter => ({
  requester: requesterOf(name),
  urgency,
  deadline: Date.now() + forMs,
});

const nameOf = ({ group, caller }: Requester): string => (group === caller ? caller : `${group}/${caller}`);

/** Asks for a seat for each; tells the order in which they got one. */
function ask(queue: FairQueue, names: readonly string[]): { readonly entered: string[] } {
  const entered: string[] = [];
  for (const name of names) {
    if (queue.tryEnter(requesterOf(name))) entered.push(name);
    else
      void queue
        .enter(new Party(waiterOf(name)))
        .then((requester) => requester && entered.push(nameOf(requester)));
  }
  return { entered };
}

const turn = () => new Promise(setImmediate);

describe('a fair queue', () => {
  it('gives one caller no more than its share', async () => {
    const queue = new FairQueue({ total: 10, perCaller: 2, perGroup: 10 });
    const { entered } = ask(queue, ['a', 'a', 'a', 'a', 'b']);
    expect(entered).toEqual(['a', 'a', 'b']);
    expect([queue.waiting, queue.waitingOf(requesterOf('a')), queue.waitingOf(requesterOf('b'))]).toEqual([
      2, 2, 0,
    ]);
    queue.leave(requesterOf('b'));
    await turn();
    expect(entered).toEqual(['a', 'a', 'b']);
    queue.leave(requesterOf('a'));
    await turn();
    expect(entered).toEqual(['a', 'a', 'b', 'a']);
  });

  it('gives all callers of one group no more than its share, and that in turns', async () => {
    const queue = new FairQueue({ total: 8, perCaller: 2, perGroup: 4 });
    const { entered } = ask(queue, ['A/1', 'A/1', 'A/1', 'A/2', 'A/2', 'A/3', 'A/3', 'A/4', 'B/1']);
    expect(entered).toEqual(['A/1', 'A/1', 'A/2', 'A/2', 'B/1']);
    for (const leaver of ['A/1', 'A/2', 'A/1', 'A/2']) {
      queue.leave(requesterOf(leaver));
      await turn();
    }
    // Those with nothing under way come first.
    expect(entered.slice(5)).toEqual(['A/3', 'A/4', 'A/1', 'A/3']);
    expect(queue.waiting).toBe(0);
  });

  it('lets a caller that has nothing under way in before one that has, whoever asked first', async () => {
    const queue = new FairQueue({ total: 2, perCaller: 2, perGroup: 2 });
    const { entered } = ask(queue, ['a', 'a', 'a', 'a', 'a', 'b']);
    queue.leave(requesterOf('a'));
    await turn();
    expect(entered).toEqual(['a', 'a', 'b']);
  });

  it('counts a group with many callers once', async () => {
    const queue = new FairQueue({ total: 2, perCaller: 1, perGroup: 2 });
    const { entered } = ask(queue, ['A/1', 'A/2', 'A/3', 'A/4', 'A/5', 'B']);
    queue.leave(requesterOf('A/1'));
    await turn();
    expect(entered).toEqual(['A/1', 'A/2', 'B']);
  });

  it('lets callers that wait take turns', async () => {
    const queue = new FairQueue({ total: 3, perCaller: 3, perGroup: 3 });
    const { entered } = ask(queue, ['a', 'b', 'c', ...'aaabbbccc']);
    for (const key of 'abcabcabc') {
      queue.leave(requesterOf(key));
      await turn();
    }
    const counts = (upTo: number) =>
      ['a', 'b', 'c'].map((key) => entered.slice(0, upTo).filter((one) => one === key).length);
    expect(counts(6)).toEqual([2, 2, 2]);
    expect(counts(9)).toEqual([3, 3, 3]);
  });

  it('takes no turn from a caller that goes on asking', async () => {
    const queue = new FairQueue({ total: 1, perCaller: 1, perGroup: 1 });
    const { entered } = ask(queue, ['x', 'a', 'b', 'b', 'b', 'a']);
    queue.leave(requesterOf('x'));
    await turn();
    expect(entered).toEqual(['x', 'a']);
  });

  it('lets what is more pressing go first among one caller’s own, and the rest now and then', async () => {
    const queue = new FairQueue({ total: 1, perCaller: 1, perGroup: 1 });
    expect(queue.tryEnter(requesterOf('a'))).toBe(true);
    const entered: Urgency[] = [];
    const urgencies: Urgency[] = ['streams', 'streams', ...Array<Urgency>(6).fill('operations')];
    for (const urgency of urgencies) {
      void queue.enter(new Party(waiterOf('a', urgency))).then(() => entered.push(urgency));
    }
    for (const _ of urgencies) {
      queue.leave(requesterOf('a'));
      await turn();
    }
    const pressing = Array<Urgency>(3).fill('operations');
    expect(entered).toEqual([...pressing, 'streams', ...pressing, 'streams']);
  });

  it('ends a wait at its time, and when all have left, without losing a seat', async () => {
    const waits: number[] = [];
    const queue = new FairQueue({
      total: 1,
      perCaller: 1,
      perGroup: 1,
      onWaiting: (count) => waits.push(count),
    });
    expect(queue.tryEnter(requesterOf('a'))).toBe(true);
    const leaving = new Party(waiterOf('b'));
    const [late, left, patient] = [
      queue.enter(new Party(waiterOf('b', 'operations', 1))),
      queue.enter(leaving),
      queue.enter(new Party(waiterOf('b'))),
    ];
    for (const waiter of leaving.waiters) leaving.leave(waiter);
    expect([await late, await left]).toEqual([undefined, undefined]);
    queue.leave(requesterOf('a'));
    expect(await patient).toEqual(requesterOf('b'));
    queue.leave(requesterOf('b'));
    expect(queue.waiting).toBe(0);
    expect(waits.at(-1)).toBe(0);
    expect(queue.tryEnter(requesterOf('c'))).toBe(true);
  });

  it('lets in nobody for whom all have left before', async () => {
    const queue = new FairQueue({ total: 1, perCaller: 1, perGroup: 1 });
    expect(await queue.enter(new Party())).toBeUndefined();
    expect([queue.waiting, queue.tryEnter(requesterOf('a'))]).toEqual([0, true]);
  });
});

describe('what several wait for', () => {
  const crowded = () => {
    const queue = new FairQueue({ total: 2, perCaller: 1, perGroup: 1 });
    ask(queue, ['a', 'b', ...Array<string>(50).fill('a')]);
    return queue;
  };

  it('enters at the first turn of one of them, which counts for that one', async () => {
    const queue = crowded();
    const party = new Party(waiterOf('a'));
    const entered = queue.enter(party);
    party.join(waiterOf('c'));
    expect(queue.waitingOf(requesterOf('c'))).toBe(1);
    queue.leave(requesterOf('b'));
    expect(await entered).toEqual(requesterOf('c'));
    expect([queue.waiting, queue.waitingOf(requesterOf('a')), queue.waitingOf(requesterOf('c'))]).toEqual([
      50, 50, 0,
    ]);
  });

  it('enters at once where one who joins has room', async () => {
    const queue = new FairQueue({ total: 3, perCaller: 1, perGroup: 1 });
    ask(queue, ['a', 'a']);
    const party = new Party(waiterOf('a'));
    const entered = queue.enter(party);
    party.join(waiterOf('b'));
    expect(await entered).toEqual(requesterOf('b'));
  });

  it('waits no more once it has entered, whoever joins or leaves then', async () => {
    const queue = crowded();
    const party = new Party(waiterOf('c'));
    const entered = queue.enter(party);
    queue.leave(requesterOf('b'));
    expect(await entered).toEqual(requesterOf('c'));
    const joined = party.join(waiterOf('d'));
    expect([queue.waiting, queue.waitingOf(requesterOf('d'))]).toEqual([50, 0]);
    party.leave(joined);
    expect(queue.waiting).toBe(50);
  });

  it('waits where the first one does once the other has left', async () => {
    const queue = crowded();
    const party = new Party(waiterOf('a'));
    let requester: Requester | undefined;
    void queue.enter(party).then((entered) => {
      requester = entered;
    });
    const joined = party.join(waiterOf('c'));
    party.leave(joined);
    expect([queue.waiting, queue.waitingOf(requesterOf('c'))]).toEqual([51, 0]);
    queue.leave(requesterOf('b'));
    await turn();
    expect(requester).toBeUndefined();
    for (let left = 0; left < 51; left += 1) queue.leave(requesterOf('a'));
    await until(() => requester !== undefined);
    expect(requester).toEqual(requesterOf('a'));
  });

  it('waits on for those whose time is not over', async () => {
    const queue = crowded();
    const party = new Party(waiterOf('c', 'operations', 1));
    const patient = party.join(waiterOf('a'));
    const entered = queue.enter(party);
    await until(() => queue.waitingOf(requesterOf('c')) === 0);
    party.leave(patient);
    expect(await entered).toBeUndefined();
    expect(queue.waiting).toBe(50);
  });

  it('is among one caller’s own as pressing as the most pressing of them', async () => {
    const queue = new FairQueue({ total: 1, perCaller: 1, perGroup: 1 });
    expect(queue.tryEnter(requesterOf('a'))).toBe(true);
    const entered: string[] = [];
    const wait = (name: string, party: Party) =>
      void queue.enter(party).then((requester) => requester && entered.push(name));
    wait('earlier', new Party(waiterOf('a', 'streams')));
    const shared = new Party(waiterOf('a', 'streams'));
    wait('shared', shared);
    shared.join(waiterOf('a', 'operations'));
    queue.leave(requesterOf('a'));
    await turn();
    expect(entered).toEqual(['shared']);
  });
});
