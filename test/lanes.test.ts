import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { LONG_LANE, SLOWEST } from './lanes.ts';

it('the long lane names tests that there are, each once', () => {
  const found = LONG_LANE.map((pattern) => [pattern, globSync(pattern).length] as const);
  expect(found.filter(([, count]) => count === 0)).toEqual([]);
  const files = LONG_LANE.flatMap((pattern) => globSync(pattern));
  expect(files).toHaveLength(new Set(files).size);
});

it('the slowest files are files that there are', () => {
  expect(SLOWEST.filter((file) => globSync(file).length !== 1)).toEqual([]);
});
