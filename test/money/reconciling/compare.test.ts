import { expect, it } from 'vitest';
import {
  type BalanceReading,
  type Difference,
  type KnownMovements,
  type Movement,
  reconcile,
} from '../../../src/money/reconciling/compare.ts';
import { randomFrom } from '../../helpers/random.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const MARGIN = 5 * SECOND;

/** What really happens to an account, and when the gateway knows of it: never, where it is lost. */
interface Event {
  readonly account: string;
  readonly cents: number;
  readonly at: number;
  readonly knownAt: number;
  /** How wrong the time is that the gateway is told. */
  readonly skew: number;
}

/** A week of traffic: most of it is known in a second, some of it up to so long after. */
function weekOf(random: () => number, latestMs: number, perHour: number): Event[] {
  const events: Event[] = [];
  for (let at = 0; at < 7 * 24 * HOUR; at += -Math.log(1 - random()) * (HOUR / perHour)) {
    const delay = random() < 0.2 ? random() * latestMs : random() * SECOND;
    // Round amounts, as people pay: equal ones hide behind each other most.
    const cents = (random() < 0.5 ? 1 : -1) * 10_000 * (1 + Math.floor(random() * 5));
    const account = `account-${Math.floor(random() * 3)}`;
    events.push({ account, cents, at, knownAt: at + delay, skew: (random() - 0.5) * 2 * SECOND });
  }
  return events;
}

/** Reads the balances every hour, and compares. */
function run(events: readonly Event[], hours = 7 * 24): Difference[] {
  const told: Difference[] = [];
  let kept: KnownMovements | undefined;
  for (let now = 0; now <= hours * HOUR; now += HOUR) {
    const balances: Record<string, number> = { 'account-0': 0, 'account-1': 0, 'account-2': 0 };
    for (const { account, cents, at } of events)
      if (at <= now) balances[account] = (balances[account] ?? 0) + cents;
    const reading: BalanceReading = { from: now, to: now, balances };
    const movements = events
      .filter(({ knownAt }) => knownAt <= now)
      .map(({ account, cents, at, skew }): Movement => {
        return { account, cents, from: at + skew, to: at + skew, isCertain: true };
      });
    if (kept === undefined) kept = { baseline: reading, previous: undefined };
    else {
      const result = reconcile(kept, reading, movements, MARGIN);
      kept = result.kept;
      told.push(...result.differences);
    }
  }
  return told;
}

it.each([
  [10, 0, 10],
  [10, 50 * MINUTE, 10],
  [120, 50 * MINUTE, 1],
])(
  'tells nothing in weeks of %d movements an hour whose webhooks come up to %d ms late',
  (perHour, latestMs, weeks) => {
    for (let seed = 1; seed <= weeks; seed += 1) {
      expect(run(weekOf(randomFrom(seed), latestMs, perHour))).toEqual([]);
    }
  },
);

it('tells a credit that was lost, a payment made elsewhere and a fee, once each, with amount, account and time', () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    const random = randomFrom(seed);
    const never = Number.POSITIVE_INFINITY;
    const unknown: Event[] = [
      { account: 'account-0', cents: 12_345, at: 20.5 * HOUR, knownAt: never, skew: 0 },
      { account: 'account-1', cents: -54_321, at: 50.5 * HOUR, knownAt: never, skew: 0 },
      { account: 'account-2', cents: -116, at: 90.5 * HOUR, knownAt: never, skew: 0 },
    ];
    const told = run([...weekOf(random, 50 * MINUTE, 10), ...unknown]);
    expect(told.map(({ account, cents }) => [account, cents])).toEqual(
      unknown.map(({ account, cents }) => [account, cents]),
    );
    for (const [index, { from, to }] of told.entries()) {
      const at = unknown[index]?.at ?? 0;
      expect(from).toBeLessThan(at);
      expect(to).toBeGreaterThan(at);
    }
  }
});

it('tells a webhook that is later than two readings once, and not again when it comes', () => {
  const late = { account: 'account-0', cents: 777, at: 10.5 * HOUR, knownAt: 15 * HOUR, skew: 0 };
  expect(run([late], 30)).toMatchObject([{ account: 'account-0', cents: 777 }]);
});

it('takes what may have moved for an explanation', () => {
  const reading = (at: number, cents: number): BalanceReading => ({
    from: at,
    to: at,
    balances: { one: cents },
  });
  const kept = { baseline: reading(0, 1_000), previous: reading(HOUR, 400) };
  const unknown = {
    account: 'one',
    cents: -600,
    from: 10 * MINUTE,
    to: Number.POSITIVE_INFINITY,
    isCertain: false,
  };
  expect(reconcile(kept, reading(2 * HOUR, 400), [unknown], MARGIN).differences).toEqual([]);
  expect(reconcile(kept, reading(2 * HOUR, 400), [], MARGIN).differences).toMatchObject([{ cents: -600 }]);
  // It did not last.
  expect(reconcile(kept, reading(2 * HOUR, 1_000), [], MARGIN).differences).toEqual([]);
});
