import { describe, expect, it } from 'vitest';
import {
  type BalanceReading,
  type Difference,
  type KnownMovements,
  type Movement,
  reconcile,
} from '../../../src/money/reconciling/compare.ts';
import { type KnownPayment, movementsOf } from '../../../src/money/reconciling/movements.ts';
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

const compare = (kept: KnownMovements, reading: BalanceReading, movements: readonly Movement[]) =>
  reconcile(kept, reading, movements, MARGIN, () => undefined);

/** Reads the balances every hour, and compares. */
async function run(events: readonly Event[], hours = 7 * 24): Promise<Difference[]> {
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
      const result = await compare(kept, reading, movements);
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
  async (perHour, latestMs, weeks) => {
    for (let seed = 1; seed <= weeks; seed += 1) {
      expect(await run(weekOf(randomFrom(seed), latestMs, perHour))).toEqual([]);
    }
  },
);

it('tells a credit that was lost, a payment made elsewhere and a fee, once each, with amount, account and time', async () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    const random = randomFrom(seed);
    const never = Number.POSITIVE_INFINITY;
    const unknown: Event[] = [
      { account: 'account-0', cents: 12_345, at: 20.5 * HOUR, knownAt: never, skew: 0 },
      { account: 'account-1', cents: -54_321, at: 50.5 * HOUR, knownAt: never, skew: 0 },
      { account: 'account-2', cents: -116, at: 90.5 * HOUR, knownAt: never, skew: 0 },
    ];
    const told = await run([...weekOf(random, 50 * MINUTE, 10), ...unknown]);
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

it('tells a webhook that is later than two readings once, and not again when it comes', async () => {
  const late = { account: 'account-0', cents: 777, at: 10.5 * HOUR, knownAt: 15 * HOUR, skew: 0 };
  expect(await run([late], 30)).toMatchObject([{ account: 'account-0', cents: 777 }]);
});

it('tells a difference once, also while another account does not let the baseline go on', async () => {
  const readings = [
    { one: 100_000, other: 100_000 },
    { one: 90_000, other: 95_000 },
    { one: 90_000, other: 100_000 },
    { one: 90_000, other: 95_000 },
    { one: 90_000, other: 100_000 },
    { one: 80_000, other: 100_000 },
    { one: 80_000, other: 100_000 },
  ].map((balances, index) => ({ from: index * HOUR, to: index * HOUR, balances }));
  const [first, ...others] = readings;
  let kept: KnownMovements = { baseline: first ?? expect.unreachable(), previous: undefined };
  const told: Difference[] = [];
  for (const reading of others) {
    const result = await compare(kept, reading, []);
    kept = result.kept;
    told.push(...result.differences);
  }
  expect(told).toMatchObject([
    { account: 'one', cents: -10_000 },
    { account: 'one', cents: -10_000 },
  ]);
  expect(told[1]?.to).toBe(5 * HOUR);
});

it('tells nothing of what an account held that is new since the baseline', async () => {
  const reading = (at: number, balances: Readonly<Record<string, number>>): BalanceReading => ({
    ...{ from: at, to: at, balances },
  });
  const kept = { baseline: reading(0, { one: 100 }), previous: reading(HOUR, { one: 100, other: 500 }) };
  expect((await compare(kept, reading(2 * HOUR, { one: 100, other: 500 }), [])).differences).toEqual([]);
});

it('takes what may have moved for an explanation', async () => {
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
  expect((await compare(kept, reading(2 * HOUR, 400), [unknown])).differences).toEqual([]);
  expect((await compare(kept, reading(2 * HOUR, 400), [])).differences).toMatchObject([{ cents: -600 }]);
  // It did not last.
  expect((await compare(kept, reading(2 * HOUR, 1_000), [])).differences).toEqual([]);
});

it('does not tell later what a payment of unknown outcome explained, though it is refused in the end', async () => {
  const reading = (at: number, cents: number): BalanceReading => ({
    ...{ from: at, to: at, balances: { one: cents } },
  });
  const times = { from: 10 * MINUTE, to: Number.POSITIVE_INFINITY, isCertain: false };
  const unknown = { account: 'one', cents: -600, ...times };
  const kept = { baseline: reading(0, 1_000), previous: reading(HOUR, 400) };
  const explained = await compare(kept, reading(2 * HOUR, 400), [unknown]);
  const refused = await compare(explained.kept, reading(3 * HOUR, 400), []);
  const later = await compare(refused.kept, reading(4 * HOUR, 400), []);
  expect([explained, refused, later].map(({ differences }) => differences)).toEqual([[], [], []]);
});

it('does not correct an amount that was told too small beside a payment of unknown outcome', async () => {
  const reading = (at: number, cents: number): BalanceReading => ({
    ...{ from: at, to: at, balances: { one: cents } },
  });
  const times = { from: 10 * MINUTE, to: Number.POSITIVE_INFINITY, isCertain: false };
  const unknown = { account: 'one', cents: -600, ...times };
  const kept = { baseline: reading(0, 1_000), previous: reading(HOUR, 300) };
  const told = await compare(kept, reading(2 * HOUR, 300), [unknown]);
  expect(told.differences).toMatchObject([{ cents: -100 }]);
  expect((await compare(told.kept, reading(3 * HOUR, 300), [])).differences).toEqual([]);
});

it('takes what is left of credits that are alike for what may be the other half of an internal transaction', async () => {
  const accounts = [{ id: 'one', clabe: 'clabe', instrumentId: 'instrument' }];
  const internal = (sentAt: number, doneAt: number): KnownPayment => ({
    ...{ source: null, destination: 'instrument', isFromAny: false, cents: 100, sentAt, doneAt },
  });
  const credit = (at: number) => ({
    ...{ clabe: 'clabe', cents: 100, at, receivedAt: at, isRejected: false, isFromOutside: false },
  });
  // The first credit could be of either transaction, and is taken for the first; the second could be of the first alone.
  const payments = [internal(10 * MINUTE, 20 * MINUTE), internal(15 * MINUTE, 25 * MINUTE)];
  const credits = [credit(17 * MINUTE), credit(12 * MINUTE)];
  const movements = await movementsOf(accounts, payments, credits, MARGIN, () => undefined);
  const reading = (at: number, cents: number) => ({ from: at, to: at, balances: { one: cents } });
  const kept = { baseline: reading(0, 0), previous: reading(HOUR, 200) };
  expect((await compare(kept, reading(2 * HOUR, 200), movements)).differences).toEqual([]);
});

it('takes an internal transaction for the other half of one credit alone, so that another of its amount may have come beside it', async () => {
  const accounts = [{ id: 'one', clabe: 'clabe', instrumentId: 'instrument' }];
  const times = { sentAt: 10 * MINUTE, doneAt: 20 * MINUTE };
  const internal = { source: null, destination: 'instrument', isFromAny: false, cents: 100, ...times };
  const credits = [12 * MINUTE, 17 * MINUTE].map((at) => ({
    ...{ clabe: 'clabe', cents: 100, at, receivedAt: at, isRejected: false, isFromOutside: false },
  }));
  const movements = await movementsOf(accounts, [internal], credits, MARGIN, () => undefined);
  const reading = (at: number, cents: number) => ({ from: at, to: at, balances: { one: cents } });
  const kept = { baseline: reading(0, 0), previous: reading(HOUR, 200) };
  expect((await compare(kept, reading(2 * HOUR, 200), movements)).differences).toEqual([]);
});

it('takes a payment whose caller has written the ids of its instruments in capitals for one of these accounts', async () => {
  const accounts = ['one', 'two'].map((id) => ({ id, clabe: id, instrumentId: `abc-${id}` }));
  const times = { sentAt: 10 * MINUTE, doneAt: 20 * MINUTE };
  const payment = { source: 'ABC-ONE', destination: 'ABC-TWO', isFromAny: false, cents: 100, ...times };
  const movements = await movementsOf(accounts, [payment], [], MARGIN, () => undefined);
  expect(movements).toMatchObject([
    { account: 'one', cents: -100 },
    { account: 'two', cents: 100 },
  ]);
});

describe('many accounts and many movements', () => {
  const MANY = 5_000;
  const accounts = Array.from({ length: MANY }, (_, index) => ({
    id: `account-${index}`,
    clabe: `clabe-${index}`,
    instrumentId: `instrument-${index}`,
  }));
  const reading = (at: number, cents: number): BalanceReading => ({
    ...{ from: at, to: at },
    balances: Object.fromEntries(accounts.map(({ id }) => [id, cents])),
  });
  const kept = { baseline: reading(0, 0), previous: reading(HOUR, -100) };
  const payment = (index: number, doneAt: number | undefined, read: () => void): KnownPayment => ({
    ...{ source: `instrument-${index}`, destination: null, isFromAny: doneAt === undefined, doneAt },
    sentAt: HOUR / 2,
    get cents() {
      read();
      return 100;
    },
  });

  it('reads each movement a few times, however many accounts there are, and lets others go first meanwhile', async () => {
    let reads = 0;
    let turns = 0;
    const read = () => {
      reads += 1;
    };
    const turn = () => {
      turns += 1;
      return undefined;
    };
    const payments = accounts.map((_, index) => payment(index, HOUR / 2, read));
    const movements = await movementsOf(accounts, payments, [], MARGIN, turn);
    expect(turns).toBeGreaterThan(MANY / 100);
    turns = 0;
    const counted = movements.map(({ cents, ...movement }) => ({
      ...movement,
      get cents() {
        read();
        return cents;
      },
    }));
    const told = await reconcile(kept, reading(2 * HOUR, -100), counted, MARGIN, turn);
    expect(told.differences).toEqual([]);
    expect(turns).toBeGreaterThan(MANY / 100);
    expect(reads).toBeLessThanOrEqual(4 * MANY);
  });

  it('holds a refund of an unknown account once, and not for each account', async () => {
    const refunds = Array.from({ length: 10 }, (_, index) => payment(index, undefined, () => undefined));
    const movements = await movementsOf(accounts, refunds, [], MARGIN, () => undefined);
    expect(movements).toHaveLength(10);
    const told = await compare(kept, reading(2 * HOUR, -100), movements);
    expect(told.differences).toEqual([]);
  });
});

it('thousands of open payments of one amount, as of a payroll, are compared without keeping anybody waiting', async () => {
  const accounts = Array.from({ length: 60 }, (_, number) => `account-${number}`);
  const reading = (at: number, cents: number): BalanceReading => {
    return { from: at, to: at, balances: Object.fromEntries(accounts.map((account) => [account, cents])) };
  };
  const open = { cents: -100, from: SECOND, to: Number.POSITIVE_INFINITY, isCertain: false };
  const movements = accounts.flatMap((account) =>
    Array.from({ length: 2_000 }, () => ({ account, ...open })),
  );
  const kept = { baseline: reading(0, 500_050), previous: reading(HOUR, 400_000) };
  const before = process.cpuUsage().user;
  const { differences } = await compare(kept, reading(2 * HOUR, 400_000), movements);
  // Each way to add some of them up gone through for itself took ten seconds.
  expect((process.cpuUsage().user - before) / 1_000).toBeLessThan(3 * SECOND);
  expect(differences).toHaveLength(60);
  expect(differences[0]).toMatchObject({ account: 'account-0', cents: -50 });
});
