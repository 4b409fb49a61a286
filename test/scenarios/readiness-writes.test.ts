import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { startGateway } from '../helpers/gateway.ts';

/** What this process has written to files so far, in bytes, as the operating system counts it. */
async function written(): Promise<number> {
  const [, bytes] = /^wchar: (\d+)$/m.exec(await readFile('/proc/self/io', 'utf8')) ?? [];
  return Number(bytes);
}

it('four hundred questions whether the gateway is ready cost a look at the disk a second, not one each', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const ask = async () => (await fetch(`${gateway.url}/readyz`)).json();
  expect(await ask()).toMatchObject({ status: 'ready' });
  const [before, start] = [await written(), performance.now()];
  const answers = await Promise.all(Array.from({ length: 400 }, ask));
  const [bytes, seconds] = [(await written()) - before, (performance.now() - start) / 1_000];
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['ready']));
  // A look writes less than 200 KB; the answers themselves take as much together.
  expect(bytes).toBeLessThan((2 + seconds) * 500_000);
});
