import { afterEach, beforeEach, expect, it } from 'vitest';
import { createCountedLines, createRareLines } from '../../src/common/rare-lines.ts';
import { type StillTime, stillTime } from '../helpers/still-time.ts';

let time: StillTime;
beforeEach(() => {
  time = stillTime();
});
afterEach(() => time[Symbol.dispose]());

/** Counts under a key, and says which lines were written since it was asked last: under which words, and how often. */
function counted() {
  const count = createCountedLines();
  const lines: [string, number][] = [];
  return {
    happen: (key: string, words = key) => count(key, (times) => lines.push([words, times])),
    told: () => lines.splice(0),
  };
}

it('a line of one key is due once a minute', async () => {
  const isDue = createRareLines();
  expect([isDue('one'), isDue('one'), isDue('other')]).toEqual([true, false, true]);
  await time.pass(59_999);
  expect(isDue('one')).toBe(false);
  await time.pass(1);
  expect([isDue('one'), isDue('one')]).toEqual([true, false]);
});

it('what happens again after a quiet minute is told at once', async () => {
  const { happen, told } = counted();
  for (const _time of ['first', 'second', 'third']) {
    happen('one');
    expect(told()).toEqual([['one', 1]]);
    await time.pass(60_000);
    expect(told()).toEqual([]);
  }
});

it('what goes on is told once a minute, each time with all that has happened since, in the latest words', async () => {
  const { happen, told } = counted();
  happen('one', 'first words');
  expect(told()).toEqual([['first words', 1]]);
  for (const times of [2, 3]) {
    for (let time = 0; time < times; time += 1) happen('one', `words ${time}`);
    await time.pass(59_999);
    expect(told()).toEqual([]);
    await time.pass(1);
    expect(told()).toEqual([[`words ${times - 1}`, times]]);
  }
});

it('what was counted under a key is told also where more keys than are kept have come since, and its next count is another', async () => {
  const { happen, told } = counted();
  for (let times = 0; times < 3; times += 1) happen('one');
  for (let other = 0; other < 1_000; other += 1) happen(`other ${other}`);
  expect(told()).toHaveLength(1_001);
  await time.pass(30_000);
  happen('one');
  expect(told()).toEqual([['one', 1]]);
  await time.pass(30_000);
  expect(told()).toEqual([['one', 2]]);
  happen('one');
  await time.pass(29_999);
  expect(told()).toEqual([]);
  await time.pass(1);
  expect(told()).toEqual([['one', 1]]);
});
