import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

/** A program that is told to end as it starts, and whose start then fails. */
const TOLD_TO_END = `
  import { runProgram } from ${JSON.stringify(new URL('../../src/app/lifecycle.ts', import.meta.url).href)};
  setInterval(() => undefined, 1_000);
  await runProgram(async ({ opened }) => {
    const closed = Promise.withResolvers();
    opened(async () => {
      closed.reject(new Error('What the start needs is closed.'));
      for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    });
    process.kill(process.pid, 'SIGTERM');
    await closed.promise;
  });
`;

it('a start that fails since it was told to end is no failure', async () => {
  // Rejects where the program ends with another code than 0.
  const { stderr } = await run(process.execPath, ['--input-type=module', '--eval', TOLD_TO_END]);
  expect(stderr).toBe('');
});
