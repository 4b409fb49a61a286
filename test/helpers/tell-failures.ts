import { afterEach } from 'vitest';
import { longWaits } from './until.ts';

/** Adds to a test that has failed what it was waiting for, and what its error was caused by: a report in JSON has no causes. */
afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return;
  const causes = (task.result.errors ?? []).flatMap(({ cause }) =>
    cause === undefined ? [] : [`caused by ${cause.stack ?? cause.message}`],
  );
  const more = [...longWaits(), ...causes];
  if (more.length > 0) throw new Error(more.join('\n'));
});
