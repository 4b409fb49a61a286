import { expect, it } from 'vitest';
import type { SettlingCalls } from '../../src/money/settling/open-payment.ts';
import { FIRST_DUE_MS } from '../../src/money/settling/open-records.ts';
import { Remembered } from '../../src/money/settling/remembered.ts';

const never = () => {
  throw new Error('To keep a payment asks nothing of the service.');
};
const callsOf = (isOver = () => false): SettlingCalls => ({
  ...{ isOver, repeat: never, reading: never, codeOf: never, look: never },
});
const LONG = 10_000_000;
const [ONE, OTHER] = ['one', 'other'];
const hashesOf = (remembered: Remembered, now: number) =>
  [ONE, OTHER].flatMap((clientId) => remembered.due(clientId, now)).map(({ name }) => name.hash);
const later = (calls: SettlingCalls, until = LONG, credential = 'token') => ({
  ...{ calls: () => calls, until, credential },
});

it('two clients may have a record of the same hash, and one is forgotten without the other', () => {
  const remembered = new Remembered();
  for (const clientId of [ONE, OTHER]) remembered.add({ clientId, hash: 'same' }, later(callsOf()), 0);
  expect(remembered.size).toBe(2);
  remembered.forget({ clientId: ONE, hash: 'same' });
  expect(remembered.has(ONE)).toBe(false);
  expect(hashesOf(remembered, FIRST_DUE_MS)).toEqual(['same']);
});

it('keeps 100 of one client, renews those also when it is full, and keeps those of others', () => {
  const remembered = new Remembered();
  const add = (clientId: string, hash: string, until: number) =>
    remembered.add({ clientId, hash }, later(callsOf(), until), 0);
  for (let number = 0; number < 101; number += 1) add(ONE, `${number}`, FIRST_DUE_MS);
  expect(remembered.size).toBe(100);
  add(ONE, '0', LONG);
  add(OTHER, 'its own', LONG);
  expect(hashesOf(remembered, FIRST_DUE_MS)).toEqual(['0', 'its own']);
});

it('keeps 1,000 of all clients', () => {
  const remembered = new Remembered();
  for (let number = 0; number < 1_001; number += 1) {
    remembered.add({ clientId: `${number}`, hash: 'one' }, later(callsOf()), 0);
  }
  expect(remembered.size).toBe(1_000);
});

it('forgets what may no longer be asked for: its time has ended, or its credential was refused', () => {
  const remembered = new Remembered();
  let isRefused = false;
  remembered.add({ clientId: ONE, hash: 'ends' }, later(callsOf(), FIRST_DUE_MS), 0);
  const refusable = callsOf(() => isRefused);
  remembered.add({ clientId: ONE, hash: 'refused' }, later(refusable, LONG, 'another'), 0);
  expect(hashesOf(remembered, FIRST_DUE_MS - 1)).toEqual([]);
  expect(remembered.size).toBe(2);
  expect(hashesOf(remembered, FIRST_DUE_MS)).toEqual(['refused']);
  isRefused = true;
  expect(hashesOf(remembered, LONG - 1)).toEqual([]);
  expect(remembered.size).toBe(0);
});

it('looks at one less and less often, down to once in 20 s', () => {
  const remembered = new Remembered();
  remembered.add({ clientId: ONE, hash: 'one' }, later(callsOf()), 0);
  const looks: number[] = [];
  for (let now = 0; now < 100_000; now += 1_000) {
    for (const kept of remembered.due(ONE, now)) {
      remembered.begin(kept, now);
      looks.push(now);
    }
  }
  expect(looks.slice(0, 6)).toEqual([5_000, 7_000, 11_000, 19_000, 35_000, 55_000]);
  expect(looks.slice(6)).toEqual([75_000, 95_000]);
});

it('shares the calls of one credential, and looks no later because its caller asks again and again', () => {
  const remembered = new Remembered();
  const [first, second, third] = [callsOf(), callsOf(), callsOf()];
  remembered.add({ clientId: ONE, hash: 'one' }, later(first), 0);
  remembered.add({ clientId: ONE, hash: 'two' }, later(second), 0);
  remembered.add({ clientId: ONE, hash: 'three' }, later(third, LONG, 'another'), 0);
  for (let now = 0; now < FIRST_DUE_MS; now += 1_000)
    remembered.add({ clientId: ONE, hash: 'one' }, later(callsOf()), now);
  const due = remembered.due(ONE, FIRST_DUE_MS);
  expect(due.map(({ name }) => name.hash)).toEqual(['one', 'two', 'three']);
  expect(due.map(({ calls }) => [first, second, third].indexOf(calls))).toEqual([0, 0, 2]);
});

it('a question of its caller counts at first and after five minutes, also under another token each time', () => {
  const remembered = new Remembered();
  const name = { clientId: ONE, hash: 'one' };
  const ask = (now: number, credential: string) => {
    remembered.add(name, later(callsOf(), LONG, credential), now);
    const [kept] = remembered.due(ONE, now + 60_000);
    return kept && remembered.begin(kept, now + 60_000);
  };
  expect(ask(0, 'token')).toBe(true);
  expect(ask(60_000, 'token')).toBe(false);
  expect(ask(120_000, 'other token')).toBe(false);
  expect(ask(300_000, 'other token')).toBe(true);
  // The clock was set back.
  expect(ask(-300_000, 'token')).toBe(true);
});

it('is looked at no later because its caller asks again under a token that lasts longer', () => {
  const remembered = new Remembered();
  const name = { clientId: ONE, hash: 'one' };
  remembered.add(name, later(callsOf(), 10_000, 'token'), 0);
  remembered.add(name, later(callsOf(), LONG, 'longer token'), 4_000);
  expect(remembered.due(ONE, 5_000)).toMatchObject([{ credential: 'longer token' }]);
});

it('is looked at while its caller asks again and again under new tokens, and mostly with what was read before', () => {
  const remembered = new Remembered();
  const given = new Set<SettlingCalls>();
  const used: SettlingCalls[] = [];
  for (let now = 0; now < 600_000; now += 3_000) {
    const calls = callsOf();
    given.add(calls);
    remembered.add({ clientId: ONE, hash: 'one' }, later(calls, now + 300_000, `token of ${now}`), now);
    for (const kept of remembered.due(ONE, now)) {
      remembered.begin(kept, now);
      expect(kept.until).toBeGreaterThan(now);
      used.push(kept.calls);
    }
  }
  expect(given.size).toBe(200);
  expect(used.length).toBeGreaterThan(25);
  expect(new Set(used).size).toBeLessThan(6);
});

it('keeps the token that lasts longer, and goes on under another once that was refused', () => {
  const remembered = new Remembered();
  const name = { clientId: ONE, hash: 'one' };
  let isRefused = false;
  const [long, short, next] = [callsOf(() => isRefused), callsOf(), callsOf()];
  const looksWith = () => remembered.due(ONE, FIRST_DUE_MS).map(({ calls }) => calls);
  remembered.add(name, later(long, LONG, 'long'), 0);
  remembered.add(name, later(short, LONG / 2, 'short'), 0);
  expect(looksWith()).toEqual([long]);
  isRefused = true;
  remembered.add(name, later(short, LONG / 2, 'short'), 0);
  expect(looksWith()).toEqual([short]);
  remembered.add(name, later(next, LONG, 'next'), 0);
  expect(looksWith()).toEqual([next]);
});

it('is looked at soon under another token, though it was looked at seldom under the one that was refused', () => {
  const remembered = new Remembered();
  let isRefused = false;
  const add = (credential: string, now: number) =>
    remembered.add(
      { clientId: ONE, hash: 'one' },
      later(
        callsOf(() => isRefused),
        LONG,
        credential,
      ),
      now,
    );
  add('token', 0);
  let now = 0;
  for (const pause of [5_000, 2_000, 4_000, 8_000, 16_000]) {
    now += pause;
    for (const kept of remembered.due(ONE, now)) remembered.begin(kept, now);
  }
  // The next look is 20 s away.
  isRefused = true;
  remembered.add({ clientId: ONE, hash: 'one' }, later(callsOf(), LONG, 'other token'), now + 1_000);
  expect(remembered.due(ONE, now + 1_000 + FIRST_DUE_MS - 1)).toEqual([]);
  expect(remembered.due(ONE, now + 1_000 + FIRST_DUE_MS)).toMatchObject([{ credential: 'other token' }]);
});

it('what a mutation has left unknown takes the place of what was only asked about, and anything that of what was given up', () => {
  const remembered = new Remembered();
  const add = (hash: string, isOfMutation: boolean) =>
    remembered.add({ clientId: ONE, hash }, later(callsOf()), 0, isOfMutation);
  const hashes = () => new Set(hashesOf(remembered, FIRST_DUE_MS));
  for (let number = 0; number < 100; number += 1) add(`${number}`, number > 0);
  add('asked', false);
  expect(hashes()).not.toContain('asked');
  add('paid', true);
  expect(hashes()).toContain('paid');
  expect(hashes()).not.toContain('0');
  // All that are left were paid.
  add('paid later', true);
  expect(hashes()).not.toContain('paid later');
  for (const kept of remembered.due(ONE, FIRST_DUE_MS)) remembered.begin(kept, FIRST_DUE_MS);
  remembered.giveUp({ clientId: ONE, hash: '50' });
  add('asked', false);
  expect(remembered.size).toBe(100);
  const all = new Set(hashesOf(remembered, LONG - 1));
  expect(all).toContain('asked');
  expect(all).not.toContain('50');
});

it('a client with as many as it may have takes the place of none of another’s', () => {
  const remembered = new Remembered();
  const name = { clientId: OTHER, hash: 'given up' };
  remembered.add(name, later(callsOf()), 0);
  for (const kept of remembered.due(OTHER, FIRST_DUE_MS)) remembered.begin(kept, FIRST_DUE_MS);
  remembered.giveUp(name);
  for (let number = 0; number < 101; number += 1)
    remembered.add({ clientId: ONE, hash: `${number}` }, later(callsOf()), 0, true);
  expect(remembered.has(OTHER)).toBe(true);
  expect(remembered.due(ONE, FIRST_DUE_MS)).toHaveLength(100);
});

it('one that was given up keeps its place, and so when it was asked for, until its caller asks after five minutes', () => {
  const remembered = new Remembered();
  const name = { clientId: ONE, hash: 'given up' };
  const ask = (now: number) => {
    remembered.add(name, later(callsOf()), now);
    const [kept] = remembered.due(ONE, now + FIRST_DUE_MS);
    return kept && remembered.begin(kept, now + FIRST_DUE_MS);
  };
  expect(ask(0)).toBe(true);
  remembered.giveUp(name);
  expect(ask(60_000)).toBe(false);
  expect(ask(300_000)).toBe(true);
});

it('those whose look has not begun stay as they were, and come first', () => {
  const remembered = new Remembered();
  for (const hash of ['one', 'two', 'three']) remembered.add({ clientId: ONE, hash }, later(callsOf()), 0);
  const [first] = remembered.due(ONE, FIRST_DUE_MS);
  if (first === undefined) throw new Error('It is due.');
  expect(first.name.hash).toBe('one');
  remembered.begin(first, FIRST_DUE_MS);
  expect(hashesOf(remembered, FIRST_DUE_MS + 2_000)).toEqual(['two', 'three', 'one']);
});

it('looks at one also where the clock was set back', () => {
  const remembered = new Remembered();
  remembered.add({ clientId: ONE, hash: 'one' }, later(callsOf()), 5_000_000);
  expect(hashesOf(remembered, 1_000_000)).toEqual(['one']);
});

it('what was asked about before its mutation has left it unknown gives its place to none that was paid', () => {
  const remembered = new Remembered();
  const add = (hash: string, isOfMutation: boolean) =>
    remembered.add({ clientId: ONE, hash }, later(callsOf()), 0, isOfMutation);
  add('asked, then paid', false);
  add('asked, then paid', true);
  for (let number = 1; number < 100; number += 1) add(`${number}`, true);
  add('paid later', true);
  expect(hashesOf(remembered, FIRST_DUE_MS)).toContain('asked, then paid');
  expect(hashesOf(remembered, FIRST_DUE_MS)).not.toContain('paid later');
});

it('one whose caller asks while it is looked for to the end keeps its place', () => {
  const remembered = new Remembered();
  const add = (hash: string, now: number) => remembered.add({ clientId: ONE, hash }, later(callsOf()), now);
  add('asked again', 0);
  for (const kept of remembered.due(ONE, FIRST_DUE_MS)) remembered.begin(kept, FIRST_DUE_MS);
  add('asked again', 300_000);
  remembered.giveUp({ clientId: ONE, hash: 'asked again' });
  for (let number = 1; number <= 100; number += 1) add(`${number}`, 300_000);
  expect(remembered.size).toBe(100);
  expect(hashesOf(remembered, 300_000 + FIRST_DUE_MS)).toContain('asked again');
});

it('a payment is not asked for by the calls of another whose credential was refused meanwhile', () => {
  const remembered = new Remembered();
  let isRefused = false;
  const [refused, fresh] = [callsOf(() => isRefused), callsOf()];
  remembered.add({ clientId: ONE, hash: 'one' }, later(refused), 0);
  isRefused = true;
  remembered.add({ clientId: ONE, hash: 'two' }, later(fresh), 0);
  expect(remembered.due(ONE, FIRST_DUE_MS)).toMatchObject([{ name: { hash: 'two' }, calls: fresh }]);
});

it('one that was given up gives its place to no other once its caller has asked for it again', () => {
  const remembered = new Remembered();
  const add = (hash: string, now: number) => remembered.add({ clientId: ONE, hash }, later(callsOf()), now);
  add('asked again', 0);
  for (const kept of remembered.due(ONE, FIRST_DUE_MS)) remembered.begin(kept, FIRST_DUE_MS);
  remembered.giveUp({ clientId: ONE, hash: 'asked again' });
  add('asked again', 300_000);
  for (let number = 1; number <= 100; number += 1) add(`${number}`, 300_000);
  expect(remembered.size).toBe(100);
  expect(hashesOf(remembered, 300_000 + FIRST_DUE_MS)).toContain('asked again');
});
