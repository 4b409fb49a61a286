import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { run } from './run.ts';

/** Each of them once found a fault, of the gateway or of the model. */
const SEEDS = [
  // A caller who left while the log was read for it was logged as a failure.
  60_033,
  // WAIT of the model spoke of another connection's writes, and went on alone where a connection had ended.
  2_002, 50_044,
];

it.each(SEEDS)(
  'seed %i, which found a fault, finds none',
  async (seed) => {
    const { problems } = await run({ seed, hours: 0.012, only: undefined });
    expect(problems).toEqual([]);
  },
  120_000,
);

it('a seed is replayed to the letter, alone and after others', async () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  /** All that is said of the last of some seeds, and the digest of its steps. */
  const traceOf = async (first: number, runs: number): Promise<string> => {
    const args = [main, '--seed', `${first}`, '--runs', `${runs}`, '--hours', '0.01', '--long'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
    const traces = stdout.split(/(?<=^digest .*\n)/m);
    return traces[runs - 1] ?? '';
  };
  const [alone, after] = await Promise.all([traceOf(110, 1), traceOf(109, 2)]);
  expect(alone).toMatch(/Nothing goes wrong any more.*digest [0-9a-f]{16}\n$/s);
  expect(after).toBe(alone);
}, 240_000);

it('whatever goes wrong within one seed is another one’s luck', async () => {
  const [one, other] = [
    await run({ seed: 1, hours: 0.005, only: undefined }),
    await run({ seed: 2, hours: 0.005, only: undefined }),
  ];
  expect(one.digest).not.toBe(other.digest);
}, 120_000);
