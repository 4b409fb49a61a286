import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { Guesses } from '../../src/auth/guesses.ts';
import { stillTime } from '../helpers/still-time.ts';

const tooMany = () => new Error('too many');

/** Guesses that end when the test says so. */
function guessing(limit: number) {
  const guesses = new Guesses(limit);
  const open: { readonly source: string; readonly end: (isRefused: boolean) => void }[] = [];
  const make = (source: string): Promise<boolean> =>
    guesses.make(
      source,
      () => new Promise<boolean>((end) => open.push({ source, end })),
      (outcome) => 'result' in outcome && outcome.result,
      tooMany,
    );
  return { open, make };
}

const settled = () => new Promise(setImmediate);

it('a burst of guesses is sent no further than as many as may be refused', async () => {
  const { open, make } = guessing(3);
  const made = Array.from({ length: 20 }, () => make('one'));
  const outcomes = Promise.allSettled(made);
  await settled();
  expect(open).toHaveLength(3);
  for (const { end } of open) end(true);
  const ends = await outcomes;
  expect(open).toHaveLength(3);
  expect(ends.filter(({ status }) => status === 'rejected')).toHaveLength(17);
  await expect(make('one')).rejects.toThrow('too many');
  void make('other');
  await settled();
  expect(open).toHaveLength(4);
});

it('guesses that waited in vain keep no place: those of the next minute are made', async () => {
  using time = stillTime();
  const { open, make } = guessing(3);
  const outcomes = Promise.allSettled(Array.from({ length: 20 }, () => make('one')));
  await settled();
  for (const { end } of open) end(true);
  await outcomes;
  await time.pass(61_000);
  void make('one');
  await settled();
  expect(open).toHaveLength(4);
});

it('guesses that are right wait for each other, and none is refused', async () => {
  const { open, make } = guessing(2);
  const made = Promise.all(Array.from({ length: 7 }, () => make('one')));
  for (let ended = 0; ended < 7; ended += 1) {
    await settled();
    expect(open.length).toBeLessThanOrEqual(ended + 2);
    open[ended]?.end(false);
  }
  expect(await made).toEqual(Array.from({ length: 7 }, () => false));
});

it('a place that was given to one who waited is nobody else’s', async () => {
  const { open, make } = guessing(1);
  const [first, second] = [make('one'), make('one')];
  await settled();
  open[0]?.end(false);
  // It comes before the one who waited has begun.
  const third = make('one');
  await first;
  await settled();
  expect(open).toHaveLength(2);
  open[1]?.end(false);
  await second;
  await settled();
  expect(open).toHaveLength(3);
  open[2]?.end(false);
  expect(await third).toBe(false);
});

it('nothing is kept of sources whose guesses were right', async () => {
  const guesses = new Guesses(2);
  const guess = (source: string) =>
    guesses.make(
      source,
      async () => true,
      () => false,
      tooMany,
    );
  // Of each source that is kept there is a list of those who wait.
  const lists = () => queryObjects(Array, { format: 'count' });
  await guess('one');
  const before = lists();
  for (let number = 0; number < 5_000; number += 1) await guess(`source ${number}`);
  expect(lists()).toBeLessThan(before + 1_000);
  expect(await guess('one')).toBe(true);
});
