import { expect, it } from 'vitest';
import { FRESH_HOURS, seedOfCommit, simulate } from './command.ts';

/** How many seeds that nobody has tried are run for each commit. */
const FRESH = 50;

it(`${FRESH} seeds of this commit’s own find nothing`, async () => {
  const { code, text } = await simulate(
    ...['--seed', `${seedOfCommit()}`, '--runs', `${FRESH}`, '--hours', `${FRESH_HOURS}`],
  );
  expect(code, text).toBe(0);
  expect(text).toContain(`${FRESH} runs of ${FRESH_HOURS} h, 0 failed`);
}, 900_000);
