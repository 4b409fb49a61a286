import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { standardOutput } from '../../src/observability/standard-output.ts';

const LOGGER = fileURLToPath(new URL('../../src/observability/logger.ts', import.meta.url));

/** What a process with a log prints to stderr, and how it ends. `where` is the shell's redirection of its standard output. */
function logging(where: string): Promise<{ readonly stderr: string; readonly code: number | null }> {
  const script = `const { createLogger } = await import(${JSON.stringify(LOGGER)});
    const logger = createLogger('info');
    for (let line = 0; line < 1_000; line += 1) logger.info({ filler: 'x'.repeat(1_000) }, 'a line');
    process.stderr.write('goes on');
    process.exit(3);`;
  return new Promise((resolve) => {
    const child = execFile(
      'sh',
      ['-c', `"$@" ${where}`, 'sh', process.execPath, '--input-type=module', '-e', script],
      (_error, _stdout, stderr) => resolve({ stderr, code: child.exitCode }),
    );
  });
}

it.each([
  ['a full disk', '> /dev/full'],
  ['a reader that has gone', '| head -c 10 > /dev/null; exit 3'],
])('a log that leads to %s costs its lines, and the process goes on', async (_, where) => {
  expect(await logging(where)).toEqual({ stderr: 'goes on', code: 3 });
});

it('a line that was cut short is ended before the next one, and a full pipe is waited for', () => {
  const full = Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' });
  const busy = Object.assign(new Error('write EAGAIN'), { code: 'EAGAIN' });
  const steps = [2, full, full, 100, busy, 3, 100];
  let written = '';
  const output = standardOutput((_fd, bytes) => {
    const step = steps.shift();
    if (step instanceof Error) throw step;
    const taken = bytes.subarray(0, step);
    written += String(taken);
    return taken.length;
  });
  for (const line of ['{"one":1}\n', '{"two":2}\n', '{"three":3}\n', '{"four":4}\n']) output.write(line);
  expect(written).toBe('{"\n{"three":3}\n{"four":4}\n');
  expect(steps).toEqual([]);
});
