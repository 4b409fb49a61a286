import { afterEach } from 'vitest';
import { longWaits } from './until.ts';

/** Adds to a test that has timed out what it was waiting for. */
afterEach(({ task }) => {
  const stacks = longWaits();
  if (task.result?.state === 'fail' && stacks.length > 0) throw new Error(stacks.join('\n'));
});
