import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CommandError } from '../../src/cli/command.ts';
import { deliver, deliverAgain } from '../../src/cli/forward/deliver.ts';
import { Letters } from '../../src/cli/forward/letters.ts';
import type { ForwardedEvent, Problem } from '../../src/cli/forward/receiver.ts';
import { clock, useClock } from '../../src/common/clock.ts';

const AWAY: Problem = { text: 'it cannot be reached', isAway: true };
const REFUSED: Problem = { text: 'the receiver answered 422', isAway: false };
const MINUTE_MS = 60_000;

let folder: string;
let letters: Letters;
let now: number;
/** By how much the clock of the machine was set since the test began, in milliseconds. */
let setBy: number;
let restoreClock: () => void;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-deliver-'));
  letters = new Letters(join(folder, 'a.sqlite'));
  now = Date.parse('2026-11-22T10:00:00Z');
  setBy = 0;
  // Each pause is over at once, by the clock.
  restoreClock = useClock({
    ...clock,
    now: () => now + setBy,
    monotonic: () => now,
    async sleep(ms) {
      now += ms;
    },
  });
});
afterEach(async () => {
  restoreClock();
  letters.close();
  await rm(folder, { recursive: true });
});

const event = (id: string, cursor = `cursor of ${id}`): ForwardedEvent => ({
  id,
  type: 'CEP',
  cursor,
  receivedAt: '2026-11-22T09:00:00.000Z',
});

/** A delivery to a receiver that gives these answers, then takes all; and the ids that it was asked to take. */
function deliveryTo(answers: readonly (Problem | undefined)[], schedule?: readonly number[]) {
  const left = [...answers];
  const asked: string[] = [];
  const receiver = {
    id: 'a',
    shownAs: 'a receiver',
    async take({ id }: ForwardedEvent) {
      asked.push(id);
      return left.shift();
    },
    close: async () => undefined,
  };
  return { receiver, letters, schedule, asked };
}

const { signal: never } = new AbortController();

it('an event is given up after one refusal more than the schedule has pauses, however often its receiver was away', async () => {
  const refusedTwice = [AWAY, REFUSED, AWAY, AWAY, REFUSED];
  const delivery = deliveryTo([...refusedTwice, REFUSED], [MINUTE_MS, 2 * MINUTE_MS]);
  const began = now;
  expect(await deliver(delivery, event('one'), never)).toBe(true);
  expect(delivery.asked).toHaveLength(6);
  expect(now - began).toBeGreaterThanOrEqual(3 * MINUTE_MS);
  expect(letters.all()).toEqual([
    {
      event: event('one'),
      attempts: 6,
      refusals: 3,
      firstAt: began,
      lastAt: now,
      nextAt: null,
      problem: REFUSED.text,
      isDead: true,
      isWanted: false,
    },
  ]);
});

it.each([
  ['as the schedule says, where its receiver asks for less', REFUSED, 0, MINUTE_MS],
  ['as its receiver asks, where the schedule says less', REFUSED, 2 * MINUTE_MS, 2 * MINUTE_MS],
  ['as without a schedule, where its receiver is away and asks for no pause', AWAY, 0, 250],
])('an event is kept back for as long %s', async (_, problem, retryAfterMs, pauseMs) => {
  const began = now;
  await deliver(deliveryTo([{ ...problem, retryAfterMs }], [MINUTE_MS]), event('one'), never);
  expect(now - began).toBe(pauseMs);
});

it.each([-60, 60])(
  'a pause is as long as it should be where the clock is set by %s minutes within it',
  async (minutes) => {
    const began = now;
    const { find } = letters;
    letters.find = (cursor) => {
      if (now > began) setBy = minutes * MINUTE_MS;
      return find.call(letters, cursor);
    };
    await deliver(deliveryTo([REFUSED], [MINUTE_MS]), event('one'), never);
    expect(now - began).toBe(MINUTE_MS);
  },
);

it('an event that is taken in the end leaves no letter, also where another command had begun with it', async () => {
  const stopped = new AbortController();
  const first = deliveryTo([REFUSED], [MINUTE_MS]);
  const { take } = first.receiver;
  first.receiver.take = async (one) => {
    stopped.abort();
    return take(one);
  };
  expect(await deliver(first, event('one'), stopped.signal)).toBe(false);
  expect(letters.find('cursor of one')).toMatchObject({
    attempts: 1,
    refusals: 1,
    nextAt: now + MINUTE_MS,
    isDead: false,
  });
  expect(await deliver(deliveryTo([]), event('one'), never)).toBe(true);
  expect(letters.all()).toEqual([]);
});

it('a second event with the id of a dead letter has attempts of its own, and leaves the dead letter where it is', async () => {
  const [first, second] = [event('one', 'first'), event('one', 'second')];
  await deliver(deliveryTo([REFUSED, REFUSED], [MINUTE_MS]), first, never);
  const delivery = deliveryTo([REFUSED, undefined], [MINUTE_MS]);
  await deliver(delivery, second, never);
  expect(delivery.asked).toHaveLength(2);
  expect(letters.all()).toMatchObject([{ event: first, isDead: true, attempts: 2 }]);
  await deliver(deliveryTo([REFUSED, REFUSED], [MINUTE_MS]), second, never);
  expect(letters.all()).toMatchObject([{ event: first }, { event: second }]);
  expect(letters.want(['one'])).toBe(2);
  await deliverAgain(deliveryTo([]), never);
  expect(letters.all()).toEqual([]);
});

/** The table of 0.2.0, and its statements. */
const EARLIER = `CREATE TABLE IF NOT EXISTS attempts (
  event_id TEXT PRIMARY KEY, event TEXT NOT NULL, attempts INTEGER NOT NULL, refusals INTEGER NOT NULL,
  first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, next_at INTEGER, problem TEXT NOT NULL,
  is_dead INTEGER NOT NULL, is_wanted INTEGER NOT NULL
) STRICT`;
const PUT_EARLIER = 'INSERT OR REPLACE INTO attempts VALUES (?, ?, 3, 3, 1, 2, NULL, ?, 1, 0)';

it('reads the dead letters of 0.2.0, and 0.2.0 reads, replaces and takes out those of this version', async () => {
  const path = join(folder, 'earlier.sqlite');
  const earlier = new DatabaseSync(path);
  earlier.exec(EARLIER);
  for (const id of ['two', 'one'])
    earlier.prepare(PUT_EARLIER).run(id, JSON.stringify(event(id)), REFUSED.text);
  letters.close();
  letters = new Letters(path);
  expect(letters.all()).toMatchObject([
    { event: event('two'), refusals: 3, isDead: true },
    { event: event('one') },
  ]);
  await deliver(deliveryTo([REFUSED], []), event('one', 'second'), never);
  letters.close();
  letters = new Letters(path);
  expect(letters.all()).toHaveLength(3);

  earlier.exec(EARLIER);
  earlier.prepare(PUT_EARLIER).run('two', JSON.stringify(event('two')), 'again');
  expect(letters.find('cursor of two')).toMatchObject({ event: event('two'), problem: 'again' });
  const read = earlier.prepare('SELECT event FROM attempts WHERE event_id = ?').all('one');
  expect(read.map((row) => JSON.parse(String(row['event'])))).toEqual([event('one'), event('one', 'second')]);
  earlier.prepare('DELETE FROM attempts WHERE event_id = ?').run('two');
  expect(letters.find('cursor of two')).toBeUndefined();
  earlier.close();
});

it('an event that is still being tried is not posted beside that, though an operator has asked for it', async () => {
  for (const [id, isDead] of [['dead', true] as const, ['tried', false] as const])
    letters.put({
      event: event(id),
      attempts: 1,
      refusals: 1,
      firstAt: isDead ? now - 1 : now,
      lastAt: now,
      nextAt: isDead ? null : now + MINUTE_MS,
      problem: REFUSED.text,
      isDead,
    });
  expect([letters.want(['nobody knows it']), letters.want(undefined)]).toEqual([0, 2]);
  const delivery = deliveryTo([REFUSED]);
  await deliverAgain(delivery, never);
  // Once for each time that it is asked for.
  await deliverAgain(delivery, never);
  expect(delivery.asked).toEqual(['dead']);
  expect(letters.all()).toMatchObject([
    { event: event('dead'), attempts: 2, refusals: 1, nextAt: null, isDead: true, isWanted: false },
    { event: event('tried'), attempts: 1, isDead: false, isWanted: true },
  ]);
  await deliver(delivery, event('tried'), never);
  expect(delivery.asked).toEqual(['dead', 'tried']);
  expect(letters.want(['dead', 'tried'])).toBe(1);
});

it('an event for which an operator asks while an attempt is under way is tried at once after it, also a dead letter', async () => {
  using operator = new DisposableStack();
  const own = new Letters(join(folder, 'a.sqlite'));
  operator.defer(() => own.close());
  const delivery = deliveryTo([REFUSED, REFUSED, undefined], [MINUTE_MS, 60 * MINUTE_MS]);
  const { take } = delivery.receiver;
  let askedAt = 0;
  delivery.receiver.take = async (one) => {
    // The row is there from the first attempt on.
    if (delivery.asked.length === 1) {
      expect(own.want(undefined)).toBe(1);
      askedAt = now;
    }
    return take(one);
  };
  await deliver(delivery, event('one'), never);
  expect(delivery.asked).toHaveLength(3);
  expect(now - askedAt).toBeLessThanOrEqual(1_000);

  const refused = deliveryTo([REFUSED, REFUSED, REFUSED]);
  await deliver({ ...refused, schedule: [] }, event('two'), never);
  own.want(undefined);
  const again = refused.receiver.take;
  refused.receiver.take = async (one) => {
    if (refused.asked.length === 1) own.want(undefined);
    return again(one);
  };
  for (const asked of [2, 3, 3]) {
    await deliverAgain(refused, never);
    expect(refused.asked).toHaveLength(asked);
  }
  expect(letters.all()).toMatchObject([{ isDead: true, isWanted: false }]);
});

it('an attempt that an operator has asked for is still asked for where the command dies within it', async () => {
  await deliver(deliveryTo([REFUSED], []), event('one'), never);
  letters.want(undefined);
  const dying = deliveryTo([]);
  dying.receiver.take = () => Promise.reject(new Error('it is killed'));
  await expect(deliverAgain(dying, never)).rejects.toThrow('it is killed');
  const delivery = deliveryTo([]);
  await deliverAgain(delivery, never);
  expect(delivery.asked).toEqual(['one']);
});

it('events that an operator has asked for stay asked for where the command ends before their turn', async () => {
  for (const id of ['one', 'two'])
    letters.put({
      event: event(id),
      attempts: 1,
      refusals: 1,
      firstAt: now,
      lastAt: now,
      nextAt: null,
      problem: REFUSED.text,
      isDead: true,
    });
  letters.want(undefined);
  const stopped = new AbortController();
  const delivery = deliveryTo([]);
  const { take } = delivery.receiver;
  delivery.receiver.take = async (one) => {
    stopped.abort();
    return take(one);
  };
  await deliverAgain(delivery, stopped.signal);
  expect(delivery.asked).toEqual(['one']);
  expect(letters.wanted()).toMatchObject([{ event: event('two'), isWanted: true }]);
});

it.each([
  ['one that its receiver has not taken', 'INSERT', [AWAY]],
  ['one that it has taken at last', 'DELETE', [AWAY]],
])('ends with a sentence where a full disk keeps no note of %s', async (_, step, answers) => {
  const file = new DatabaseSync(join(folder, 'a.sqlite'));
  file.exec(`CREATE TRIGGER full BEFORE ${step} ON attempts BEGIN SELECT RAISE(ABORT, 'no room'); END`);
  file.close();
  letters.close();
  letters = new Letters(join(folder, 'a.sqlite'), 'a receiver');
  await expect(deliver(deliveryTo(answers), event('1'), never)).rejects.toThrow(
    new CommandError('What a receiver has not taken cannot be saved: no room.'),
  );
});

it('ends with a sentence, by which other receivers go on, where the file of the attempts can no longer be read', async () => {
  letters.close();
  letters = new Letters(join(folder, 'a.sqlite'), 'a receiver');
  const file = new DatabaseSync(join(folder, 'a.sqlite'));
  file.exec('DROP TABLE attempts; DROP TABLE trouble');
  file.close();
  const unreadable = new CommandError(
    `The file of the attempts, ${join(folder, 'a.sqlite')}, cannot be used: no such table: attempts.`,
  );
  await expect(deliver(deliveryTo([]), event('1'), never)).rejects.toThrow(unreadable);
  await expect(deliverAgain(deliveryTo([]), never)).rejects.toThrow(unreadable);
  // Nor can that be noted there.
  letters.tell('it has ended', true);
});
