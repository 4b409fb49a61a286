import { expect, it } from 'vitest';
import { seedOfCommit, simulate } from './command.ts';

/** How many seeds that nobody has tried are run for each commit, and for how many hours each. */
const FRESH = 50;
const FRESH_HOURS = 0.008;

it(`${FRESH} seeds of this commit’s own find nothing`, async () => {
  const { code, text } = await simulate(
    ...['--seed', `${seedOfCommit()}`, '--runs', `${FRESH}`, '--hours', `${FRESH_HOURS}`],
  );
  expect(code, text).toBe(0);
  expect(text).toContain(`${FRESH} runs of ${FRESH_HOURS} h, 0 failed`);
}, 900_000);
