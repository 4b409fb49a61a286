import { expect, it } from 'vitest';
import { run } from './run.ts';

/** Seeds that once failed, each with what it found; and how long they have to run for it. */
const FOUND = [
  {
    seed: 108,
    hours: 0.1,
    what: 'late bytes of a WebSocket that was left vouched for the one that was being connected, which then waited for a dead network',
  },
] as const;

it('a seed is replayed to the letter', async () => {
  const options = { seed: 110, hours: 0.01, only: undefined, isLong: true };
  const first = await run(options);
  const second = await run(options);
  expect(second.lines).toEqual(first.lines);
  expect(first.problems).toEqual([]);
}, 120_000);

it('whatever goes wrong within one seed is another one’s luck', async () => {
  const [one, other] = [
    await run({ seed: 1, hours: 0.005, only: undefined }),
    await run({ seed: 2, hours: 0.005, only: undefined }),
  ];
  expect(one.digest).not.toBe(other.digest);
}, 120_000);

for (const { seed, hours, what } of FOUND) {
  it(`seed ${seed} holds, which found: ${what}`, async () => {
    expect((await run({ seed, hours, only: undefined })).problems).toEqual([]);
  }, 240_000);
}
