import { getEventListeners } from 'node:events';
import { expect, it, vi } from 'vitest';
import { Party, type PartyWatcher } from '../../src/common/party.ts';
import { SingleFlight } from '../../src/common/single-flight.ts';
import { leaverOf, Waiters } from '../../src/common/waiters.ts';
import { stillTime } from '../helpers/still-time.ts';

const placeOf = (caller: string, deadline = 0) =>
  ({ requester: { caller, group: caller }, urgency: 'operations', deadline }) as const;

it('those who wait are gone with the last of them, and who watches is told once', () => {
  const waiters = new Waiters();
  const told: string[] = [];
  waiters.whenGone(() => told.push('watched'));
  const unwatch = waiters.whenGone(() => told.push('unwatched'));
  const { signal } = waiters;
  waiters.add();
  waiters.remove();
  expect([waiters.isGone, signal.aborted, told]).toEqual([false, false, []]);
  unwatch();
  waiters.remove();
  expect([waiters.isGone, signal.aborted, told]).toEqual([true, true, ['watched']]);
  waiters.whenGone(() => told.push('late'));
  expect(told).toEqual(['watched', 'late']);
});

it('a signal that is asked for once all are gone is aborted', () => {
  const waiters = new Waiters();
  waiters.remove();
  expect(waiters.signal.aborted).toBe(true);
});

it('one who leaves by a signal is watched until that is ended, and told at once where it has left', () => {
  const left = new AbortController();
  const leaver = leaverOf(left.signal);
  let told = 0;
  const watch = () =>
    leaver.whenGone(() => {
      told += 1;
    });
  watch()();
  expect(getEventListeners(left.signal, 'abort')).toEqual([]);
  watch();
  expect(leaver.isGone).toBe(false);
  left.abort();
  expect([leaver.isGone, told]).toEqual([true, 1]);
  watch();
  expect(told).toBe(2);
});

it('a pause of a party lasts as long as was said, or until the last of it has left', async () => {
  using time = stillTime();
  const party = new Party(placeOf('a'));
  const ended: string[] = [];
  void party.pause(1_000).then(() => ended.push('first'));
  await time.pass(999);
  expect(ended).toEqual([]);
  await time.pass(1);
  expect(ended).toEqual(['first']);
  void party.pause(1_000).then(() => ended.push('second'));
  const joined = party.join(placeOf('b'));
  for (const waiter of party.waiters) if (waiter !== joined) party.leave(waiter);
  await time.pass(1);
  expect(ended).toEqual(['first']);
  party.leave(joined);
  await time.pass(1);
  expect(ended).toEqual(['first', 'second']);
  // Nobody is there: there is nothing to wait for.
  await party.pause(1_000);
});

it('a pause that is over before its time leaves no timer and no watcher behind', async () => {
  using _ = stillTime();
  class Watched extends Party {
    watchers = 0;
    override watch(watcher: PartyWatcher): () => void {
      this.watchers += 1;
      const end = super.watch(watcher);
      return () => {
        this.watchers -= 1;
        end();
      };
    }
  }
  const party = new Watched(placeOf('a'));
  const earlier = Promise.withResolvers<void>();
  const pause = party.pause(60_000, earlier.promise);
  expect([vi.getTimerCount(), party.watchers]).toEqual([1, 1]);
  earlier.resolve();
  await pause;
  expect([vi.getTimerCount(), party.watchers]).toEqual([0, 0]);
});

it('a party lasts until the latest of its deadlines, and is as pressing as the most pressing of those there', () => {
  const party = new Party(placeOf('a', 10));
  const late = party.join({ ...placeOf('b', 30), urgency: 'money' });
  party.join(placeOf('c', 20));
  expect([party.deadline, party.urgency]).toEqual([30, 'money']);
  const left: unknown[] = [];
  party.watch({ left: (waiter) => left.push(waiter) });
  party.leave(late);
  expect([party.deadline, party.urgency]).toEqual([20, 'operations']);
  party.leave(late);
  expect(left).toEqual([late]);
});

it('work under way is shared within its namespace until it ends, well or badly, and no longer', async () => {
  const flights = new SingleFlight<string>();
  const asked: PromiseWithResolvers<string>[] = [];
  const run = (namespace: string) =>
    flights.run(namespace, () => {
      const work = Promise.withResolvers<string>();
      asked.push(work);
      return work.promise;
    });
  const both = [run('a'), run('a'), run('b')];
  expect(asked).toHaveLength(2);
  asked[0]?.reject(new Error('away'));
  asked[1]?.resolve('done');
  const ends = await Promise.allSettled(both);
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  expect(flights.isIdle).toBe(true);
});

it('work that was forgotten ends without taking away what was begun since', async () => {
  let time = 0;
  const flights = new SingleFlight<string>({ now: () => time, joinedWithinMs: 1_000 });
  const [old, newer] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const first = flights.begin('a', 'k', old.promise, undefined);
  expect(flights.isCurrent('a', 'k', first)).toBe(true);
  flights.forget('a');
  const second = flights.begin('a', 'k', newer.promise, undefined);
  old.resolve('old');
  await old.promise;
  await Promise.resolve();
  expect(flights.underWay('a', 'k')).toBe(second);
  expect(flights.isCurrent('a', 'k', first)).toBe(false);
  time = 1_000;
  expect(flights.underWay('a', 'k')).toBe(second);
  time = 1_001;
  expect(flights.underWay('a', 'k')).toBeUndefined();
  // One that is too old to be joined makes way, and takes nothing with it when it ends.
  const third = flights.begin('a', 'k', new Promise(() => undefined), undefined);
  newer.resolve('newer');
  await newer.promise;
  await Promise.resolve();
  expect(flights.underWay('a', 'k')).toBe(third);
});
