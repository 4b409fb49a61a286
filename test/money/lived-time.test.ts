import { expect, it } from 'vitest';
import { ageOf, stampOf } from '../../src/money/lived-time.ts';

const clocks = (wall: number, id: string, booted: number) => ({
  now: () => wall,
  boot: { id, now: () => booted },
});

it('a moment is as long ago as the clock says that shows the longer time', () => {
  const stamp = stampOf(clocks(1_000_000, 'one', 500));
  expect(ageOf(stamp, clocks(1_000_700, 'one', 1_200))).toBe(700);
  // Set back, and set ahead.
  expect(ageOf(stamp, clocks(400_000, 'one', 1_200))).toBe(700);
  expect(ageOf(stamp, clocks(1_005_000, 'one', 1_200))).toBe(5_000);
});

it('after a new start, and where the system names none, the clock of the machine alone tells', () => {
  const stamp = stampOf(clocks(1_000_000, 'one', 500));
  expect(ageOf(stamp, clocks(1_002_000, 'another', 90_000))).toBe(2_000);
  expect(ageOf(stamp, { now: () => 1_003_000, boot: undefined })).toBe(3_000);
});
