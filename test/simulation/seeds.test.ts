import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { run } from './run.ts';

it('a seed is replayed to the letter', async () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const again = async () =>
    (await promisify(execFile)(process.execPath, [main, '--seed', '110', '--hours', '0.01'])).stdout;
  const withoutCpu = (text: string) => text.replace(/[\d.]+ s of CPU/, '');
  expect(withoutCpu(await again())).toBe(withoutCpu(await again()));
}, 120_000);

it('whatever goes wrong within one seed is another one’s luck', async () => {
  const [one, other] = [
    await run({ seed: 1, hours: 0.005, only: undefined }),
    await run({ seed: 2, hours: 0.005, only: undefined }),
  ];
  expect(one.digest).not.toBe(other.digest);
}, 120_000);
