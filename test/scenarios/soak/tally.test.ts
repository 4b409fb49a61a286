import { expect, it } from 'vitest';
import { Tally } from './tally.ts';

/** Readers who are given these, one list after another. */
const tallied = (...readers: readonly string[][]) =>
  new Tally(readers.map((ids) => ({ take: () => ids.splice(0) }))).update();

const ORDER = ['a', 'b', 'c', 'd'];

it('readers who have everything once, in one order, miss nothing', () => {
  expect(tallied([...ORDER], ['a', 'b'])).toEqual({ least: 2, most: 4, lost: 0, repeated: 0, misplaced: 0 });
});

it('what a reader is not given, is given twice, or is given at another place, is counted', () => {
  expect(tallied([...ORDER], ['a', 'd'])).toMatchObject({ lost: 2, least: 4 });
  expect(tallied([...ORDER], ['a', 'b', 'a', 'c', 'd'])).toMatchObject({ lost: 0, repeated: 1 });
  expect(tallied(['a', 'c'], ['a', 'b', 'c'])).toMatchObject({ misplaced: 1 });
});
