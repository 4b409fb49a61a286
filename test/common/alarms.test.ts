import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Alarm, type AlarmClock, Alarms } from '../../src/common/alarms.ts';

class Named extends Alarm {
  readonly name: number;
  readonly #rung: number[];

  constructor(name: number, rung: number[]) {
    super();
    this.name = name;
    this.#rung = rung;
  }

  override ring(): void {
    this.#rung.push(this.name);
  }
}

/** What a timer of Node's can take, in milliseconds. It ends a longer one at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A clock that stands still until it is moved, and may be put back. */
function startClock() {
  let now = 0;
  let backMs = 0;
  let longestMs = 0;
  let sleeps = 0;
  let sleeping: { readonly until: number; wake(): void } | undefined;
  const clock: AlarmClock = {
    now: () => now - backMs,
    monotonic: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        sleeps += 1;
        longestMs = Math.max(longestMs, ms);
        const own = { until: now + ms, wake: resolve };
        sleeping = own;
        signal.addEventListener('abort', () => {
          if (sleeping === own) sleeping = undefined;
          reject(signal.reason);
        });
      }),
  };
  return {
    clock,
    isAsleep: () => sleeping !== undefined,
    /** The longest sleep that was asked for, in milliseconds. */
    longest: () => longestMs,
    /** How many sleeps were begun. */
    sleeps: () => sleeps,
    putBack(ms: number) {
      backMs += ms;
    },
    /** Lets the time pass until then, and every sleep end that does meanwhile. */
    async pass(until: number) {
      while (sleeping !== undefined && sleeping.until <= until) {
        const { until: at, wake } = sleeping;
        sleeping = undefined;
        now = at;
        wake();
        await Promise.resolve();
        await Promise.resolve();
      }
      now = until;
    },
  };
}

it('alarms ring once each, in the order in which they are due, however they are set, moved and cleared', async () => {
  const change = fc.record({
    alarm: fc.nat({ max: 19 }),
    what: fc.constantFrom<'set' | 'clear' | 'pass'>('set', 'set', 'set', 'clear', 'pass'),
    ms: fc.integer({ min: 1, max: 50 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 120 }), async (changes) => {
      const rung: number[] = [];
      const { clock, pass, isAsleep } = startClock();
      const alarms = new Alarms(clock);
      const all = Array.from({ length: 20 }, (_, name) => new Named(name, rung));
      /** What is to ring, by when; found out without a heap. */
      const due = new Map<number, number>();
      for (const { alarm: name, what, ms } of changes) {
        const alarm = all[name];
        if (alarm === undefined) throw new Error('there are twenty');
        if (what === 'set') {
          alarms.set(alarm, clock.now() + ms);
          due.set(name, clock.now() + ms);
        } else if (what === 'clear') {
          alarms.clear(alarm);
          due.delete(name);
        } else {
          const end = clock.now() + ms;
          const ringing = [...due].filter(([, at]) => at <= end);
          for (const [own] of ringing) due.delete(own);
          rung.length = 0;
          await pass(end);
          const times = new Map(ringing);
          expect(new Set(rung)).toEqual(new Set(times.keys()));
          expect(rung).toHaveLength(ringing.length);
          const order = rung.map((own) => times.get(own) ?? 0);
          expect(order).toEqual([...order].sort((one, other) => one - other));
        }
        expect(isAsleep()).toBe(due.size > 0);
      }
    }),
    { numRuns: 300 },
  );
});

it('an alarm that takes the place of one that is cleared rings in time, whatever is due above that place', async () => {
  const rung: number[] = [];
  const { clock, pass } = startClock();
  const alarms = new Alarms(clock);
  const all = [1, 10, 2, 11, 12, 20, 4].map((due) => new Named(due, rung));
  for (const alarm of all) alarms.set(alarm, alarm.name);
  // The last of the heap is due before what is above the place of this one.
  for (const alarm of all) if (alarm.name === 11) alarms.clear(alarm);
  await pass(5);
  expect(rung).toEqual([1, 2, 4]);
});

it('alarms that are set as they ring, beside others that are due, take one sleep together', async () => {
  const { clock, pass, sleeps } = startClock();
  const alarms = new Alarms(clock);
  const rung: number[] = [];
  class Repeated extends Named {
    override ring(): void {
      super.ring();
      alarms.set(this, clock.now() + 10);
    }
  }
  for (const name of [1, 2, 3]) alarms.set(new Repeated(name, rung), 10);
  await pass(10);
  expect([rung.toSorted(), sleeps()]).toEqual([[1, 2, 3], 2]);
  await pass(20);
  expect([rung.length, sleeps()]).toEqual([6, 3]);
});

it('a wait that is longer than a timer can take is taken in parts', async () => {
  const rung: number[] = [];
  const { clock, pass, longest } = startClock();
  const alarms = new Alarms(clock);
  const day = 24 * 60 * 60 * 1_000;
  alarms.set(new Named(1, rung), 30 * day);
  await pass(30 * day - 1);
  expect(rung).toEqual([]);
  await pass(30 * day);
  expect(rung).toEqual([1]);
  expect(longest()).toBeLessThanOrEqual(LONGEST_TIMER_MS);
});

it('what is set rings in time where the clock is put back, also where another is set before the sleep is over', async () => {
  const hour = 3_600_000;
  const minute = 60_000;
  for (const other of [false, true]) {
    const rung: number[] = [];
    const { clock, pass, putBack } = startClock();
    const alarms = new Alarms(clock);
    alarms.set(new Named(1, rung), 10 * minute);
    alarms.set(new Named(2, rung), 30 * minute);
    await pass(5 * minute);
    putBack(hour);
    if (other) {
      alarms.set(new Named(3, rung), clock.now() + minute);
      await pass(6 * minute);
      expect(rung.splice(0)).toEqual([3]);
    }
    await pass(10 * minute);
    expect(rung).toEqual([1]);
    // Put forward, it lets those ring that are due by it.
    putBack(-hour);
    alarms.set(new Named(4, rung), clock.now() + minute);
    await pass(11 * minute);
    expect(rung).toEqual([1, 2, 4]);
  }
});
