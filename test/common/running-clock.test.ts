import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { RunningClock } from '../../src/common/running-clock.ts';

const WALL = 1_800_000_000_000;
const HOUR = 3_600_000;

/** A process that has the database open, and the time that it has run. */
function process(database: DatabaseSync, wall = WALL) {
  let ran = 0;
  const clock = new RunningClock(
    database,
    () => wall,
    () => ran,
  );
  return {
    /** @returns what the clock shows then */
    run(ms: number): number {
      ran += ms;
      return clock.now();
    },
  };
}

it('begins with the time of the machine, and advances as long as a process runs', () => {
  const own = process(new DatabaseSync(':memory:'));
  expect(own.run(0)).toBe(WALL);
  expect(own.run(5_400)).toBe(WALL + 5_400);
  expect(own.run(0.7)).toBe(WALL + 5_400);
  expect(own.run(0.7)).toBe(WALL + 5_401);
});

it('goes on in the next process where it was, less a second at most, whatever the machine’s clock says', () => {
  const database = new DatabaseSync(':memory:');
  const first = process(database);
  first.run(5_400);
  first.run(999);
  const next = process(database, WALL + HOUR);
  expect(next.run(0)).toBe(WALL + 5_400);
  next.run(1_000);
  expect(process(database, 0).run(0)).toBe(WALL + 6_400);
});

it('is never behind by more than a second what another process has seen', () => {
  const database = new DatabaseSync(':memory:');
  const [one, other] = [process(database), process(database)];
  one.run(HOUR);
  expect(other.run(10)).toBe(WALL + HOUR);
  expect(other.run(2_500)).toBe(WALL + HOUR + 2_500);
  expect(one.run(100)).toBe(WALL + HOUR + 2_500);
});
